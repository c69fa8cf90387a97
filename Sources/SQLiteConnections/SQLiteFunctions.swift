import CBuckiaSQLite

/// The arguments of one call of a function, valid while it runs.
public struct SQLiteArguments: ~Copyable {
  private let values: UnsafeMutablePointer<OpaquePointer?>?
  /// How many there are.
  public let count: Int

  fileprivate init(_ values: UnsafeMutablePointer<OpaquePointer?>?, count: Int) {
    self.values = values
    self.count = values == nil ? 0 : count
  }

  private subscript(index: Int) -> OpaquePointer? { (0..<count).contains(index) ? values?[index] : nil }

  /// The storage class of an argument; `null` for one that is not there.
  public func storageClass(at index: Int) -> StorageClass {
    self[index].flatMap { StorageClass(rawValue: sqlite3_value_type($0)) } ?? .null
  }

  /// An argument as an integer, converted as SQLite converts; 0 for one that is not there.
  public func integer(at index: Int) -> Int64 { self[index].map { sqlite3_value_int64($0) } ?? 0 }

  /// Gives the bytes of an argument to `body`; they must not be kept beyond it.
  ///
  /// - Returns: What `body` returns; nil without a call when the argument is no blob.
  public func withBlob<Result>(at index: Int, _ body: (RawSpan) -> Result?) -> Result? {
    guard let value = self[index], sqlite3_value_type(value) == SQLITE_BLOB else { return nil }
    // Sound: SQLite keeps the bytes as they are during the call. An empty blob has no address and no bytes.
    let start = sqlite3_value_blob(value)
    let bytes = UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_value_bytes(value)))
    return body(bytes.bytes)
  }
}

/// What a function returns to SQLite.
public enum SQLiteFunctionResult: Equatable, Sendable {
  case null
  case integer(Int64)
  case real(Double)
}

/// SQL functions of one's own on a connection, for a while: they are taken away when this goes out of scope.
///
/// ```swift
/// var functions = SQLiteFunctions(on: connection)
/// try functions.add("twice", argumentCount: 1) { .integer($0.integer(at: 0) &* 2) }
/// try connection.integer("SELECT twice(21)")
/// ```
///
/// The connection must outlive it. SQLite does not part with a function while any statement of the connection is
/// running: then it stays until the connection is closed, or until one of the same name takes its place.
/// See <https://sqlite.org/c3ref/create_function.html>.
public struct SQLiteFunctions: ~Copyable {
  private let handle: OpaquePointer
  private let path: String
  private var added: [(name: String, argumentCount: Int32)] = []

  /// Holds what SQLite calls back.
  private final class Box {
    let body: (borrowing SQLiteArguments) -> SQLiteFunctionResult
    init(_ body: @escaping (borrowing SQLiteArguments) -> SQLiteFunctionResult) { self.body = body }
  }

  /// Begins without a function.
  public init(on connection: borrowing SQLiteConnection) {
    handle = connection.handle
    path = connection.path
  }

  /// Adds a function that takes one value for each row it is called with (a scalar function).
  ///
  /// - Parameters:
  ///   - name: How SQL calls it.
  ///   - argumentCount: How many arguments it takes; nil for any number.
  ///   - isDeterministic: Whether equal arguments always give an equal result: SQLite may then call it less often.
  ///   - body: Computes the result. It must not use the connection, and may be called until the function is gone.
  /// - Throws: `SQLiteError`, busy when a function of that name and number of arguments is there already and a statement
  ///   is running.
  public mutating func add(
    _ name: String, argumentCount: Int?, isDeterministic: Bool = true,
    _ body: @escaping (borrowing SQLiteArguments) -> SQLiteFunctionResult
  ) throws(SQLiteError) {
    let count = Int32(argumentCount ?? -1)
    // SQLite releases the box when the function goes, and at once when it cannot be added.
    let box = Unmanaged.passRetained(Box(body)).toOpaque()
    let code = sqlite3_create_function_v2(
      handle, name, count, SQLITE_UTF8 | (isDeterministic ? SQLITE_DETERMINISTIC : 0), box,
      { context, count, values in
        // Sound: the box lives as long as the function does.
        guard let context, let box = sqlite3_user_data(context) else { return }
        let arguments = SQLiteArguments(values, count: Int(count))
        switch Unmanaged<Box>.fromOpaque(box).takeUnretainedValue().body(arguments) {
        case .null: sqlite3_result_null(context)
        case .integer(let value): sqlite3_result_int64(context, value)
        case .real(let value): sqlite3_result_double(context, value)
        }
      }, nil, nil,
      { box in
        if let box { Unmanaged<Box>.fromOpaque(box).release() }
      })
    guard code == SQLITE_OK else { throw SQLiteError(handle: handle, code: code, path: path) }
    added.append((name, count))
  }

  /// Takes the functions away.
  ///
  /// - Returns: The names of those that SQLite would not part with, because a statement of the connection is running.
  public mutating func removeAll() -> [String] {
    var kept: [String] = []
    for function in added {
      let code = sqlite3_create_function_v2(
        handle, function.name, function.argumentCount, SQLITE_UTF8, nil, nil, nil, nil, nil)
      if code != SQLITE_OK { kept.append(function.name) }
    }
    added = []
    return kept
  }

  deinit {
    for function in added {
      sqlite3_create_function_v2(handle, function.name, function.argumentCount, SQLITE_UTF8, nil, nil, nil, nil, nil)
    }
  }
}
