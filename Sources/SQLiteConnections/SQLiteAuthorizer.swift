import CBuckiaSQLite

/// Something that a statement would do, as SQLite's authorizer is asked about it.
/// See <https://sqlite.org/c3ref/c_alter_table.html>.
package struct SQLiteAction: Sendable {
  /// The kind of action.
  package enum Kind: Sendable {
    case createTable, createVirtualTable, createIndex, createView, createTrigger
    case insert, update, delete, read, select
    /// A function is called: `detail` is its name.
    case function
    case reindex
    /// A common table expression refers to itself.
    case recursive
    /// Everything else: ATTACH, PRAGMA, DROP, ALTER, actions on TEMP objects, transactions and savepoints.
    case other
  }

  /// The kind of action.
  package let kind: Kind
  /// The object of the action: a table, or the created object.
  package let name: String
  /// The column, the table of an index or trigger, the module, or the function.
  package let detail: String
  /// The schema, such as `main`; empty if there is none.
  package let schema: String
  /// The innermost trigger or view that does it; nil for the statement itself.
  package let cause: String?

  fileprivate init(
    _ code: Int32, _ first: UnsafePointer<CChar>?, _ second: UnsafePointer<CChar>?, _ schema: UnsafePointer<CChar>?,
    _ cause: UnsafePointer<CChar>?
  ) {
    kind = Self.kind(of: code)
    name = first.map { String(cString: $0) } ?? ""
    detail = second.map { String(cString: $0) } ?? ""
    self.schema = schema.map { String(cString: $0) } ?? ""
    self.cause = cause.map { String(cString: $0) }
  }

  private static func kind(of code: Int32) -> Kind {
    switch code {
    case SQLITE_CREATE_TABLE: .createTable
    case SQLITE_CREATE_VTABLE: .createVirtualTable
    case SQLITE_CREATE_INDEX: .createIndex
    case SQLITE_CREATE_VIEW: .createView
    case SQLITE_CREATE_TRIGGER: .createTrigger
    case SQLITE_INSERT: .insert
    case SQLITE_UPDATE: .update
    case SQLITE_DELETE: .delete
    case SQLITE_READ: .read
    case SQLITE_SELECT: .select
    case SQLITE_FUNCTION: .function
    case SQLITE_REINDEX: .reindex
    case SQLITE_RECURSIVE: .recursive
    default: .other
    }
  }
}

extension SQLiteConnection {
  /// Runs `body` with an authorizer that is called when a statement is prepared, for each action of it.
  ///
  /// Preparing a denied statement fails with the code `SQLITE_AUTH`. The previous authorizer is removed and cannot be
  /// restored, so this is for our own connections only.
  ///
  /// - Parameters:
  ///   - judge: True if an action is allowed. It must not use the connection.
  ///   - body: The work.
  /// - Throws: `SQLiteError` with `SQLITE_MISUSE` on a connection that belongs to somebody else; whatever `body` throws.
  package func withAuthorizer<Result>(
    _ judge: @escaping (SQLiteAction) -> Bool, _ body: (borrowing SQLiteConnection) throws -> Result
  ) throws -> Result {
    guard isOwned else {
      throw SQLiteError(code: SQLITE_MISUSE, message: "an authorizer belongs to its connection's owner", path: path)
    }
    let box = CallbackBox(judge)
    let code = handle.routines.set_authorizer(
      handle.pointer,
      { context, code, first, second, schema, cause in
        guard let context else { return SQLITE_DENY }
        let action = SQLiteAction(code, first, second, schema, cause)
        return Unmanaged<CallbackBox<(SQLiteAction) -> Bool>>.fromOpaque(context).takeUnretainedValue().value(action)
          ? SQLITE_OK : SQLITE_DENY
      }, Unmanaged.passUnretained(box).toOpaque())
    try handle.check(code)
    defer {
      // Sound: the box outlives the authorizer, which is removed here.
      withExtendedLifetime(box) { _ = handle.routines.set_authorizer(handle.pointer, nil, nil) }
    }
    return try body(self)
  }
}
