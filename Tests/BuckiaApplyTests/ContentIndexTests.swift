@testable import BuckiaApply
import BuckiaLedger
import ReplicationTestSupport
import SQLiteChangesets
import SQLiteConnections
import TestSupport
import Testing

/// Rows identified only by their content, found through a temporary index of the contents, which only affects the time.
@Suite struct ContentIndexTests {
  /// A table, its rows, and changes that find rows only by content.
  private struct Scenario {
    let schema: String
    let changes: [UInt8]
    let firesTriggers: Bool

    init(_ random: inout SeededGenerator) {
      let types = ["", "INTEGER", "TEXT", "REAL", "NUMERIC", "TEXT COLLATE NOCASE", "BLOB", "DATETIME"]
      let isKeyless = random.oneIn(2)
      let isComposite = !isKeyless && random.oneIn(2)
      // For a table without a key the changeset's first column is the rowid, which is NULL.
      let columns = ["k", "l", "a", "b"].map { ($0, random.pick(types)) }
      let key = isKeyless ? "" : isComposite ? ", PRIMARY KEY (k, l)" : ", PRIMARY KEY (k)"
      // An integer key would be the rowid and never NULL.
      let definitions = columns.map { name, type in
        "\(name) \(name == "k" && type == "INTEGER" ? "INT" : type)"
          + (name == "b" && random.oneIn(5) ? " UNIQUE" : "")
          + (name == "a" && random.oneIn(5) ? " CHECK (a IS NOT 3)" : "")
      }
      var sql = "PRAGMA encoding = '\(random.oneIn(4) ? "UTF-16le" : "UTF-8")';"
      sql += "CREATE TABLE t(\(definitions.joined(separator: ", "))\(key));"
      if random.oneIn(3) { sql += "CREATE INDEX i ON t(\(random.pick(["a", "b, a", "l"])));" }
      let values = Values()
      for _ in 0..<Int.random(in: 0...20, using: &random) {
        let row = columns.map { name, _ in
          !isKeyless && name == "k" && !random.oneIn(3) ? "NULL" : values.literal(&random)
        }
        sql += "INSERT OR IGNORE INTO t VALUES (\(row.joined(separator: ", ")));"
      }
      firesTriggers = random.oneIn(2)
      for index in 0..<Int.random(in: 0...2, using: &random) {
        let event = random.pick(["INSERT", "DELETE", "UPDATE"])
        let some =
          "rowid = (SELECT rowid FROM t ORDER BY rowid LIMIT 1 OFFSET \(Int.random(in: 0...6, using: &random)))"
        let action = random.pick([
          "INSERT OR IGNORE INTO t(l, a, b) VALUES (\(values.literal(&random)), \(values.literal(&random)), 1)",
          "UPDATE OR IGNORE t SET a = \(values.literal(&random)) WHERE \(some)",
          "UPDATE OR IGNORE t SET rowid = rowid + 100 WHERE \(some)",
          "UPDATE OR REPLACE t SET b = \(values.literal(&random)) WHERE \(some)", "DELETE FROM t WHERE \(some)",
        ])
        let scope = random.oneIn(2) ? "TEMP" : ""
        sql += "CREATE \(scope) TRIGGER tr\(index) AFTER \(event) ON main.t BEGIN \(action); END;"
      }
      schema = sql

      var writer = ChangesetWriter()
      let flags: [UInt8] = isKeyless ? [1, 0, 0, 0, 0] : isComposite ? [1, 2, 0, 0] : [1, 0, 0, 0]
      writer.beginTable(ChangesetTable(name: "t", keyFlags: flags))
      for _ in 0..<Int.random(in: 1...25, using: &random) {
        let operation = random.oneIn(3) ? ChangeOperation.insert : isComposite && random.oneIn(2) ? .update : .delete
        writer.beginChange(operation)
        if isKeyless { writer.appendNull() }
        var isLeft: [Bool] = []
        for (name, _) in columns {
          let isKey = !isKeyless && name == "k" || isComposite && name == "l"
          isLeft.append(operation == .update && !isKey && name == "b" && random.oneIn(2))
          if name == "k", !isKeyless, !random.oneIn(4) {
            writer.appendNull()
          } else if isLeft.last == true {
            writer.appendUndefined()
          } else {
            values.append(to: &writer, &random)
          }
        }
        guard operation == .update else { continue }
        for (index, (name, _)) in columns.enumerated() {
          if name == "k" || name == "l" || isLeft[index] {
            writer.appendUndefined()
          } else {
            values.append(to: &writer, &random)
          }
        }
      }
      changes = writer.bytes
    }
  }

  /// Few values, so that rows collide: many values equal others only under some affinity or collating sequence.
  private struct Values {
    private let all: [ChangesetValue] = [
      .null, .integer(1), .real(1), .text("1"), .text("1.0"), .text(" 1"), .text("1e0"), .real(0), .real(-0.0),
      .integer(0),
      .text("-0"), .text("a"), .text("A"), .text("ä\u{ffff}"), .blob([0x31]), .blob([]), .text(""), .integer(3),
      .integer((1 << 53) + 1), .real(9_007_199_254_740_992), .text("9007199254740993"), .text("1970-01-01"), .real(2.5),
      .text("2.5"), .real(.infinity), .integer(.max), .text("9223372036854775807"),
    ]

