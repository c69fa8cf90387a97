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

  /// A value of a change or a row, told apart by class and bytes.
  public enum Value: Hashable, Sendable {
    case null
    case integer(Int64)
    /// The bits of a double.
    case real(UInt64)
    case text([UInt8])
    case blob([UInt8])

    init(_ value: OpaquePointer) {
      switch sqlite3_value_type(value) {
      case SQLITE_INTEGER: self = .integer(sqlite3_value_int64(value))
      case SQLITE_FLOAT: self = .real(sqlite3_value_double(value).bitPattern)
      case SQLITE_TEXT:
        let start = sqlite3_value_text(value)
        self = .text(Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_value_bytes(value)))))
      case SQLITE_BLOB:
        let start = sqlite3_value_blob(value)
        self = .blob(Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_value_bytes(value)))))
      default: self = .null
      }
    }
  }

  /// One question that SQLite asks while it applies a changeset. Lent for the length of the call; costs nothing but what is
  /// asked of it.
  public struct Question: ~Copyable {
    /// Why it asks.
    public let kind: ConflictKind
    private let iterator: OpaquePointer?
    private let columns: Int32
    /// What the change does: 9 deletes, 18 inserts, 23 updates
    /// (<https://sqlite.org/c3ref/c_alter_table.html>); 0 for foreign keys.
    public let operation: Int32
    private let name: UnsafePointer<CChar>?

    init(_ kind: ConflictKind, _ iterator: OpaquePointer?) {
      var table: UnsafePointer<CChar>?
      var columns: Int32 = 0
      var operation: Int32 = 0
      if kind != .foreignKey { sqlite3changeset_op(iterator, &table, &columns, &operation, nil) }
      self.kind = kind
      self.iterator = iterator
      self.columns = columns
      self.operation = operation
      name = table
    }

    /// The table; empty for foreign keys.
    public var table: String { name.map { String(cString: $0) } ?? "" }

    /// The change's old values, by column; nil where there is none.
    public var old: [Value?] { values { sqlite3changeset_old(iterator, $0, $1) } }

    /// The change's new values, by column; nil where there is none.
    public var new: [Value?] { values { sqlite3changeset_new(iterator, $0, $1) } }

    /// The local row in the way, by column of the changeset; empty where SQLite shows none.
    public var conflicting: [Value?] {
      kind == .data || kind == .conflict ? values { sqlite3changeset_conflict(iterator, $0, $1) } : []
    }

    /// For foreign keys: what SQLite gives as the number of violations.
    public var violations: Int {
      var count: Int32 = 0
      return sqlite3changeset_fk_conflicts(iterator, &count) == SQLITE_OK ? Int(count) : 0
    }

    private func values(_ read: (Int32, UnsafeMutablePointer<OpaquePointer?>) -> Int32) -> [Value?] {
      (0..<columns).map { column in
        var value: OpaquePointer?
        guard read(column, &value) == SQLITE_OK, let value else { return nil }
        return Value(value)
      }
    }
  }

  private final class Context {
    let decide: (borrowing Question) -> Answer
    let takes: (String) -> Bool
    init(_ decide: @escaping (borrowing Question) -> Answer, takes: @escaping (String) -> Bool) {
      self.decide = decide
      self.takes = takes
    }
  }

  /// Newer versions of SQLite try to settle UNIQUE cycles, one row after the other; without this they all do the same.
  private static let withoutUpdateLoop: Int32 = 0x10

  /// Applies a changeset: `sqlite3changeset_apply_v2`.
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

  /// Applies a changeset: `sqlite3changeset_apply_v2`.
  ///
  /// - Parameters:
  ///   - changeset: The bytes.
  ///   - connection: The connection to change.
  ///   - takes: Whether the changes of a table are applied; nil applies all.
  ///   - answer: Is asked about each conflict.
  /// - Throws: `SQLiteError`; nothing has changed then.
  public static func apply(
    _ changeset: [UInt8], to connection: borrowing SQLiteConnection, where takes: ((String) -> Bool)? = nil,
    answering answer: @escaping (borrowing Question) -> Answer
  ) throws(SQLiteError) {
    var changeset = changeset
    try changeset.withUnsafeMutableBufferPointer { (bytes) throws(SQLiteError) in
      try apply(UnsafeMutableRawBufferPointer(bytes), to: connection, where: takes, answering: answer)
    }
  }

  /// Applies a changeset where it lies: `sqlite3changeset_apply_v2` apart from its flag against newer versions' loops.
  ///
  /// The other forms copy it first, because SQLite's call promises nothing about what it does to the bytes.
  ///
  /// - Parameters:
  ///   - bytes: The changeset.
  ///   - connection: The connection to change.
  ///   - takes: Which tables' changes are applied; nil for all.
  ///   - answer: Is asked about each conflict.
  /// - Throws: `SQLiteError`; nothing has changed then.
  public static func apply(
    _ bytes: UnsafeMutableRawBufferPointer, to connection: borrowing SQLiteConnection,
    where takes: ((String) -> Bool)? = nil, answering answer: @escaping (borrowing Question) -> Answer
  ) throws(SQLiteError) {
    let context = Context(answer, takes: takes ?? { _ in true })
    let handle = connection.handle
    let code = withExtendedLifetime(context) {
      sqlite3changeset_apply_v2(
        handle, Int32(bytes.count), bytes.baseAddress,
        { context, table in
          // Sound: the context is the box kept alive around the call.
          guard let context, let table else { return 0 }
          let box = Unmanaged<Context>.fromOpaque(context).takeUnretainedValue()
          return box.takes(String(cString: table)) ? 1 : 0
        },
        { context, kind, iterator in
          // Sound: the context is the box kept alive around the call.
          guard let context, let kind = ConflictKind(rawValue: kind) else { return SQLITE_CHANGESET_ABORT }
          let box = Unmanaged<Context>.fromOpaque(context).takeUnretainedValue()
          return box.decide(Question(kind, iterator)).rawValue
        }, Unmanaged.passUnretained(context).toOpaque(), nil, nil, withoutUpdateLoop)
    }
    guard code == SQLITE_OK else { throw connection.lastError(code) }
  }
}
