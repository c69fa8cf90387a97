import BuckiaBytes
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
  ///   - argumentCount: The number of arguments; nil for any number.
  ///   - isDeterministic: True if equal arguments always give an equal result: SQLite can then save calls.
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
    if code & 0xff == SQLITE_BUSY, let kept = KeptFunctions.reuse(keptName(name, count), for: body) {
      added.append((name, count, kept))
      return
    }
    try handle.check(code)
    added.append((name, count, new))
  }

  private func keptName(_ name: String, _ argumentCount: Int32) -> KeptFunctions.Name {
    KeptFunctions.Name(connection: handle.pointer, name: name, argumentCount: argumentCount)
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

  /// The C functions that SQLite calls, one for each copy of SQLite: only a function of that copy can find the box of a
  /// call.
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
  /// - Returns: The names of those that SQLite retains, because a statement of the connection is running.
  package mutating func removeAll() -> [String] {
    defer { added = [] }
    return kept()
  }

  deinit { _ = kept() }

  /// Removes the functions, and returns the retained ones.
  private func kept() -> [String] {
    added.compactMap { name, count, body in
      let code = handle.routines.create_function_v2(handle.pointer, name, count, SQLITE_UTF8, nil, nil, nil)
      guard code != SQLITE_OK else { return nil }
      KeptFunctions.note(body, as: keptName(name, count))
      return name
    }
  }
}

/// The places from which a function, or a table-valued one, may be called.
package enum SQLiteFunctionAccess: Sendable {
  /// Everywhere, also an untrusted schema: it has no effects, and its result depends only on its arguments.
  case innocuous
  /// Everywhere but in a schema that is not trusted.
  case normal
  /// In statements of the program only, not in views, triggers and other parts of a schema: it has effects, or reads files.
  case direct
}

extension SQLiteConnection {
  /// Adds a scalar function that stays until the connection is closed.
  ///
  /// - Parameters:
  ///   - name: Its name in SQL.
  ///   - argumentCounts: With how many arguments it may be called.
  ///   - access: The places from which it may be called.
  ///   - isDeterministic: True if equal arguments always give an equal result.
  ///   - body: Computes the result; an error ends the statement with its message.
  /// - Throws: `SQLiteError`.
  package func addFunction(
    _ name: String, argumentCounts: ClosedRange<Int>, access: SQLiteFunctionAccess, isDeterministic: Bool = false,
    _ body: @escaping (borrowing SQLiteArguments) throws -> SQLiteFunctionResult
  ) throws(SQLiteError) {
    var flags: Int32 =
      switch access {
      case .innocuous: SQLITE_INNOCUOUS
      case .normal: 0
      case .direct: SQLITE_DIRECTONLY
      }
    if isDeterministic { flags |= SQLITE_DETERMINISTIC }
    for count in argumentCounts {
      try handle.check(SQLiteFunctions.create(name, Int32(count), flags, on: handle, SQLiteFunctionBody(body)))
    }
  }

  /// Adds a table-valued function that stays until the connection is closed.
  ///
  /// - Throws: `SQLiteError`.
  package func addTableFunction(_ function: SQLiteTableFunction) throws(SQLiteError) {
    try handle.check(function.add(to: handle))
  }

  /// True if a statement of the connection is running that writes; one that only reads is not meant.
  package var isWritingStatementRunning: Bool {
    var next = handle.routines.next_stmt(handle.pointer, nil)
    while let statement = next {
      if handle.routines.stmt_busy(statement) != 0, handle.routines.stmt_readonly(statement) == 0 { return true }
      next = handle.routines.next_stmt(handle.pointer, statement)
    }
    return false
  }

  /// True if any database of the connection is being read or written: by the open transaction, or by a statement that is running.
  package var hasLocks: Bool { handle.routines.txn_state(handle.pointer, nil) != SQLITE_TXN_NONE }
}

/// What SQLite calls for a function. SQLite holds it until the function is removed.
final class SQLiteFunctionBody {
  /// Computes the result.
  typealias Call = (borrowing SQLiteArguments) throws -> SQLiteFunctionResult

  /// The present implementation.
  var call: Call
  /// Its name among the retained functions; nil if it is not retained.
  var keptName: KeptFunctions.Name?

  init(_ call: @escaping Call) { self.call = call }

  deinit { if let keptName { KeptFunctions.forget(keptName, ObjectIdentifier(self)) } }
}

