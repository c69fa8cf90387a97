import BuckiaFormat
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// What a history has come to on all replicas, to be compared with another run of it.
struct RunResult: Equatable {
  /// What has happened, step by step.
  private let trace: [String]
  /// All tables of each replica, the ledger's among them, row by row.
  private let contents: [[String]]
  /// The same as far as it may not depend on how files were grouped: rows, ledger entries and conflict records.
  private let outcomes: [[String]]

  init(_ trace: [String], _ replicas: [Replica]) throws {
    self.trace = trace
    contents = try replicas.map { try Self.contents(of: $0.database) }
    outcomes = try replicas.map { try Self.outcomes(of: $0) }
  }

  /// - Throws: `Violation` when another run of the same history has done something else.
  func requireSame(as other: RunResult) throws {
    try Self.require(.repeatable, [trace] + contents, [other.trace] + other.contents)
  }

  /// - Throws: `Violation` when a run that has grouped files in another way has come to something else.
  func requireSameOutcomes(as other: RunResult) throws {
    try Self.require(.groupingIsInvisible, outcomes, other.outcomes)
  }

  private static func require(_ invariant: Invariant, _ first: [[String]], _ second: [[String]]) throws {
    for (one, other) in zip(first, second) where one != other {
      let place =
        zip(one, other).enumerated().first { $0.element.0 != $0.element.1 }?.offset ?? min(one.count, other.count)
      func line(_ lines: [String]) -> String { place < lines.count ? lines[place] : "nothing" }
      throw Violation(invariant, "once: \(line(one))\nand once: \(line(other))")
    }
  }

  private static func contents(of database: borrowing SQLiteConnection) throws -> [String] {
    var tables: [String] = []
    try database.forEachRow(ofCached: "SELECT name FROM main.sqlite_schema WHERE type = 'table' ORDER BY name") {
      tables.append($0.text(at: 0) ?? "")
    }
    var lines: [String] = []
    for table in tables {
      try database.forEachRow(of: "SELECT * FROM main.\(SQLText.identifier(table))") { row in
        lines.append("\(table): \(row.values.map(text).joined(separator: ", "))")
      }
    }
    return lines
  }

  /// A value, or what stands for a long one.
  private static func text(of value: ChangesetValue) -> String {
    guard case .blob(let bytes) = value, bytes.count > 64 else { return "\(value)" }
    return "a blob with the digest \(ContentDigest(of: bytes))"
  }

  private static func outcomes(of replica: Replica) throws -> [String] {
    var lines = try replica.rows().tables.enumerated().flatMap { table, rows in
      rows.values.map { "row of table \(table): \($0)" }.sorted()
    }
    let entries = """
      SELECT diff, state, inserted, updated, deleted, conflicts, omitted, reason FROM main.buckia_ledger ORDER BY diff
      """
    try replica.database.forEachRow(ofCached: entries) { lines.append("ledger: \($0.values)") }
    lines += try ConflictRecord.all(on: replica.database).map { record in
      "conflict: \(record.diff) \(record.table) \(record.key) \(record.kind) \(record.outcome) "
        + "\(record.base ?? []) \(record.local ?? []) \(record.incoming ?? []) \(record.reason ?? "")"
    }.sorted()
    return lines
  }
}
