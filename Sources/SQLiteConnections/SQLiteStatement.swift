import CBuckiaSQLite

/// The storage class of a value. See <https://sqlite.org/datatype3.html>.
public enum StorageClass: Int32, Sendable {
  case integer = 1
  case real = 2
  case text = 3
  case blob = 4
  case null = 5
}

/// A prepared statement: an owning handle over `sqlite3_stmt *`.
///
/// Parameters and columns count from 0 here, unlike in C. Bytes handed out are SQLite's and valid until the next
/// `step`, `reset` or type conversion of that column.
public struct SQLiteStatement: ~Copyable {
  private let statement: OpaquePointer
  private let path: String

  init(_ sql: String, on connection: borrowing SQLiteConnection, isPersistent: Bool) throws(SQLiteError) {
    var prepared: OpaquePointer?
    let flags: UInt32 = isPersistent ? UInt32(SQLITE_PREPARE_PERSISTENT) : 0
    let code = sqlite3_prepare_v3(connection.handle, sql, -1, flags, &prepared, nil)
    guard code == SQLITE_OK else { throw connection.lastError(code, sql: sql) }
    guard let prepared else {
      throw SQLiteError(code: SQLITE_MISUSE, message: "the statement is empty", path: connection.path, sql: sql)
    }
    statement = prepared
    path = connection.path
  }

  deinit { sqlite3_finalize(statement) }

  private func error(_ code: Int32) -> SQLiteError {
    SQLiteError(
      handle: sqlite3_db_handle(statement), code: code, path: path,
      sql: sqlite3_sql(statement).map { String(cString: $0) })
  }

  private func check(_ code: Int32) throws(SQLiteError) {
    if code != SQLITE_OK { throw error(code) }
  }

  // MARK: Running

