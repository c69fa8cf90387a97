import CBuckiaSQLite

/// The arguments of one call of a function, valid while it runs.
package struct SQLiteArguments: ~Copyable {
  private let values: UnsafeMutablePointer<OpaquePointer?>?
  private let routines: SQLiteRoutines
  /// How many there are.
  package let count: Int

  fileprivate init(_ values: UnsafeMutablePointer<OpaquePointer?>?, count: Int, _ routines: SQLiteRoutines) {
    self.values = values
    self.routines = routines
    self.count = values == nil ? 0 : count
  }

  private subscript(index: Int) -> OpaquePointer? { (0..<count).contains(index) ? values?[index] : nil }

  /// The storage class of an argument; `null` for a missing one.
  package func storageClass(at index: Int) -> StorageClass {
    self[index].flatMap { StorageClass(rawValue: routines.value_type($0)) } ?? .null
  }

  /// An argument as an integer, converted as SQLite does it; 0 for a missing one.
  package func integer(at index: Int) -> Int64 { self[index].map { routines.value_int64($0) } ?? 0 }

  /// Passes the bytes of an argument to `body`; they must not be kept beyond it.
  ///
  /// - Returns: What `body` returns; nil without a call when the argument is not a blob.
  package func withBlob<Result>(at index: Int, _ body: (RawSpan) -> Result?) -> Result? {
    guard let value = self[index], routines.value_type(value) == SQLITE_BLOB else { return nil }
    // Sound: SQLite keeps the bytes as they are during the call. An empty blob has no address and no bytes.
    let start = routines.value_blob(value)
    let bytes = UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(routines.value_bytes(value)))
    return body(bytes.bytes)
  }
}

/// What a function returns to SQLite.
package enum SQLiteFunctionResult: Equatable, Sendable {
  case null
  case integer(Int64)
  case real(Double)
}

/// Application-defined SQL functions on a connection, which are removed when this value goes out of scope.
///
/// ```swift
/// var functions = SQLiteFunctions(on: connection)
/// try functions.add("twice", argumentCount: 1) { .integer($0.integer(at: 0) &* 2) }
/// try connection.integer("SELECT twice(21)")
/// ```
///
/// The connection must outlive it. SQLite does not remove a function while a statement of the connection is running: the
/// function then stays until the connection is closed, or until one of the same name replaces it.
/// See <https://sqlite.org/c3ref/create_function.html>.
package struct SQLiteFunctions: ~Copyable {
  private let handle: SQLiteHandle
  private var added: [(name: String, argumentCount: Int32)] = []

  /// Holds what SQLite calls back.
  private final class Box {
    let body: (borrowing SQLiteArguments) -> SQLiteFunctionResult
    init(_ body: @escaping (borrowing SQLiteArguments) -> SQLiteFunctionResult) { self.body = body }
  }

  /// Begins with no function.
  package init(on connection: borrowing SQLiteConnection) { handle = connection.handle }

  /// Adds a scalar function.
  ///
  /// - Parameters:
  ///   - name: Its name in SQL.
  ///   - argumentCount: How many arguments it takes; nil for any number.
  ///   - isDeterministic: Whether equal arguments always give an equal result, so that SQLite may call it less often.
  ///   - body: Computes the result. It must not use the connection, and may be called until the function is removed.
  /// - Throws: `SQLiteError`, busy when there is a function of that name and number of arguments already and a statement is
  ///   running.
  package mutating func add(
    _ name: String, argumentCount: Int?, isDeterministic: Bool = true,
    _ body: @escaping (borrowing SQLiteArguments) -> SQLiteFunctionResult
  ) throws(SQLiteError) {
    let count = Int32(argumentCount ?? -1)
    try handle.check(Self.create(name, count, isDeterministic ? SQLITE_DETERMINISTIC : 0, on: handle, body))
    added.append((name, count))
  }

  /// Adds a scalar function without arguments that stays until the connection is closed.
  ///
  /// The schema may use it, also where it is not trusted: it tells nothing and does nothing that could do harm
  /// ([`SQLITE_INNOCUOUS`](https://sqlite.org/c3ref/c_deterministic.html)).
  ///
  /// - Returns: SQLite's result code: busy when there is a function of that name already and a statement is running.
  static func addInnocuous(
    _ name: String, on handle: SQLiteHandle, _ body: @escaping () -> SQLiteFunctionResult
  ) -> Int32 {
    create(name, 0, SQLITE_INNOCUOUS, on: handle) { _ in body() }
  }

  private static func create(
    _ name: String, _ argumentCount: Int32, _ flags: Int32, on handle: SQLiteHandle,
    _ body: @escaping (borrowing SQLiteArguments) -> SQLiteFunctionResult
  ) -> Int32 {
    // SQLite releases the box when it removes the function, and at once when it cannot be added.
    let box = Unmanaged.passRetained(Box(body)).toOpaque()
    let call = calls[Int(handle.library.number)]
    return handle.routines.create_function_v2(handle.pointer, name, argumentCount, SQLITE_UTF8 | flags, box, call) {
      box in
      if let box { Unmanaged<Box>.fromOpaque(box).release() }
    }
  }

  private typealias Call = @convention(c) (OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?) -> Void

  /// What SQLite calls, one function for each copy of it: only a function of that copy can tell the box that belongs to a call.
  private static let calls: [Call] = [
    { call(library: 0, $0, $1, $2) }, { call(library: 1, $0, $1, $2) }, { call(library: 2, $0, $1, $2) },
    { call(library: 3, $0, $1, $2) }, { call(library: 4, $0, $1, $2) }, { call(library: 5, $0, $1, $2) },
    { call(library: 6, $0, $1, $2) }, { call(library: 7, $0, $1, $2) },
  ]

  private static func call(
    library number: Int32, _ context: OpaquePointer?, _ count: Int32, _ values: UnsafeMutablePointer<OpaquePointer?>?
  ) {
    let routines = buckia_routines(number)
    // Sound: the box lives as long as the function does.
    guard let context, let box = routines.user_data(context) else { return }
    let arguments = SQLiteArguments(values, count: Int(count), routines)
    switch Unmanaged<Box>.fromOpaque(box).takeUnretainedValue().body(arguments) {
    case .null: routines.result_null(context)
    case .integer(let value): routines.result_int64(context, value)
    case .real(let value): routines.result_double(context, value)
    }
  }

  /// Removes the functions.
  ///
  /// - Returns: The names of those that SQLite keeps, because a statement of the connection is running.
  package mutating func removeAll() -> [String] {
    defer { added = [] }
    return kept()
  }

  deinit { _ = kept() }

  /// Removes the functions, and returns those that stay.
  private func kept() -> [String] {
    added.compactMap { name, count in
      let code = handle.routines.create_function_v2(handle.pointer, name, count, SQLITE_UTF8, nil, nil, nil)
      return code == SQLITE_OK ? nil : name
    }
  }
}
