import CBuckiaSQLite

/// The rows of one call of a table-valued function, one after the other.
package protocol SQLiteRows: AnyObject {
  /// Moves on to the next row.
  ///
  /// - Returns: false after the last one.
  func advance() throws -> Bool

  /// The value of a column in the row.
  ///
  /// - Parameter column: Its place among the columns of the function, from 0.
  func value(at column: Int) -> SQLiteFunctionResult
}

/// A table-valued function: a virtual table that is there without being created, and whose arguments are hidden columns.
///
/// ```swift
/// try connection.addTableFunction(
///   SQLiteTableFunction("digits", columns: ["digit"], parameters: ["number"], required: 1, access: .innocuous) {
///     arguments in Digits(of: arguments.integer(at: 0))
///   })
/// try connection.execute("SELECT digit FROM digits(42)")
/// ```
///
/// See <https://sqlite.org/vtab.html#tabfunc2>.
package struct SQLiteTableFunction {
  /// Its name in SQL.
  let name: String
  /// Its columns.
  let columns: [String]
  /// The names of its arguments.
  let parameters: [String]
  /// The number of required arguments.
  let required: Int
  /// The places from which it may be called.
  let access: SQLiteFunctionAccess
  /// Begins a call.
  let rows: (borrowing SQLiteArguments) throws -> any SQLiteRows

  /// Creates a table function.
  ///
  /// - Parameters:
  ///   - name: Its name in SQL.
  ///   - columns: The names of its columns.
  ///   - parameters: The names of its arguments.
  ///   - required: The number of these that are required.
  ///   - access: The places from which it may be called.
  ///   - rows: Begins a call; an error ends the statement with its message.
  package init(
    _ name: String, columns: [String], parameters: [String] = [], required: Int = 0, access: SQLiteFunctionAccess,
    rows: @escaping (borrowing SQLiteArguments) throws -> any SQLiteRows
  ) {
    self.name = name
    self.columns = columns
    self.parameters = parameters
    self.required = required
    self.access = access
    self.rows = rows
  }

  /// The definition for SQLite.
  var declaration: String {
    let all = columns.map { "\"\($0)\"" } + parameters.map { "\"\($0)\" HIDDEN" }
    return "CREATE TABLE x(\(all.joined(separator: ", ")))"
  }

  /// Adds the function to a connection.
  ///
  /// - Returns: SQLite's result code.
  func add(to handle: SQLiteHandle) -> Int32 {
    // SQLite releases the module when it is replaced or the connection is closed, and at once when it cannot be added.
    let module = Unmanaged.passRetained(Module(self, handle.routines)).toOpaque()
    return handle.routines.create_module_v2(handle.pointer, name, ModuleMethods.shared.table, module) { module in
      if let module { Unmanaged<Module>.fromOpaque(module).release() }
    }
  }

  /// What SQLite holds of the function.
  fileprivate final class Module {
    let function: SQLiteTableFunction
    let routines: SQLiteRoutines

    init(_ function: SQLiteTableFunction, _ routines: SQLiteRoutines) {
      self.function = function
      self.routines = routines
    }

    func connect(_ handle: OpaquePointer, _ table: UnsafeMutablePointer<UnsafeMutablePointer<sqlite3_vtab>?>) -> Int32 {
      let code = routines.declare_vtab(handle, function.declaration)
      guard code == SQLITE_OK else { return code }
      switch function.access {
      case .innocuous: routines.vtab_config(handle, SQLITE_VTAB_INNOCUOUS)
      case .normal: break
      case .direct: routines.vtab_config(handle, SQLITE_VTAB_DIRECTONLY)
      }
      let made = UnsafeMutablePointer<buckia_vtab>.allocate(capacity: 1)
      made.initialize(to: buckia_vtab(base: sqlite3_vtab(), context: Unmanaged.passRetained(self).toOpaque()))
      // Sound: a `buckia_vtab` begins with the structure that SQLite knows.
      table.pointee = UnsafeMutableRawPointer(made).assumingMemoryBound(to: sqlite3_vtab.self)
      return SQLITE_OK
    }

    /// Selects the arguments that a plan can pass: their numbers are the bits of `idxNum`.
    func plan(_ info: UnsafeMutablePointer<sqlite3_index_info>) -> Int32 {
      guard let constraints = info.pointee.aConstraint, let usage = info.pointee.aConstraintUsage else {
        return SQLITE_OK
      }
      var places = [Int?](repeating: nil, count: function.parameters.count)
      for index in 0..<Int(info.pointee.nConstraint) {
        let parameter = Int(constraints[index].iColumn) - function.columns.count
        guard places.indices.contains(parameter), constraints[index].op == UInt8(SQLITE_INDEX_CONSTRAINT_EQ) else {
          continue
        }
        // An argument whose value this plan does not know yet: another plan does.
        guard constraints[index].usable != 0 else { return SQLITE_CONSTRAINT }
        places[parameter] = index
      }
      var passed: Int32 = 0
      for (parameter, place) in places.enumerated() {
        guard let place else { continue }
        info.pointee.idxNum |= 1 << Int32(parameter)
        passed += 1
        usage[place].argvIndex = passed
        usage[place].omit = 1
      }
      info.pointee.estimatedCost = 1_000
      info.pointee.estimatedRows = 1_000
      return SQLITE_OK
    }
  }

  /// One reading of the function's rows.
  fileprivate final class Cursor {
    let module: Module
    private var rows: (any SQLiteRows)?
    private(set) var rowNumber: Int64 = 0

    init(_ module: Module) { self.module = module }

    var isAtEnd: Bool { rows == nil }

    func begin(_ passed: Int32, _ values: UnsafeMutablePointer<OpaquePointer?>?, count: Int) throws {
      let function = module.function
      var arguments = [OpaquePointer?](repeating: nil, count: function.parameters.count)
      var given = 0
      for parameter in function.parameters.indices where passed & 1 << Int32(parameter) != 0 && given < count {
        arguments[parameter] = values?[given]
        given += 1
      }
      for parameter in 0..<function.required where passed & 1 << Int32(parameter) == 0 {
        throw SQLiteFunctionFailure("\(function.name) needs the argument \(function.parameters[parameter])")
      }
      rowNumber = 0
      rows = nil
      rows = try arguments.withUnsafeMutableBufferPointer { buffer in
        try function.rows(SQLiteArguments(buffer.baseAddress, count: buffer.count, module.routines))
      }
      try advance()
    }

    func advance() throws {
      guard let rows else { return }
      if try rows.advance() { rowNumber += 1 } else { self.rows = nil }
    }

    func value(at column: Int) -> SQLiteFunctionResult {
      // A hidden column is an argument, which the caller knows.
      guard let rows, module.function.columns.indices.contains(column) else { return .null }
      return rows.value(at: column)
    }
  }
}

