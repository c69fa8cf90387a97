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

  private final class Context {
    let decide: (ConflictKind, String) -> Answer
    init(_ decide: @escaping (ConflictKind, String) -> Answer) { self.decide = decide }
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
    var changeset = changeset
    let context = Context(decide)
    let handle = connection.handle
    let code = withExtendedLifetime(context) {
      changeset.withUnsafeMutableBytes { bytes in
        sqlite3changeset_apply_v2(
          handle, Int32(bytes.count), bytes.baseAddress, nil,
          { context, kind, iterator in
            // Sound: the context is the box kept alive around the call.
            guard let context, let kind = ConflictKind(rawValue: kind) else { return SQLITE_CHANGESET_ABORT }
            var table: UnsafePointer<CChar>?
            var columns: Int32 = 0
            var operation: Int32 = 0
            if kind != .foreignKey { sqlite3changeset_op(iterator, &table, &columns, &operation, nil) }
            let name = table.map { String(cString: $0) } ?? ""
            return Unmanaged<Context>.fromOpaque(context).takeUnretainedValue().decide(kind, name).rawValue
          }, Unmanaged.passUnretained(context).toOpaque(), nil, nil, 0)
      }
    }
    guard code == SQLITE_OK else { throw connection.lastError(code) }
  }
}
