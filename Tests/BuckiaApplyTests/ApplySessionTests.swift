import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import Testing
import TestSupport

@testable import BuckiaApply
@testable import BuckiaLedger
@testable import SQLiteSchemas

@Suite struct ApplySessionTests {
  private func changes(_ edits: String, of schema: String, id: UInt64) throws -> IncomingChanges {
    let author = try SQLiteConnection(opening: ":memory:", as: .create)
    try author.execute(schema)
    let session = try SQLiteSession(on: author)
    try session.attach()
    try author.execute(edits)
    return try IncomingChanges(
      key: LedgerKey(sender: "", id: nil, digest: (0..<32).map { UInt8($0) ^ UInt8(id) }, isRaw: true), file: "test",
      definitions: nil, changeset: TemporaryBuffer(try session.changeset()))
  }

  @Test("A session restores the connection's triggers and page cache", arguments: [-500, 100, -100_000])
  func restored(_ cacheSize: Int64) throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("CREATE TABLE t(k INTEGER PRIMARY KEY, v); PRAGMA cache_size = \(cacheSize)")
    for fires in [false, true] {
      let session = ApplySession(on: connection, firesTriggers: fires)
      try session.begin()
      #expect(try connection.triggersEnabled == fires)
      let size = try #require(try connection.integer("PRAGMA cache_size"))
      #expect(size == -32_768 || size == cacheSize)
      try session.end()
      #expect(try connection.triggersEnabled)
      #expect(try connection.integer("PRAGMA cache_size") == cacheSize)
    }
  }

  @Test("The schema is read again after it has changed")
  func schemaChanges() throws {
    let schema = "CREATE TABLE t(k INTEGER PRIMARY KEY, v)"
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(schema)
    let session = ApplySession(on: connection)
    try session.begin()
    try connection.execute("BEGIN")
    for (index, change) in [
      "", "ALTER TABLE t RENAME COLUMN v TO w", "DROP TABLE t; CREATE TABLE t(k INTEGER PRIMARY KEY, v UNIQUE)",
      "CREATE TABLE other(x REFERENCES t(k))",
    ].enumerated() {
      try connection.execute(change)
      let incoming = try changes("INSERT INTO t VALUES (\(index), \(index))", of: schema, id: UInt64(index))
      let plan = try Receiver.plan(
        incoming, on: connection, settings: ApplySettings(policies: .abort, time: 2_000_000_000_000), session: session)
      #expect(try plan.apply().counts.inserted == 1)
    }
    #expect(try connection.integer("SELECT count(*) FROM t") == 2)
    try connection.execute("COMMIT")
    try session.end()
  }

  @Test("After a failure and a rollback the session continues with the current schema")
  func afterRollback() throws {
    let schema = "CREATE TABLE t(k INTEGER PRIMARY KEY, v)"
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("\(schema); INSERT INTO t VALUES (1, 'mine')")
    let session = ApplySession(on: connection)
    try session.begin()
    let settings = ApplySettings(policies: .abort, time: 2_000_000_000_000)
    let conflicting = try changes("INSERT INTO t VALUES (1, 'theirs')", of: schema, id: 1)
    try connection.execute("BEGIN")
    let plan = try Receiver.plan(conflicting, on: connection, settings: settings, session: session)
    #expect(throws: ReplicationError.self) { _ = try plan.apply() }
    try connection.execute("ROLLBACK; BEGIN; CREATE TABLE buckia_x(y)")
    let fine = try changes("INSERT INTO t VALUES (2, 'theirs')", of: schema, id: 2)
    let second = try Receiver.plan(fine, on: connection, settings: settings, session: session)
    #expect(try second.apply().counts.inserted == 1)
    try connection.execute("COMMIT")
    #expect(try LedgerEntries.count(on: connection) == 1)
    try session.end()
  }
}
