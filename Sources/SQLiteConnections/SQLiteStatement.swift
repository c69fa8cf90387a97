import BuckiaBytes
import CBuckiaSQLite

/// The storage class of a value. See <https://sqlite.org/datatype3.html>.
package enum StorageClass: Int32, Sendable {
  case integer = 1
  case real = 2
  case text = 3
  case blob = 4
  case null = 5
}

/// A prepared statement: an owning handle over `sqlite3_stmt *`.
///
/// Parameters and columns count from 0 here, unlike parameters in C. Bytes that are returned belong to SQLite and are valid
/// until the next `step`, `reset` or type conversion of that column.
package struct SQLiteStatement: ~Copyable {
  private let statement: OpaquePointer
  private let routines: SQLiteRoutines
  private let handle: SQLiteHandle

  init(_ sql: String, on handle: SQLiteHandle, isPersistent: Bool) throws(SQLiteError) {
    var prepared: OpaquePointer?
    let flags = isPersistent ? UInt32(SQLITE_PREPARE_PERSISTENT) : 0
    try handle.check(handle.routines.prepare_v3(handle.pointer, sql, flags, &prepared), sql: sql)
    guard let prepared else {
      throw SQLiteError(code: SQLITE_MISUSE, message: "the statement is empty", path: handle.path, sql: sql)
    }
    statement = prepared
    routines = handle.routines
    self.handle = handle
  }

  deinit { routines.finalize(statement) }

  @inline(never)
  private func error(_ code: Int32) -> SQLiteError {
    handle.error(code, sql: routines.sql(statement).map { String(cString: $0) })
  }

  private func check(_ code: Int32) throws(SQLiteError) {
    if code != SQLITE_OK { throw error(code) }
  }

  // MARK: Running

  /// Advances to the next row.
  ///
  /// - Returns: True if there is a row; false when the statement is done.
  /// - Throws: `SQLiteError`; the statement has been reset then.
  package func step() throws(SQLiteError) -> Bool {
    switch routines.step(statement) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    case let code:
      defer { routines.reset(statement) }
      throw error(code)
    }
  }

  /// Runs a statement that returns no rows, and resets it.
  ///
  /// - Throws: `SQLiteError`; the statement has been reset then, too.
  package func run() throws(SQLiteError) {
    while try step() {}
    routines.reset(statement)
  }

  /// Runs a statement, skipping the rows it returns, and resets it. A refused row is a result here, not an error.
  ///
  /// - Returns: nil when it ran to its end; the reason when a constraint, a type or a size prevented that.
  /// - Throws: `SQLiteError` for everything else; the statement has been reset then, too.
  package func attempt() throws(SQLiteError) -> SQLiteRefusal? {
    defer { routines.reset(statement) }
    var code = routines.step(statement)
    while code == SQLITE_ROW { code = routines.step(statement) }
    guard code != SQLITE_DONE else { return nil }
    // Not every connection has extended result codes switched on.
    if let refusal = SQLiteRefusal(routines.extended_errcode(handle.pointer)) { return refusal }
    throw error(code)
  }

  /// SQLite's message about the refusal that ``attempt()`` has just returned.
  package var lastMessage: String { routines.errmsg(handle.pointer).map { String(cString: $0) } ?? "" }

  /// Makes the statement ready to run again. Bound values stay.
  package func reset() { routines.reset(statement) }

  /// Sets all parameters to NULL. Bytes bound without a copy must stay alive until this or a new binding.
  package func clearBindings() { routines.clear_bindings(statement) }

  /// The number of instructions that SQLite's virtual machine has run for the statement since the last call. It wraps
  /// at 2^32.
  ///
  /// See [`SQLITE_STMTSTATUS_VM_STEP`](https://sqlite.org/c3ref/c_stmtstatus_counter.html).
  package func takeInstructionCount() -> Int {
    Int(UInt32(bitPattern: routines.stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, true)))
  }

  // MARK: Binding

  /// The number of parameters.
  package var parameterCount: Int { Int(routines.bind_parameter_count(statement)) }

  /// The name of a parameter, with the character that begins it; nil for one without a name.
  package func parameterName(at index: Int) -> String? {
    routines.bind_parameter_name(statement, Int32(index + 1)).map { String(cString: $0) }
  }

  /// Binds NULL.
  package func bindNull(at index: Int) throws(SQLiteError) {
    try check(routines.bind_null(statement, Int32(index + 1)))
  }

  /// Binds an integer.
  package func bind(_ value: Int64, at index: Int) throws(SQLiteError) {
    try check(routines.bind_int64(statement, Int32(index + 1), value))
  }

  /// Binds a floating-point number. SQLite turns NaN into NULL.
  package func bind(_ value: Double, at index: Int) throws(SQLiteError) {
    try check(routines.bind_double(statement, Int32(index + 1), value))
  }

  /// Binds text, copying it.
  package func bind(_ value: String, at index: Int) throws(SQLiteError) {
    var value = value
    try check(value.withUTF8 { bindText(UnsafeRawBufferPointer($0), at: index, copying: true) })
  }

  /// Binds text from its bytes, valid UTF-8 or not, copying them.
  package func bind(textCopying bytes: UnsafeRawBufferPointer, at index: Int) throws(SQLiteError) {
    try check(bindText(bytes, at: index, copying: true))
  }

  /// Binds text without copying: the bytes must not change until the parameter is bound again or cleared.
  package func bind(textNoCopy bytes: UnsafeRawBufferPointer, at index: Int) throws(SQLiteError) {
    try check(bindText(bytes, at: index, copying: false))
  }

  /// Binds a blob, copying it.
  package func bind(_ value: [UInt8], at index: Int) throws(SQLiteError) {
    try check(value.withUnsafeBytes { bindBlob($0, at: index, copying: true) })
  }

  /// Binds a blob from its bytes, copying them.
  package func bind(blobCopying bytes: UnsafeRawBufferPointer, at index: Int) throws(SQLiteError) {
    try check(bindBlob(bytes, at: index, copying: true))
  }

  /// Binds a blob without copying: the bytes must not change until the parameter is bound again or cleared.
  ///
  /// An empty one is bound as an empty blob; a null pointer would make it NULL.
  package func bind(blobNoCopy bytes: UnsafeRawBufferPointer, at index: Int) throws(SQLiteError) {
    try check(bindBlob(bytes, at: index, copying: false))
  }

  /// Binds a value, copying it; NULL for nil.
  package func bind(_ value: (any SQLiteBindable)?, at index: Int) throws(SQLiteError) {
    if let value { try value.bind(to: self, at: index) } else { try bindNull(at: index) }
  }

  /// Binds values to the first parameters, copying them; NULL for nil.
  package func bind(_ values: [(any SQLiteBindable)?]) throws(SQLiteError) {
    for (index, value) in values.enumerated() { try bind(value, at: index) }
  }

  /// Binds the value in a column of another statement's current row, copying it unchanged.
  package func bind(column: Int, of row: borrowing SQLiteStatement, at index: Int) throws(SQLiteError) {
    guard row.handle.library == handle.library else { throw SQLiteError(fault: .foreignHandle) }
    try check(routines.bind_value(statement, Int32(index + 1), routines.column_value(row.statement, Int32(column))))
  }

  // A call for each value of each row: not one more than necessary.
  @inline(__always)
  private func bindText(_ bytes: UnsafeRawBufferPointer, at index: Int, copying: Bool) -> Int32 {
    routines.bind_text64(
      statement, Int32(index + 1), bytes.baseAddress ?? Self.nothing, UInt64(bytes.count), copying: copying)
  }

  @inline(__always)
  private func bindBlob(_ bytes: UnsafeRawBufferPointer, at index: Int, copying: Bool) -> Int32 {
    routines.bind_blob64(
      statement, Int32(index + 1), bytes.baseAddress ?? Self.nothing, UInt64(bytes.count), copying: copying)
  }

  /// A valid address for empty values, since a null pointer would mean NULL. Never written, never freed.
  nonisolated(unsafe) private static let nothing = UnsafeRawPointer(
    UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1))

  // MARK: Columns

  /// The number of columns.
  package var columnCount: Int { Int(routines.column_count(statement)) }

  /// The storage class of a value, before any conversion.
  package func storageClass(at index: Int) -> StorageClass {
    StorageClass(rawValue: routines.column_type(statement, Int32(index))) ?? .null
  }

  /// True if a value is NULL.
  package func isNull(at index: Int) -> Bool { routines.column_type(statement, Int32(index)) == SQLITE_NULL }

  /// A value as an integer.
  package func integer(at index: Int) -> Int64 { routines.column_int64(statement, Int32(index)) }

  /// A value as a floating-point number.
  package func real(at index: Int) -> Double { routines.column_double(statement, Int32(index)) }

  /// A value as text; nil for NULL. NUL characters are kept, invalid UTF-8 is replaced.
  package func text(at index: Int) -> String? {
    guard !isNull(at: index) else { return nil }
    return String(decoding: textBytes(at: index), as: UTF8.self)
  }

  /// True if a text value is valid UTF-8, and `text(at:)` therefore returns it unchanged.
  package func isWellFormedText(at index: Int) -> Bool {
    let bytes = textBytes(at: index)
    var text = String(decoding: bytes, as: UTF8.self)
    return text.withUTF8 { UnsafeRawBufferPointer($0).byteOrder(against: bytes) == 0 }
  }

  /// True if a text value contains an unpaired surrogate, which is invalid in UTF-16 and cannot be converted to UTF-8.
  ///
  /// Only useful in a database that stores UTF-16, and before the value is read as UTF-8, because SQLite converts in place.
  package func hasUnpairedSurrogate(at index: Int) -> Bool {
    guard storageClass(at: index) == .text, let start = routines.column_text16(statement, Int32(index)) else {
      return false
    }
    // Sound: SQLite returns that many bytes in native byte order, and keeps them until the next call for this column.
    let text = UnsafeRawBufferPointer(start: start, count: Int(routines.column_bytes16(statement, Int32(index))))
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
  package func blob(at index: Int) -> [UInt8] { Array(blobBytes(at: index)) }

  /// The UTF-8 of a text value, valid until the next step.
  package func textBytes(at index: Int) -> UnsafeRawBufferPointer {
    // The order matters: column_text converts to UTF-8, and column_bytes then counts that.
    let start = routines.column_text(statement, Int32(index))
    return UnsafeRawBufferPointer(start: start, count: Int(routines.column_bytes(statement, Int32(index))))
  }

  /// The bytes of a blob value, valid until the next step.
  package func blobBytes(at index: Int) -> UnsafeRawBufferPointer {
    let start = routines.column_blob(statement, Int32(index))
    return UnsafeRawBufferPointer(start: start, count: Int(routines.column_bytes(statement, Int32(index))))
  }
}