  /// Goes on to the next row.
  ///
  /// - Returns: true when a row is there, false when the statement is done.
  /// - Throws: `SQLiteError`; the statement has then been reset.
  public func step() throws(SQLiteError) -> Bool {
    switch sqlite3_step(statement) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    case let code:
      let failure = error(code)
      sqlite3_reset(statement)
      throw failure
    }
  }

  /// Runs a statement that returns no rows, and resets it.
  ///
  /// - Throws: `SQLiteError`; the statement has been reset then too.
  public func run() throws(SQLiteError) {
    while try step() {}
    sqlite3_reset(statement)
  }

  /// Runs a statement, rows it returns passed over, and resets it; that a row is refused is an answer, not an error.
  ///
  /// - Returns: Nil when it ran to its end; why not when a constraint, a type or a size was in the way.
  /// - Throws: `SQLiteError` for everything else; the statement has been reset then too.
  public func attempt() throws(SQLiteError) -> SQLiteRefusal? {
    var code = sqlite3_step(statement)
    while code == SQLITE_ROW { code = sqlite3_step(statement) }
    guard code != SQLITE_DONE else {
      sqlite3_reset(statement)
      return nil
    }
    // Not every connection has extended result codes switched on.
    if let refusal = SQLiteRefusal(sqlite3_extended_errcode(sqlite3_db_handle(statement))) {
      sqlite3_reset(statement)
      return refusal
    }
    let failure = error(code)
    sqlite3_reset(statement)
    throw failure
  }

  /// SQLite's words about the refusal that ``attempt()`` has just returned.
  public var lastMessage: String { sqlite3_errmsg(sqlite3_db_handle(statement)).map { String(cString: $0) } ?? "" }

  /// Makes the statement ready to run again; bound values stay.
  public func reset() { sqlite3_reset(statement) }

  /// Forgets all bound values. Bytes bound without a copy must stay alive until this or a new binding.
  public func clearBindings() { sqlite3_clear_bindings(statement) }

  // MARK: Binding

  /// How many parameters there are to bind.
  package var parameterCount: Int { Int(sqlite3_bind_parameter_count(statement)) }

  /// The name of a parameter, with the character that begins it; nil for one without a name.
  package func parameterName(at index: Int) -> String? {
    sqlite3_bind_parameter_name(statement, Int32(index + 1)).map { String(cString: $0) }
  }

  /// Binds NULL.
  public func bindNull(at index: Int) throws(SQLiteError) {
    try check(sqlite3_bind_null(statement, Int32(index + 1)))
  }

  /// Binds an integer.
  public func bind(_ value: Int64, at index: Int) throws(SQLiteError) {
    try check(sqlite3_bind_int64(statement, Int32(index + 1), value))
  }

  /// Binds a floating-point number. NaN becomes NULL, as always in SQLite.
  public func bind(_ value: Double, at index: Int) throws(SQLiteError) {
    try check(sqlite3_bind_double(statement, Int32(index + 1), value))
  }

  /// Binds text, copying it.
  public func bind(_ value: String, at index: Int) throws(SQLiteError) {
    var value = value
    let code = value.withUTF8 { bytes in
      bytes.withMemoryRebound(to: CChar.self) {
        buckia_bind_text_copy(statement, Int32(index + 1), $0.baseAddress ?? Self.nothing, UInt64($0.count))
      }
    }
    try check(code)
  }

  /// Binds text from its bytes, valid UTF-8 or not, copying them.
  public func bind(textCopying bytes: UnsafeRawBufferPointer, at index: Int) throws(SQLiteError) {
    let start = (bytes.baseAddress ?? UnsafeRawPointer(Self.nothing)).assumingMemoryBound(to: CChar.self)
    try check(buckia_bind_text_copy(statement, Int32(index + 1), start, UInt64(bytes.count)))
  }

  /// Binds a blob from its bytes, copying them.
  public func bind(blobCopying bytes: UnsafeRawBufferPointer, at index: Int) throws(SQLiteError) {
    let start = bytes.baseAddress ?? UnsafeRawPointer(Self.nothing)
    try check(buckia_bind_blob_copy(statement, Int32(index + 1), start, UInt64(bytes.count)))
  }

  /// Binds the value that another statement's row has in a column, copying it as it is.
  public func bind(column: Int, of row: borrowing SQLiteStatement, at index: Int) throws(SQLiteError) {
    try check(sqlite3_bind_value(statement, Int32(index + 1), sqlite3_column_value(row.statement, Int32(column))))
  }

  /// Binds a blob, copying it.
  public func bind(_ value: [UInt8], at index: Int) throws(SQLiteError) {
    let code = value.withUnsafeBytes {
      buckia_bind_blob_copy(
        statement, Int32(index + 1), $0.baseAddress ?? UnsafeRawPointer(Self.nothing), UInt64($0.count))
    }
    try check(code)
  }

  /// Binds text without copying: the bytes must stay as they are until the value is bound anew or cleared.
  public func bind(textNoCopy bytes: UnsafeRawBufferPointer, at index: Int) throws(SQLiteError) {
    let start = (bytes.baseAddress ?? UnsafeRawPointer(Self.nothing)).assumingMemoryBound(to: CChar.self)
    try check(
      sqlite3_bind_text64(statement, Int32(index + 1), start, UInt64(bytes.count), nil, UInt8(SQLITE_UTF8)))
  }

  /// Binds a blob without copying: the bytes must stay as they are until the value is bound anew or cleared.
  ///
  /// An empty one is bound as an empty blob, not as the NULL that a null pointer would make of it.
  public func bind(blobNoCopy bytes: UnsafeRawBufferPointer, at index: Int) throws(SQLiteError) {
    let start = bytes.baseAddress ?? UnsafeRawPointer(Self.nothing)
    try check(sqlite3_bind_blob64(statement, Int32(index + 1), start, UInt64(bytes.count), nil))
  }

  /// A valid address for empty values, where a null pointer would mean NULL. Never written, never freed.
  nonisolated(unsafe) private static let nothing: UnsafePointer<CChar> = UnsafePointer(
    UnsafeMutablePointer<CChar>.allocate(capacity: 1))

  // MARK: Columns

  /// How many columns each row has.
  public var columnCount: Int { Int(sqlite3_column_count(statement)) }

  /// The storage class of a value, before any conversion.
  public func storageClass(at index: Int) -> StorageClass {
    StorageClass(rawValue: sqlite3_column_type(statement, Int32(index))) ?? .null
  }

  /// Whether a value is NULL.
  public func isNull(at index: Int) -> Bool { sqlite3_column_type(statement, Int32(index)) == SQLITE_NULL }

  /// A value as an integer.
  public func integer(at index: Int) -> Int64 { sqlite3_column_int64(statement, Int32(index)) }

  /// A value as a floating-point number.
  public func real(at index: Int) -> Double { sqlite3_column_double(statement, Int32(index)) }

  /// A value as text; nil for NULL. NUL bytes are kept, broken UTF-8 is mended.
  public func text(at index: Int) -> String? {
    guard !isNull(at: index) else { return nil }
    return String(decoding: textBytes(at: index), as: UTF8.self)
  }

  /// Whether a text value is valid UTF-8, so that `text(at:)` gives it as it is.
  public func isWellFormedText(at index: Int) -> Bool {
    let bytes = textBytes(at: index)
    return String(decoding: bytes, as: UTF8.self).utf8.elementsEqual(bytes)
  }

  /// Whether a text value holds half of a surrogate pair, which is no character in UTF-16 and nothing at all in UTF-8.
  ///
  /// Of use in a database that stores UTF-16, and only before the value is asked for as UTF-8: SQLite converts it in place.
  public func hasUnpairedSurrogate(at index: Int) -> Bool {
    guard storageClass(at: index) == .text, let start = sqlite3_column_text16(statement, Int32(index)) else {
      return false
    }
    // Sound: SQLite gives that many bytes in the order of this machine, and keeps them until the next call for the column.
    let text = UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes16(statement, Int32(index))))
    var isOpen = false
    for place in stride(from: 0, to: text.count - 1, by: 2) {
      let unit = text.loadUnaligned(fromByteOffset: place, as: UInt16.self)
      let isSecond = unit & 0xfc00 == 0xdc00
      if isOpen != isSecond { return true }
      isOpen = unit & 0xfc00 == 0xd800
    }
    return isOpen
  }

  /// A value as a blob.
  public func blob(at index: Int) -> [UInt8] { Array(blobBytes(at: index)) }

  /// The UTF-8 of a text value, valid until the next step.
  public func textBytes(at index: Int) -> UnsafeRawBufferPointer {
    // The order matters: column_text converts to UTF-8, and column_bytes then counts that.
    let start = sqlite3_column_text(statement, Int32(index))
    return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, Int32(index))))
  }

  /// The bytes of a blob value, valid until the next step.
  public func blobBytes(at index: Int) -> UnsafeRawBufferPointer {
    let start = sqlite3_column_blob(statement, Int32(index))
    return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, Int32(index))))
  }
}

