import CBuckiaSQLite

/// SQLite's own changeset functions, with which tests and benchmarks compare Buckia's.
package enum StockChangesets {
  /// Why SQLite asks. See <https://sqlite.org/session/c_changeset_conflict.html>.
  package enum ConflictKind: Int32, Sendable {
    case data = 1
    case notFound = 2
    case conflict = 3
    case constraint = 4
    case foreignKey = 5
  }

  /// The reaction to a conflict. See <https://sqlite.org/session/c_changeset_abort.html>.
  package enum Answer: Int32, Sendable {
    case omit = 0
    case replace = 1
    case abort = 2
  }

  /// Inverts a changeset: `sqlite3changeset_invert`.
  package static func invert(_ changeset: [UInt8]) throws(SQLiteError) -> [UInt8] {
    let library = try SQLiteLibrary.standard
    let sessions = try library.sessions
    var count: Int32 = 0
    var output: UnsafeMutableRawPointer?
    let code = changeset.withUnsafeBytes {
      sessions.changeset_invert(Int32($0.count), $0.baseAddress, &count, &output)
    }
    return try taken(output, count, code, library)
  }

  /// Combines two changesets: `sqlite3changeset_concat`.
  package static func concat(_ first: [UInt8], _ second: [UInt8]) throws(SQLiteError) -> [UInt8] {
    let library = try SQLiteLibrary.standard
    let sessions = try library.sessions
    var first = first
    var second = second
    var count: Int32 = 0
    var output: UnsafeMutableRawPointer?
    let code = first.withUnsafeMutableBytes { first in
      second.withUnsafeMutableBytes { second in
        sessions.changeset_concat(
          Int32(first.count), first.baseAddress, Int32(second.count), second.baseAddress, &count, &output)
      }
    }
    return try taken(output, count, code, library)
  }

  /// Rebases a changeset by the rebase buffers of others: `sqlite3rebaser_rebase`.
  package static func rebase(_ changeset: [UInt8], resolving buffers: [[UInt8]]) throws(SQLiteError) -> [UInt8] {
    let library = try SQLiteLibrary.standard
    let sessions = try library.sessions
    var rebaser: OpaquePointer?
    var code = sessions.rebaser_create(&rebaser)
    defer { sessions.rebaser_delete(rebaser) }
    var count: Int32 = 0
    var output: UnsafeMutableRawPointer?
    guard code == SQLITE_OK, let rebaser else { return try taken(output, count, code, library) }
    for buffer in buffers where code == SQLITE_OK {
      code = buffer.withUnsafeBytes { sessions.rebaser_configure(rebaser, Int32($0.count), $0.baseAddress) }
    }
    if code == SQLITE_OK {
      code = changeset.withUnsafeBytes {
        sessions.rebaser_rebase(rebaser, Int32($0.count), $0.baseAddress, &count, &output)
      }
    }
    return try taken(output, count, code, library)
  }

  private static func taken(
    _ output: UnsafeMutableRawPointer?, _ count: Int32, _ code: Int32, _ library: SQLiteLibrary
  ) throws(SQLiteError) -> [UInt8] {
    defer { library.routines.free(output) }
    guard code == SQLITE_OK else {
      throw SQLiteError(code: code, message: library.routines.errstr(code).map { String(cString: $0) } ?? "")
    }
    return Array(UnsafeRawBufferPointer(start: output, count: Int(count)))
  }

  /// A value of a change or a row, compared by storage class and bytes.
  package enum Value: Hashable, Sendable {
    case null
    case integer(Int64)
    /// The bits of a double.
    case real(UInt64)
    case text([UInt8])
    case blob([UInt8])

    init(_ value: OpaquePointer, _ routines: SQLiteRoutines) {
      switch routines.value_type(value) {
      case SQLITE_INTEGER: self = .integer(routines.value_int64(value))
      case SQLITE_FLOAT: self = .real(routines.value_double(value).bitPattern)
      case SQLITE_TEXT:
        let start = routines.value_text(value)
        self = .text(Array(UnsafeRawBufferPointer(start: start, count: Int(routines.value_bytes(value)))))
      case SQLITE_BLOB:
        let start = routines.value_blob(value)
        self = .blob(Array(UnsafeRawBufferPointer(start: start, count: Int(routines.value_bytes(value)))))
      default: self = .null
      }
    }
  }

  /// A conflict that SQLite asks about while it applies a changeset. Valid during the call; values are read when they are
  /// asked for.
  package struct Question: ~Copyable {
    /// Why it asks.
    package let kind: ConflictKind
    private let iterator: OpaquePointer
    private let handle: SQLiteHandle
    private let sessions: SQLiteSessionRoutines
    private let columns: Int32
    /// What the change does: 9 deletes, 18 inserts, 23 updates
    /// (<https://sqlite.org/c3ref/c_alter_table.html>); 0 for foreign keys.
    package let operation: Int32
    private let name: UnsafePointer<CChar>?

    fileprivate init(
      _ kind: ConflictKind, _ iterator: OpaquePointer, _ handle: SQLiteHandle, _ sessions: SQLiteSessionRoutines
    ) {
      var table: UnsafePointer<CChar>?
      var columns: Int32 = 0
      var operation: Int32 = 0
      if kind != .foreignKey { sessions.changeset_op(iterator, &table, &columns, &operation, nil) }
      self.kind = kind
      self.iterator = iterator
      self.handle = handle
      self.sessions = sessions
      self.columns = columns
      self.operation = operation
      name = table
    }

    /// The table; empty for foreign keys.
    package var table: String { name.map { String(cString: $0) } ?? "" }

    /// The change's old values by column; nil if there is none.
    package var old: [Value?] { values { sessions.changeset_old(iterator, $0, $1) } }

    /// The change's new values by column; nil if there is none.
    package var new: [Value?] { values { sessions.changeset_new(iterator, $0, $1) } }

    /// The conflicting local row by column of the changeset; empty if SQLite gives none.
    package var conflicting: [Value?] {
      kind == .data || kind == .conflict ? values { sessions.changeset_conflict(iterator, $0, $1) } : []
    }

    /// For foreign keys: the number of violations according to SQLite.
    package var violations: Int {
      var count: Int32 = 0
      return sessions.changeset_fk_conflicts(iterator, &count) == SQLITE_OK ? Int(count) : 0
    }

    private func values(_ read: (Int32, UnsafeMutablePointer<OpaquePointer?>) -> Int32) -> [Value?] {
      (0..<columns).map { column in
        var value: OpaquePointer?
        guard read(column, &value) == SQLITE_OK, let value else { return nil }
        return Value(value, handle.routines)
      }
    }
  }

  private final class Context {
    let decide: (borrowing Question) -> Answer
    let takes: (String) -> Bool
    let handle: SQLiteHandle
    let sessions: SQLiteSessionRoutines

    init(
      on handle: SQLiteHandle, _ decide: @escaping (borrowing Question) -> Answer, takes: @escaping (String) -> Bool
    ) throws(SQLiteError) {
      self.decide = decide
      self.takes = takes
      self.handle = handle
      sessions = try handle.library.sessions
    }
  }

  /// Newer versions of SQLite retry UPDATEs that conflict with each other. This flag makes all versions behave the same.
  private static let withoutUpdateLoop: Int32 = 0x10

  /// Applies a changeset: `sqlite3changeset_apply_v2`, which does not promise to leave the bytes unchanged.
  ///
  /// - Parameters:
  ///   - bytes: The changeset.
  ///   - connection: The connection to change.
  ///   - takes: True if the changes of a table are applied; nil applies all.
  ///   - answer: Decides about each conflict by its kind and table (empty for foreign keys).
  /// - Throws: `SQLiteError`; nothing has changed then.
  package static func apply(
    _ bytes: UnsafeMutableRawBufferPointer, to connection: borrowing SQLiteConnection,
    where takes: ((String) -> Bool)? = nil, answering answer: @escaping (borrowing Question) -> Answer
  ) throws(SQLiteError) {
    try apply(bytes, to: connection, where: takes, rebase: nil, rebaseCount: nil, answering: answer)
  }

  /// Applies a changeset, and keeps the rebase buffer: how the conflicts were resolved.
  ///
  /// - Throws: `SQLiteError`; nothing has changed then.
  package static func resolutions(
    of bytes: UnsafeMutableRawBufferPointer, appliedTo connection: borrowing SQLiteConnection,
    answering answer: @escaping (borrowing Question) -> Answer
  ) throws(SQLiteError) -> [UInt8] {
    var rebase: UnsafeMutableRawPointer?
    var count: Int32 = 0
    defer { connection.handle.routines.free(rebase) }
    try apply(bytes, to: connection, where: nil, rebase: &rebase, rebaseCount: &count, answering: answer)
    return Array(UnsafeRawBufferPointer(start: rebase, count: Int(count)))
  }

  private static func apply(
    _ bytes: UnsafeMutableRawBufferPointer, to connection: borrowing SQLiteConnection, where takes: ((String) -> Bool)?,
    rebase: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, rebaseCount: UnsafeMutablePointer<Int32>?,
    answering answer: @escaping (borrowing Question) -> Answer
  ) throws(SQLiteError) {
    let handle = connection.handle
    let context = try Context(on: handle, answer, takes: takes ?? { _ in true })
    let code = withExtendedLifetime(context) {
      context.sessions.changeset_apply_v2(
        handle.pointer, Int32(bytes.count), bytes.baseAddress,
        { context, table in
          // Sound: the context is the box that is kept alive around the call.
          guard let context, let table else { return 0 }
          let box = Unmanaged<Context>.fromOpaque(context).takeUnretainedValue()
          return box.takes(String(cString: table)) ? 1 : 0
        },
        { context, kind, iterator in
          // Sound: the context is the box that is kept alive around the call.
          guard let context, let iterator, let kind = ConflictKind(rawValue: kind) else { return Answer.abort.rawValue }
          let box = Unmanaged<Context>.fromOpaque(context).takeUnretainedValue()
          return box.decide(Question(kind, iterator, box.handle, box.sessions)).rawValue
        }, Unmanaged.passUnretained(context).toOpaque(), rebase, rebaseCount, withoutUpdateLoop)
    }
    try handle.check(code)
  }
}