    func literal(_ random: inout SeededGenerator) -> String {
      all[Int.random(in: 0..<(random.oneIn(2) ? 6 : all.count), using: &random)].description
    }

    func append(to writer: inout ChangesetWriter, _ random: inout SeededGenerator) {
      switch all[Int.random(in: 0..<(random.oneIn(2) ? 6 : all.count), using: &random)] {
      case .null: writer.appendNull()
      case .integer(let number): writer.append(integer: number)
      case .real(let number): writer.append(real: number)
      case .text(let text): writer.append(text: text)
      case .blob(let bytes): writer.append(blob: bytes)
      }
    }
  }

  /// The results that must not depend on how the rows were found.
  private struct State: Equatable {
    var rows: [[String]]
    var counts: ApplyCounts?
    var conflicts: [String]
    var error: String?
  }

  private static func state(_ scenario: Scenario, _ policy: ContentPolicy) throws -> State {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(scenario.schema)
    try Ledger.prepare(on: connection)
    var settings = ApplySettings(
      policies: .takeIncoming, firesTriggers: scenario.firesTriggers, time: 2_000_000_000_000)
    settings.contentPolicy = policy
    var state = State(rows: [], counts: nil, conflicts: [], error: nil)
    do {
      state.counts = try IndexScenario.apply(scenario.changes, to: connection, settings: settings).counts
      try IndexScenario.expectNothingLeft(on: connection)
      let stores = "SELECT name FROM temp.sqlite_schema WHERE type = 'table' AND name LIKE 'buckia_temp_content%'"
      for store in try TestDatabases.texts(stores, on: connection) {
        #expect(try connection.integer("SELECT count(*) FROM temp.\(store)") == 0)
      }
    } catch let error as any CustomStringConvertible {
      state.error = error.description
    }
    state.rows = try Rows.lists(of: "t", columns: ["_rowid_", "k", "l", "a", "b"], on: connection)
    state.conflicts = try TestDatabases.texts(
      "SELECT kind || outcome || quote(base) || quote(local) || quote(incoming) FROM buckia_conflict ORDER BY conflict",
      on: connection)
    return state
  }

  @Test(
    "The same rows are found with and without an index of the contents, whatever triggers write",
    arguments: Seeds.shards)
  func sameRows(shard: Int) throws {
    try Seeds.tryEach(400, shard: shard) { seed in
      var random = SeededGenerator(seed: seed)
      let scenario = Scenario(&random)
      let searched = try Self.state(scenario, .search)
      let indexed = try Self.state(scenario, .index)
      #expect(indexed == searched, "\(Seeds.replay(seed))\n\(scenario.schema)")
    }
  }

  /// A database with a table of distinct rows.
  private static func database(rows count: Int64) throws -> SQLiteConnection {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(
      """
      CREATE TABLE t(a, b);
      WITH n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < \(count - 1)) INSERT INTO t SELECT i, 'row ' || i FROM n
      """)
    try Ledger.prepare(on: connection)
    return connection
  }

  /// DELETEs of the rows, last row first.
  private static func deletes(_ rows: Range<Int64>) -> [UInt8] {
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: "t", keyFlags: [1, 0, 0]))
    for row in rows.reversed() {
      writer.beginChange(.delete)
      writer.appendNull()
      writer.append(integer: row)
      writer.append(text: "row \(row)")
    }
    return writer.bytes
  }

  private static func hasMadeIndex(_ connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.integer("SELECT 1 FROM temp.sqlite_schema WHERE name = 'buckia_temp_content_0'") != nil
  }

  @Test("Many different rows do not each scan the whole table")
  func many() throws {
    let connection = try Self.database(rows: 6_000)
    #expect(try IndexScenario.apply(Self.deletes(0..<6_000), to: connection).counts.deleted == 6_000)
    #expect(try connection.integer("SELECT count(*) FROM t") == 0)
    #expect(try Self.hasMadeIndex(connection))
  }

  @Test("No index is created if an index of the schema finds the rows")
  func indexed() throws {
    let connection = try Self.database(rows: 6_000)
    try connection.execute("CREATE INDEX i ON t(b)")
    #expect(try IndexScenario.apply(Self.deletes(0..<6_000), to: connection).counts.deleted == 6_000)
    #expect(try !Self.hasMadeIndex(connection))
  }

  @Test("For a few changes no index is created")
  func few() throws {
    let connection = try Self.database(rows: 6_000)
    #expect(try IndexScenario.apply(Self.deletes(5_995..<6_000), to: connection).counts.deleted == 5)
    #expect(try !Self.hasMadeIndex(connection))
  }
}
