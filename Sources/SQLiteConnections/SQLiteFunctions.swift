import CBuckiaSQLite

/// Application-defined SQL functions on a connection, which are removed when this value goes out of scope.
///
/// ```swift
/// var functions = SQLiteFunctions(on: connection)
/// try functions.add("twice", argumentCount: 1) { .integer($0.integer(at: 0) &* 2) }
/// try connection.integer("SELECT twice(21)")
/// ```
///
/// The connection must outlive it. SQLite does not remove a function while a statement of the connection is running: the
/// function then stays until the connection is closed, or until one of the same name takes its place.
/// See <https://sqlite.org/c3ref/create_function.html>.
package struct SQLiteFunctions: ~Copyable {
  private let handle: SQLiteHandle
  private var added: [(name: String, argumentCount: Int32, body: SQLiteFunctionBody)] = []

  /// Begins with no function.
  package init(on connection: borrowing SQLiteConnection) { handle = connection.handle }

  /// Adds a scalar function.
  ///
  /// - Parameters:
  ///   - name: Its name in SQL.
  ///   - argumentCount: How many arguments it takes; nil for any number.
  ///   - isDeterministic: Whether equal arguments always give an equal result, so that SQLite may call it less often.
  ///   - body: Computes the result. It must not use the connection, and may be called until the function is removed.
  /// - Throws: `SQLiteError`, busy when there is somebody else's function of that name and number of arguments already and a
  ///   statement is running.
  package mutating func add(
    _ name: String, argumentCount: Int?, isDeterministic: Bool = true,
    _ body: @escaping (borrowing SQLiteArguments) -> SQLiteFunctionResult
  ) throws(SQLiteError) {
    let count = Int32(argumentCount ?? -1)
    let new = SQLiteFunctionBody(body)
    let code = Self.create(name, count, isDeterministic ? SQLITE_DETERMINISTIC : 0, on: handle, new)
    if code & 0xff == SQLITE_BUSY, let kept = KeptFunctions.shared.reuse(keptName(name, count), for: body) {
      added.append((name, count, kept))
      return
    }
    try handle.check(code)
    added.append((name, count, new))
  }

  private func keptName(_ name: String, _ argumentCount: Int32) -> KeptFunctions.Name {
    KeptFunctions.Name(connection: handle.pointer, name: name, argumentCount: argumentCount)
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
    create(name, 0, SQLITE_INNOCUOUS, on: handle, SQLiteFunctionBody { _ in body() })
  }

  /// Adds a function. SQLite releases the body when it removes the function, and at once when it cannot be added.
  static func create(
    _ name: String, _ argumentCount: Int32, _ flags: Int32, on handle: SQLiteHandle, _ body: SQLiteFunctionBody
  ) -> Int32 {
    let box = Unmanaged.passRetained(body).toOpaque()
    let call = calls[Int(handle.library.number)]
    return handle.routines.create_function_v2(handle.pointer, name, argumentCount, SQLITE_UTF8 | flags, box, call) {
      box in
      if let box { Unmanaged<SQLiteFunctionBody>.fromOpaque(box).release() }
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
    // Sound: the body lives as long as the function does.
    guard let context, let box = routines.user_data(context) else { return }
    let body = Unmanaged<SQLiteFunctionBody>.fromOpaque(box).takeUnretainedValue()
    do {
      try body.call(SQLiteArguments(values, count: Int(count), routines)).set(on: context, routines)
    } catch {
      SQLiteFunctionFailure(error).set(on: context, routines)
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
    added.compactMap { name, count, body in
      let code = handle.routines.create_function_v2(handle.pointer, name, count, SQLITE_UTF8, nil, nil, nil)
      guard code != SQLITE_OK else { return nil }
      KeptFunctions.shared.note(body, as: keptName(name, count))
      return name
    }
  }
}