/// The arguments of one call of a function, valid while it runs.
package struct SQLiteArguments: ~Copyable {
  private let values: UnsafeMutablePointer<OpaquePointer?>?
  private let routines: SQLiteRoutines
  /// The number of them.
  package let count: Int

  init(_ values: UnsafeMutablePointer<OpaquePointer?>?, count: Int, _ routines: SQLiteRoutines) {
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

  /// An argument as text, numbers converted as SQLite does it; nil for NULL and for a missing one.
  package func text(at index: Int) -> String? {
    guard let value = self[index], storageClass(at: index) != .null, let start = routines.value_text(value) else {
      return nil
    }
    // Sound: SQLite keeps the text and its size until the next conversion of this value.
    let bytes = UnsafeRawBufferPointer(start: start, count: Int(routines.value_bytes(value)))
    return String(decoding: bytes, as: UTF8.self)
  }

  /// A copy of the bytes of an argument; nil if it is not a blob.
  package func blob(at index: Int) -> [UInt8]? {
    withBlob(at: index) { bytes in bytes.withUnsafeBytes { Array($0) } }
  }

  /// Passes the bytes of an argument to `body`; they must not be kept beyond it.
  ///
  /// - Returns: What `body` returns; nil without a call when the argument is not a blob.
  package func withBlob<Result>(at index: Int, _ body: (RawSpan) -> Result?) -> Result? {
    guard let value = self[index], routines.value_type(value) == SQLITE_BLOB else { return nil }
    // Sound: SQLite does not change the bytes during the call. An empty blob has no address and no bytes.
    let start = routines.value_blob(value)
    let bytes = UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(routines.value_bytes(value)))
    return body(bytes.bytes)
  }
}

/// The result of a function, or of a column of a virtual table.
package enum SQLiteFunctionResult: Equatable, Sendable {
  case null
  case integer(Int64)
  case real(Double)
  /// Text as bytes, which should be UTF-8 and are passed on unchecked.
  case utf8([UInt8])
  case blob([UInt8])

  /// Text; NULL for nil.
  package static func text(_ text: String?) -> SQLiteFunctionResult { text.map { .utf8(Array($0.utf8)) } ?? .null }

  /// Hands the value to SQLite, which copies it.
  func set(on context: OpaquePointer, _ routines: SQLiteRoutines) {
    switch self {
    case .null: routines.result_null(context)
    case .integer(let value): routines.result_int64(context, value)
    case .real(let value): routines.result_double(context, value)
    case .utf8(let bytes):
      bytes.withUnsafeBytes { routines.result_text64(context, $0.baseAddress, UInt64($0.count)) }
    case .blob(let bytes):
      bytes.withUnsafeBytes { routines.result_blob64(context, $0.baseAddress, UInt64($0.count)) }
    }
  }
}

/// An error that a function ends its statement with.
package struct SQLiteFunctionFailure: Error, CustomStringConvertible {
  /// The error and the remedy.
  package let message: String
  /// True if trying again later can help.
  package let isBusy: Bool

  package var description: String { message }

  /// Creates an error.
  package init(_ message: String, isBusy: Bool = false) {
    self.message = message
    self.isBusy = isBusy
  }

  /// Creates a failure with an error's description.
  init(_ error: any Error) {
    switch error {
    case let failure as SQLiteFunctionFailure: self = failure
    case let error as SQLiteError: self.init(error.description, isBusy: error.isBusy)
    default: self.init(String(describing: error))
    }
  }

  /// The result code of the statement. Codes by which SQLite would also roll the transaction of the app back are none of these.
  var code: Int32 { isBusy ? SQLITE_BUSY : SQLITE_ERROR }

  /// Hands the error to SQLite, which copies the message.
  func set(on context: OpaquePointer, _ routines: SQLiteRoutines) {
    routines.result_error(context, message)
    // The message stays.
    routines.result_error_code(context, code)
  }
}

/// The functions that SQLite has kept although they were to be removed, because a statement of their connection was running.
///
/// SQLite does not replace such a function either while any statement runs, and an extension is only called by
/// statements. A new function of the same name therefore replaces the implementation in the retained one.
///
/// A body is only changed on the thread that uses its connection.
enum KeptFunctions {
  struct Name: Hashable {
    let connection: OpaquePointer
    let name: String
    let argumentCount: Int32
  }

