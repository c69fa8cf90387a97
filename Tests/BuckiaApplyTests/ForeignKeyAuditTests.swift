@testable import BuckiaApply
@testable import BuckiaLedger
import SQLiteConnections
import SQLiteSchemas
import Testing
import ReplicationTestSupport
import TestSupport

/// Compares the reported broken references with `PRAGMA foreign_key_check` before and after, with and without enforced
/// foreign keys.
@Suite struct ForeignKeyAuditTests {
  @Test(
    "Every reference that the changes break is repaired, with and without enforced foreign keys",
    arguments: Seeds.shards)
  func againstSQLite(_ shard: Int) throws {
    var broken = 0
    var unmended = 0
    try Seeds.tryEach(600, shard: shard) { seed in
      let scenario = try ApplyScenario(seed: seed)
      guard scenario.schema.hasForeignKeys, !scenario.changes.isEmpty else { throw Seeds.Unsuitable() }
      let connection = try scenario.makeReceiver(forStock: false)
      let before = try violations(scenario, on: connection)
      guard let before, let (result, asked) = try scenario.applyLettingReferencesStand(to: connection) else {
        throw Seeds.Unsuitable()
      }
      let other = try scenario.makeReceiver(forStock: false)
      try other.execute("PRAGMA foreign_keys = \(scenario.enforcesForeignKeys ? "OFF" : "ON")")
      #expect(
        try scenario.applyLettingReferencesStand(to: other)?.result.counts == result.counts,
        "\(Seeds.replay(seed)): whether they are enforced makes a difference\n\(scenario.description)")
      let outcomes = try (
        scenario.outcome(of: connection, isStock: false, .init(), isRefused: false),
        scenario.outcome(of: other, isStock: false, .init(), isRefused: false)
      )
      #expect(outcomes.0 == outcomes.1, "\(Seeds.replay(seed))")
      let after = try #require(try violations(scenario, on: connection))
      // References by triggers' rows, and by rows identified by content alone, are only reported.
      let reported = try ConflictRecord.all(on: connection).filter { record in
        record.outcome == .reported && record.reason?.hasSuffix("is not there") == true
      }
      let left = after.subtracting(before)
      let isMended = left.isEmpty || scenario.showsOrder || reported.count > 0
      #expect(isMended, "\(Seeds.replay(seed)): \(left)\n\(scenario.description)")
      if !scenario.showsOrder, !left.isEmpty { unmended += 1 }
      #expect(asked.count <= 1, "\(Seeds.replay(seed)): asked once")
      broken += asked.first ?? 0
      let triggers = "SELECT count(*) FROM temp.sqlite_schema WHERE type = 'trigger' AND name LIKE 'buckia%'"
      #expect(try connection.integer(triggers) == 0)
    }
    if Seeds.range(600).count > 500 {
      #expect(broken > 10 && unmended < 10, "\(broken) broken, \(unmended) not mended")
    }
  }

  /// The rows with dangling references according to SQLite, by table and key; nil if the schema does not allow the
  /// check.
  private func violations(
    _ scenario: ApplyScenario, on connection: borrowing SQLiteConnection
  ) throws -> Set<String>? {
    var found: Set<String> = []
    for table in scenario.tables {
      var checks: [String] = []
      let list = "SELECT DISTINCT \"rowid\" FROM pragma_foreign_key_check(?1)"
      var rowIDs: [Int64] = []
      do {
        try connection.forEachRow(of: list, binding: [table.name]) { rowIDs.append($0.integer(at: 0)) }
      } catch is SQLiteError {
        // A parent key has no unique index.
        return nil
      }
      let key = table.variant == .withoutKey ? ["_rowid_"] : table.key.map { table.columns[$0].name }
      let columns = key.map { table.variant == .withoutKey ? $0 : table.quoted($0) }.joined(separator: ", ")
      if table.isWithoutRowID {
        // For these tables the pragma only gives a number, so each row is checked.
        checks = table.missingParents(scenario.tables)
      } else {
        checks = rowIDs.map { "_rowid_ = \($0)" }
      }
      for check in checks {
        let query = "SELECT \(columns) FROM \(table.quoted(table.name)) AS c WHERE \(check)"
        try connection.forEachRow(of: query) { row in
          var values: [String] = []
          for (index, name) in key.enumerated() { values.append("\(name) \(Self.text(of: row, at: index))") }
          found.insert("\(table.name) \(values.sorted())")
        }
      }
    }
    return found
  }

  private static func text(of row: borrowing SQLiteStatement, at column: Int) -> String {
    switch row.storageClass(at: column) {
    case .null: ApplyScenario.text(.null)
    case .integer: ApplyScenario.text(.integer(row.integer(at: column)))
    case .real: ApplyScenario.text(.real(row.real(at: column)))
    case .text: ApplyScenario.text(.text(row.text(at: column) ?? ""))
    case .blob: ApplyScenario.text(.blob(row.blob(at: column)))
    }
  }

  @Test("A referenced column may have held another value here than its author saw")
  func unseenParentValues() throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    let schema = """
      CREATE TABLE p(id INTEGER PRIMARY KEY, u TEXT COLLATE NOCASE UNIQUE); CREATE TABLE c(id INTEGER PRIMARY KEY, u REFERENCES p(u));
      INSERT INTO p VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')
      """
    try connection.execute(
      """
      \(schema); UPDATE p SET u = 'here ' || id; INSERT INTO c VALUES (1, 'HERE 1'), (2, 'here 2'), (3, 'here 3'), (4, 'here 4');
      INSERT INTO p VALUES (5, 'five'); INSERT INTO c VALUES (5, 'Five')
      """)
    let author = try SQLiteConnection(opening: ":memory:", as: .create)
    try author.execute(schema)
    let session = try SQLiteSession(on: author)
    try session.attach()
    try author.execute(
      "UPDATE p SET u = 'new' WHERE id = 1; DELETE FROM p WHERE id = 2; INSERT INTO p VALUES (5, 'other')")
    for changes in [try session.changeset(), try session.patchset()] {
      let transaction = try SQLiteTransaction(on: connection)
      let incoming = try IncomingChanges(
        key: LedgerKey(sender: "", id: nil, digest: [1], isRaw: true), file: "test", definitions: nil,
        changeset: .init(changes))
      let result = try Receiver.plan(
        incoming, on: connection, settings: ApplySettings(policies: .takeIncoming, time: 2_000_000_000_000)
      ).apply()
      let recorded = try ConflictRecord.all(on: connection).filter { $0.kind == .foreignKey }.map { record in
        "\(record.table) \(ApplyScenario.text(record.key[0].value)) \(record.outcome)"
      }
      #expect(recorded.sorted() == ["p 1 keptLocal", "p 2 keptLocal", "p 5 keptLocal"])
      #expect(result.counts.updated == 0 && result.counts.deleted == 0)
      transaction.rollback()
    }
  }

  @Test("Of many violations, the first are recorded and all are counted")
  func many() throws {
    let schema = "CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p);"
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(schema)
    let author = try SQLiteConnection(opening: ":memory:", as: .create)
    try author.execute(schema)
    let session = try SQLiteSession(on: author)
    try session.attach()
    try author.execute(
      "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10300) INSERT INTO c SELECT i, i FROM n")
    let transaction = try SQLiteTransaction(on: connection)
    let incoming = try IncomingChanges(
      key: LedgerKey(sender: "", id: nil, digest: [1], isRaw: true), file: "test", definitions: nil,
      changeset: .init(try session.changeset()))
    var asked: [Int] = []
    let settings = ApplySettings(
      resolver: {
        asked.append($0.violations)
        return .useDefault
      }, time: 2_000_000_000_000)
    let result = try Receiver.plan(incoming, on: connection, settings: settings).apply()
    try transaction.commit()
    #expect(result.counts.conflicts == 10_300 && asked == [10_300])
    let records = try ConflictRecord.all(on: connection)
    #expect(records.count == 10_001)
    #expect(records.last?.local == nil && records.last?.reason?.hasPrefix("300 more rows of table \"c\"") == true)
  }
}

extension RandomTable {
  /// For each foreign key, the condition as SQL under which a row `c` violates it: the parent's columns compare.
  fileprivate func missingParents(_ tables: [RandomTable]) -> [String] {
    foreignKeys.compactMap { clause in
      let parts = clause.components(separatedBy: "REFERENCES ")
      let names = parts[0].components(separatedBy: "\"").enumerated().filter { $0.offset % 2 == 1 }.map(\.element)
      let target = parts[1].components(separatedBy: "\"").enumerated().filter { $0.offset % 2 == 1 }.map(\.element)
      guard let parent = tables.first(where: { $0.name == target[0] }) else { return nil }
      let columns = target.count > 1 ? Array(target.dropFirst()) : parent.key.map { parent.columns[$0].name }
      let equal = zip(columns, names).map { "p.\(quoted($0)) = +c.\(quoted($1))" }.joined(separator: " AND ")
      let isSet = names.map { "c.\(quoted($0)) IS NOT NULL" }.joined(separator: " AND ")
      return "\(isSet) AND NOT EXISTS (SELECT 1 FROM \(quoted(parent.name)) AS p WHERE \(equal))"
    }
  }
}