/// What SQLite calls of the module of every table-valued function. Nothing here throws: an error becomes the table's message.
///
/// `@unchecked Sendable`: the table is filled once, before anybody else sees it.
private final class ModuleMethods: @unchecked Sendable {
  static let shared = ModuleMethods()
  // It lives as long as the process.
  let table = UnsafeMutablePointer<sqlite3_module>.allocate(capacity: 1)

  private typealias Module = SQLiteTableFunction.Module
  private typealias Cursor = SQLiteTableFunction.Cursor

  private init() {
    var methods = sqlite3_module()
    // Without xCreate the table is there by itself, and cannot be created.
    methods.xConnect = { handle, module, _, _, table, _ in
      guard let handle, let module, let table else { return SQLITE_MISUSE }
      return Unmanaged<Module>.fromOpaque(module).takeUnretainedValue().connect(handle, table)
    }
    methods.xBestIndex = { table, info in
      guard let info, let module = ModuleMethods.module(table) else { return SQLITE_MISUSE }
      return module.plan(info)
    }
    methods.xDisconnect = { table in
      guard let table else { return SQLITE_OK }
      // Sound: the table was made by `connect`, and SQLite gives it back once.
      let made = UnsafeMutableRawPointer(table).assumingMemoryBound(to: buckia_vtab.self)
      if let context = made.pointee.context { Unmanaged<Module>.fromOpaque(context).release() }
      made.deinitialize(count: 1)
      made.deallocate()
      return SQLITE_OK
    }
    methods.xOpen = { table, cursor in
      guard let cursor, let module = ModuleMethods.module(table) else { return SQLITE_MISUSE }
      let made = UnsafeMutablePointer<buckia_vtab_cursor>.allocate(capacity: 1)
      made.initialize(
        to: buckia_vtab_cursor(
          base: sqlite3_vtab_cursor(), context: Unmanaged.passRetained(Cursor(module)).toOpaque()))
      // Sound: a `buckia_vtab_cursor` begins with the structure that SQLite knows.
      cursor.pointee = UnsafeMutableRawPointer(made).assumingMemoryBound(to: sqlite3_vtab_cursor.self)
      return SQLITE_OK
    }
    methods.xClose = { cursor in
      guard let cursor else { return SQLITE_OK }
      // Sound: the cursor was made by `xOpen`, and SQLite gives it back once.
      let made = UnsafeMutableRawPointer(cursor).assumingMemoryBound(to: buckia_vtab_cursor.self)
      if let context = made.pointee.context { Unmanaged<Cursor>.fromOpaque(context).release() }
      made.deinitialize(count: 1)
      made.deallocate()
      return SQLITE_OK
    }
    methods.xFilter = { pointer, passed, _, count, values in
      ModuleMethods.run(pointer) { try $0.begin(passed, values, count: Int(count)) }
    }
    methods.xNext = { pointer in ModuleMethods.run(pointer) { try $0.advance() } }
    methods.xEof = { pointer in ModuleMethods.cursor(pointer)?.isAtEnd ?? true ? 1 : 0 }
    methods.xColumn = { pointer, context, column in
      guard let context, let cursor = ModuleMethods.cursor(pointer) else { return SQLITE_MISUSE }
      cursor.value(at: Int(column)).set(on: context, cursor.module.routines)
      return SQLITE_OK
    }
    methods.xRowid = { pointer, row in
      guard let row, let cursor = ModuleMethods.cursor(pointer) else { return SQLITE_MISUSE }
      row.pointee = cursor.rowNumber
      return SQLITE_OK
    }
    table.initialize(to: methods)
  }