  private struct Kept {
    let identity: ObjectIdentifier
    weak var body: SQLiteFunctionBody?
  }

  private static let kept = Guarded<[Name: Kept]>([:])

  /// Records that SQLite retains a function.
  static func note(_ body: SQLiteFunctionBody, as name: Name) {
    body.keptName = name
    kept.withLock { $0[name] = Kept(identity: ObjectIdentifier(body), body: body) }
  }

  /// Gives a retained function a new implementation.
  ///
  /// - Returns: It; nil if no function of that name was kept.
  static func reuse(_ name: Name, for call: @escaping SQLiteFunctionBody.Call) -> SQLiteFunctionBody? {
    guard let body = kept.withLock({ $0[name]?.body }) else { return nil }
    body.call = call
    return body
  }

  /// Records that SQLite releases a function. A newer one of the same name stays: a connection can be opened at the
  /// address of a closed one.
  static func forget(_ name: Name, _ identity: ObjectIdentifier) {
    kept.withLock { if $0[name]?.identity == identity { $0[name] = nil } }
  }
}

/// An SQL function without arguments that tells triggers the state of their connection: 1 during an operation, else 0.
///
/// ```swift
/// try copying.add(to: connection)
/// copying.begin(on: connection)
/// try connection.integer("SELECT is_copying()")  // 1
/// copying.end(on: connection)
/// ```
package final class SQLiteStateFunction: Sendable {
  /// Its name in SQL, a plain word.
  package let name: String
  private let counts = ConnectionCounts()

  /// Creates a function, which is on no connection yet.
  package init(named name: String) { self.name = name }

  /// Adds the function to a connection, until it is removed or the connection is closed. It does not replace a function
  /// of this name.
  ///
  /// - Returns: True if it was added.
  /// - Throws: `SQLiteError` when there is no memory for it.
  @discardableResult
  package func add(to connection: borrowing SQLiteConnection) throws(SQLiteError) -> Bool {
    guard !isThere(on: connection) else { return false }
    let pointer = connection.handle.pointer
    // Also an untrusted schema may use it: it has no effects and reveals nothing
    // (https://sqlite.org/c3ref/c_deterministic.html).
    let body = SQLiteFunctionBody { [counts] _ in .integer(counts[pointer] == 0 ? 0 : 1) }
    let code = SQLiteFunctions.create(name, 0, SQLITE_INNOCUOUS, on: connection.handle, body)
    // It is there after all, and a statement is running: an authorizer of the app's may have kept it from being seen.
    if code & 0xff == SQLITE_BUSY { return false }
    try connection.handle.check(code)
    return true
  }

  /// Removes the function from a connection. While a statement of the connection is running, or after a write to an
  /// R-tree in the open transaction, SQLite retains it: then it returns 0.
  package func remove(from connection: borrowing SQLiteConnection) {
    _ = connection.handle.routines.create_function_v2(
      connection.handle.pointer, name, 0, SQLITE_UTF8, nil, nil, nil)
  }

  /// True if statements of the connection can call it. Adding it again would make SQLite prepare all of them again.
  private func isThere(on connection: borrowing SQLiteConnection) -> Bool {
    do {
      _ = try connection.prepare("SELECT \(name)()")
      return true
    } catch {
      return false
    }
  }

  /// Says that it is going on on a connection. It may begin several times, and has ended when each of them has.
  package func begin(on connection: borrowing SQLiteConnection) { counts.begin(connection.handle.pointer) }

  /// Says that it has ended.
  package func end(on connection: borrowing SQLiteConnection) { counts.end(connection.handle.pointer) }
}

/// The number of operations in progress on each connection of the process.
///
/// On a connection that is closed all has ended before.
struct ConnectionCounts: Sendable {
  /// The counts above 0.
  private let counts = Guarded<[OpaquePointer: Int]>([:])

  /// The count of a connection.
  subscript(_ connection: OpaquePointer) -> Int { counts.withLock { $0[connection, default: 0] } }

  /// Adds one to the count of a connection.
  func begin(_ connection: OpaquePointer) { counts.withLock { $0[connection, default: 0] += 1 } }

  /// Decrements the count of a connection.
  ///
  /// - Returns: The remaining count.
  @discardableResult
  func end(_ connection: OpaquePointer) -> Int {
    counts.withLock { counts in
      let left = max(0, counts[connection, default: 0] - 1)
      counts[connection] = left > 0 ? left : nil
      return left
    }
  }
}
