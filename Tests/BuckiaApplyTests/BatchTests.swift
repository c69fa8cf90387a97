import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import Testing

@testable import BuckiaApply
@testable import BuckiaLedger
import ReplicationTestSupport
import TestSupport

/// Many INSERTs into one table, some of which are refused. The differential test has few rows in each table, and
/// batches begin where those end.
@Suite struct BatchTests {
  private static let tables = [
    "CREATE TABLE t(k INTEGER PRIMARY KEY, u UNIQUE, v INTEGER CHECK (v <> 7), w NOT NULL)",
    "CREATE TABLE t(k TEXT PRIMARY KEY, u, v INTEGER CHECK (v <> 7), w)",
    "CREATE TABLE t(k TEXT PRIMARY KEY, u UNIQUE, v INTEGER CHECK (v <> 7), w NOT NULL) WITHOUT ROWID",
    "CREATE TABLE t(k INTEGER PRIMARY KEY, u ANY, v INTEGER CHECK (v <> 7), w TEXT) STRICT",
    "CREATE TABLE t(k TEXT PRIMARY KEY, u ANY UNIQUE, v ANY, w TEXT NOT NULL) STRICT",
    "CREATE TABLE t(k INTEGER PRIMARY KEY, u, v, w UNIQUE ON CONFLICT REPLACE)",
  ]

  @Test("Among many rows, the same are refused and inserted as one by one", arguments: tables)
  func likeStock(_ definition: String) throws {
    for seed in Seeds.range(40) {
      var random = SeededGenerator(seed: seed)
      let isText = definition.contains("k TEXT")
      var inserts: [String] = []
      var mine: [String] = []
      for number in 0..<Int.random(in: 1...160, using: &random) {
        let key = isText ? "'key \(number)'" : "\(number)"
        let value = random.oneIn(20) ? "7" : definition.hasSuffix("STRICT") && random.oneIn(20) ? "8" : "\(number)"
        let unique = random.oneIn(15) ? "1" : "\(number + 1000)"
        inserts.append("(\(key), \(unique), \(value), \(random.oneIn(20) ? "NULL" : "'w\(number)'"))")
        if random.oneIn(12) { mine.append("(\(key), \(number + 5000), 1, 'mine')") }
      }
      // The author's table accepts all rows.
      let loose = "CREATE TABLE t(k \(isText ? "TEXT" : "INTEGER") PRIMARY KEY, u, v, w)"
      let author = try SQLiteConnection(opening: ":memory:", as: .create)
      try author.execute(loose + (definition.contains("WITHOUT") ? " WITHOUT ROWID" : ""))
      let session = try SQLiteSession(on: author)
      try session.attach()
      try author.execute("INSERT INTO t VALUES \(inserts.joined(separator: ", "))")
      let changes = try session.changeset()

      func receiver() throws -> SQLiteConnection {
        let connection = try SQLiteConnection(opening: ":memory:", as: .create)
        try connection.execute(definition)
        if !mine.isEmpty { try connection.execute("INSERT OR IGNORE INTO t VALUES \(mine.joined(separator: ", "))") }
        return connection
      }
      let ours = try receiver()
      let transaction = try SQLiteTransaction(on: ours)
      let incoming = try IncomingChanges(
        key: LedgerKey(sender: "", id: nil, digest: [UInt8](repeating: 1, count: 32), isRaw: true), file: "test",
        definitions: nil, changeset: TemporaryBuffer(changes))
      let result = try Receiver.plan(incoming, on: ours, settings: ApplySettings(time: 2_000_000_000_000)).apply(
        in: transaction)
      try transaction.commit()
      let counts = result.counts
      #expect(counts.inserted + counts.omitted + counts.unchanged == inserts.count, "\(Seeds.replay(seed))")
      #expect(try ours.integer("SELECT count(*) FROM buckia_conflict") == Int64(counts.conflicts))
      let columns = ["k", "u", "v", "w"]
      let rows = try Rows.lines(of: "t", columns: columns, on: ours)
      // SQLite loses rows if the schema says ON CONFLICT REPLACE: another test covers that deviation.
      if definition.contains("ON CONFLICT") { continue }
      let theirs = try receiver()
      try StockChangesets.apply(changes, to: theirs) { _, _ in .omit }
      #expect(rows == (try Rows.lines(of: "t", columns: columns, on: theirs)), "\(Seeds.replay(seed))")
    }
  }

  @Test("Large rows are inserted alone, among the batches of the others")
  func largeRows() throws {
    let author = try SQLiteConnection(opening: ":memory:", as: .create)
    try author.execute("CREATE TABLE t(k INTEGER PRIMARY KEY, v)")
    let session = try SQLiteSession(on: author)
    try session.attach()
    try author.execute(
      "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) INSERT INTO t SELECT i, zeroblob(i) FROM n")
    try author.execute("UPDATE t SET v = zeroblob(300000) WHERE k % 10 = 3")
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("CREATE TABLE t(k INTEGER PRIMARY KEY, v)")
    let transaction = try SQLiteTransaction(on: connection)
    let incoming = try IncomingChanges(
      key: LedgerKey(sender: "", id: nil, digest: [UInt8](repeating: 1, count: 32), isRaw: true), file: "test",
      definitions: nil, changeset: TemporaryBuffer(try session.changeset()))
    let plan = try Receiver.plan(
      incoming, on: connection, settings: ApplySettings(policies: .abort, time: 2_000_000_000_000))
    #expect(try plan.apply(in: transaction).counts.inserted == 100)
    try transaction.commit()
    #expect(try connection.integer("SELECT sum(length(v)) FROM t") == 3_000_000 + 5_050 - 480)
  }
}