  private static func module(_ table: UnsafeMutablePointer<sqlite3_vtab>?) -> Module? {
    // Sound: the table was made by `connect`, and holds the module until `xDisconnect`.
    guard let table else { return nil }
    let made = UnsafeMutableRawPointer(table).assumingMemoryBound(to: buckia_vtab.self)
    return made.pointee.context.map { Unmanaged<Module>.fromOpaque($0).takeUnretainedValue() }
  }

  private static func cursor(_ pointer: UnsafeMutablePointer<sqlite3_vtab_cursor>?) -> Cursor? {
    // Sound: the cursor was made by `xOpen`, and holds its context until `xClose`.
    guard let pointer else { return nil }
    let made = UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: buckia_vtab_cursor.self)
    return made.pointee.context.map { Unmanaged<Cursor>.fromOpaque($0).takeUnretainedValue() }
  }

  /// Works with a cursor; an error becomes the message of its table, which SQLite frees.
  private static func run(
    _ pointer: UnsafeMutablePointer<sqlite3_vtab_cursor>?, _ body: (Cursor) throws -> Void
  ) -> Int32 {
    guard let pointer, let cursor = cursor(pointer) else { return SQLITE_MISUSE }
    do {
      try body(cursor)
      return SQLITE_OK
    } catch {
      let failure = SQLiteFunctionFailure(error)
      if let table = pointer.pointee.pVtab {
        let routines = cursor.module.routines
        routines.free(table.pointee.zErrMsg)
        table.pointee.zErrMsg = routines.copy(of: failure.message)
      }
      return failure.code
    }
  }
}
