import CBuckiaSQLite

/// SQLite's own changeset calls: the oracle that Buckia's are measured against, in tests and benchmarks.
public enum StockChangesets {
  /// Why SQLite asks. See <https://sqlite.org/session/c_changeset_conflict.html>.
  public enum ConflictKind: Int32, Sendable {
    case data = 1
    case notFound = 2
    case conflict = 3
    case constraint = 4
    case foreignKey = 5
  }

  /// What to do. See <https://sqlite.org/session/c_changeset_abort.html>.
  public enum Answer: Int32, Sendable {
    case omit = 0
    case replace = 1
    case abort = 2
  }

  /// Turns a changeset into its inverse: `sqlite3changeset_invert`.
  public static func invert(_ changeset: [UInt8]) throws(SQLiteError) -> [UInt8] {
    var count: Int32 = 0
    var output: UnsafeMutableRawPointer?
    let code = changeset.withUnsafeBytes {
      sqlite3changeset_invert(Int32($0.count), $0.baseAddress, &count, &output)
    }
    return try taken(output, count, code)
  }

  /// Joins two changesets into one: `sqlite3changeset_concat`.
  public static func concat(_ first: [UInt8], _ second: [UInt8]) throws(SQLiteError) -> [UInt8] {
    var first = first
    var second = second
    var count: Int32 = 0
    var output: UnsafeMutableRawPointer?
    let code = first.withUnsafeMutableBytes { first in
      second.withUnsafeMutableBytes { second in
        sqlite3changeset_concat(
          Int32(first.count), first.baseAddress, Int32(second.count), second.baseAddress, &count, &output)
      }
    }
    return try taken(output, count, code)
  }

  private static func taken(
    _ output: UnsafeMutableRawPointer?, _ count: Int32, _ code: Int32
  ) throws(SQLiteError) -> [UInt8] {
    defer { sqlite3_free(output) }
    guard code == SQLITE_OK else { throw SQLiteError(handle: nil, code: code, path: nil) }
    return Array(UnsafeRawBufferPointer(start: output, count: Int(count)))
  }

  /// One question that SQLite asks while it applies a changeset.
  public struct Question: Sendable {
    /// Why it asks.
    public let kind: ConflictKind
    /// The table; empty for foreign keys.
    public let table: String
    /// What the change does: 9 deletes, 18 inserts, 23 updates
    /// (<https://sqlite.org/c3ref/c_alter_table.html>); 0 for foreign keys.
    public let operation: Int32
  }

  private final class Context {
    let decide: (Question) -> Answer
    init(_ decide: @escaping (Question) -> Answer) { self.decide = decide }
  }

  /// Applies a changeset: `sqlite3changeset_apply_v2` without flags.
  ///
  /// - Parameters:
  ///   - changeset: The bytes.
  ///   - connection: The connection to change.
  ///   - decide: Is asked about each conflict: its kind and table (empty for foreign keys).
  /// - Throws: `SQLiteError`; nothing has changed then.
  public static func apply(
    _ changeset: [UInt8], to connection: borrowing SQLiteConnection,
    decide: @escaping (ConflictKind, String) -> Answer
  ) throws(SQLiteError) {
    try apply(changeset, to: connection, answering: { decide($0.kind, $0.table) })
  }

  /// Applies a changeset: `sqlite3changeset_apply_v2` without flags.
  ///
  /// - Parameters:
  ///   - changeset: The bytes.
  ///   - connection: The connection to change.
  ///   - answer: Is asked about each conflict.
  /// - Throws: `SQLiteError`; nothing has changed then.
  public static func apply(
    _ changeset: [UInt8], to connection: borrowing SQLiteConnection, answering answer: @escaping (Question) -> Answer
  ) throws(SQLiteError) {
    var changeset = changeset
    try changeset.withUnsafeMutableBufferPointer { (bytes) throws(SQLiteError) in
      try apply(UnsafeMutableRawBufferPointer(bytes), to: connection, answering: answer)
    }
  }

  /// Applies a changeset where it lies: `sqlite3changeset_apply_v2` without flags.
  ///
  /// The other forms copy it first, because SQLite's call promises nothing about what it does to the bytes.
  ///
  /// - Parameters:
  ///   - bytes: The changeset.
  ///   - connection: The connection to change.
  ///   - answer: Is asked about each conflict.
  /// - Throws: `SQLiteError`; nothing has changed then.
  public static func apply(
    _ bytes: UnsafeMutableRawBufferPointer, to connection: borrowing SQLiteConnection,
    answering answer: @escaping (Question) -> Answer
  ) throws(SQLiteError) {
    let context = Context(answer)
    let handle = connection.handle
    let code = withExtendedLifetime(context) {
      sqlite3changeset_apply_v2(
        handle, Int32(bytes.count), bytes.baseAddress, nil,
        { context, kind, iterator in
          // Sound: the context is the box kept alive around the call.
          guard let context, let kind = ConflictKind(rawValue: kind) else { return SQLITE_CHANGESET_ABORT }
          var table: UnsafePointer<CChar>?
          var columns: Int32 = 0
          var operation: Int32 = 0
          if kind != .foreignKey { sqlite3changeset_op(iterator, &table, &columns, &operation, nil) }
          let question = Question(
            kind: kind, table: table.map { String(cString: $0) } ?? "", operation: operation)
          return Unmanaged<Context>.fromOpaque(context).takeUnretainedValue().decide(question).rawValue
        }, Unmanaged.passUnretained(context).toOpaque(), nil, nil, 0)
    }
    guard code == SQLITE_OK else { throw connection.lastError(code) }
  }
}