/// A value that a parameter of a statement can be given.
package protocol SQLiteBindable {
  /// Binds the value, copying it.
  func bind(to statement: borrowing SQLiteStatement, at index: Int) throws(SQLiteError)
}

extension Int64: SQLiteBindable {
  package func bind(to statement: borrowing SQLiteStatement, at index: Int) throws(SQLiteError) {
    try statement.bind(self, at: index)
  }
}

extension String: SQLiteBindable {
  package func bind(to statement: borrowing SQLiteStatement, at index: Int) throws(SQLiteError) {
    try statement.bind(self, at: index)
  }
}

extension [UInt8]: SQLiteBindable {
  package func bind(to statement: borrowing SQLiteStatement, at index: Int) throws(SQLiteError) {
    try statement.bind(self, at: index)
  }
}

/// The reason why SQLite did not write a row, which `SQLiteStatement.attempt` returns instead of throwing.
///
/// It is only a code, since there can be millions of refused rows. `SQLiteStatement.lastMessage` has SQLite's message
/// until the next call.
package struct SQLiteRefusal: Equatable, Sendable {
  /// The extended result code, such as 2067 for a UNIQUE violation: <https://sqlite.org/rescode.html>.
  package let code: Int32

  /// True if another row has the same unique value or key.
  package var isUniqueness: Bool {
    code == Self.primaryKey || code == Self.unique || code == Self.rowID
  }

  /// The code for a primary key that another row has.
  package static let primaryKey: Int32 = 1_555
  /// The code for a UNIQUE value that another row has.
  package static let unique: Int32 = 2_067
  /// The code for a rowid that another row has.
  package static let rowID: Int32 = 2_579

  /// Another row has the same key or unique value.
  package static let taken = SQLiteRefusal(known: unique)

  /// The table would store a different value than it was given.
  package static let altered = SQLiteRefusal(known: SQLITE_MISMATCH)

  private init(known code: Int32) { self.code = code }

  /// nil for codes that are not about the row.
  init?(_ code: Int32) {
    guard [SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_TOOBIG].contains(code & 0xff) else { return nil }
    self.code = code
  }
}

/// A statement that several can refer to, and that collections can hold.
package final class PreparedStatement {
  /// The statement.
  package let statement: SQLiteStatement

  /// Takes a statement.
  package init(_ statement: consuming SQLiteStatement) { self.statement = statement }
}