extension SQLiteConnection {
  /// Runs a query and gives each row to `row`.
  ///
  /// - Throws: `SQLiteError` from SQLite; whatever `row` throws.
  public func forEachRow(
    of sql: String, binding values: [String] = [], _ row: (borrowing SQLiteStatement) throws -> Void
  ) throws {
    let statement = try prepare(sql)
    for (index, value) in values.enumerated() { try statement.bind(value, at: index) }
    while try statement.step() { try row(statement) }
  }

  /// Runs a query that this connection keeps for the next time, and gives each row to `row`, which must not run it again.
  ///
  /// - Throws: `SQLiteError` from SQLite; whatever `row` throws.
  public func forEachRow(
    ofCached sql: String, binding values: [String] = [], _ row: (borrowing SQLiteStatement) throws -> Void
  ) throws {
    let query = try cached(sql)
    defer { query.statement.reset() }
    for (index, value) in values.enumerated() { try query.statement.bind(value, at: index) }
    while try query.statement.step() { try row(query.statement) }
  }

  /// The first column of the first row as an integer; nil when there is no row or it is NULL.
  public func integer(_ sql: String, binding values: [String] = []) throws(SQLiteError) -> Int64? {
    let statement = try prepare(sql)
    for (index, value) in values.enumerated() { try statement.bind(value, at: index) }
    guard try statement.step(), !statement.isNull(at: 0) else { return nil }
    return statement.integer(at: 0)
  }

  /// The first column of the first row as text; nil when there is no row or it is NULL.
  public func text(_ sql: String, binding values: [String] = []) throws(SQLiteError) -> String? {
    let statement = try prepare(sql)
    for (index, value) in values.enumerated() { try statement.bind(value, at: index) }
    guard try statement.step() else { return nil }
    return statement.text(at: 0)
  }
}
