import BuckiaDiff
import Testing
import TestSupport

/// Indexes, triggers and views are not sent; differences in them are reported.
@Suite struct UntransferredObjectTests {
  private func skipped(_ older: String, _ newer: String) throws -> [String] {
    let folder = try TemporaryFolder()
    let older = try TestDatabases.run(older, on: folder.file("older"))
    let newer = try TestDatabases.run(newer, on: folder.copy("older", to: "newer"))
    return try DatabaseComparison.run(older: older, newer: newer).skipped.map {
      "\($0.name) \($0.reason.code) \($0.reason.arguments.joined(separator: " "))"
    }
  }

  @Test("New, changed and dropped objects are named")
  func everyKind() throws {
    let found = try skipped(
      """
      CREATE TABLE t(id INTEGER PRIMARY KEY, a, b); CREATE INDEX kept ON t(a); CREATE INDEX gone ON t(a);
      CREATE INDEX other ON t(a); CREATE TRIGGER fired AFTER INSERT ON t BEGIN SELECT 1; END;
      CREATE VIEW seen AS SELECT a FROM t; CREATE TRIGGER instead INSTEAD OF INSERT ON seen BEGIN SELECT 1; END;
      CREATE VIEW same AS SELECT b FROM t
      """,
      """
      DROP INDEX gone; DROP INDEX other; CREATE INDEX other ON t(b); DROP TRIGGER fired; DROP VIEW seen;
      CREATE INDEX fresh ON t(b); CREATE VIEW new AS SELECT 1; INSERT INTO t VALUES (1, 2, 3)
      """)
    #expect(
      found == [
        "fresh newObject index", "other changedObject index", "new newObject view", "gone droppedObject index",
        "fired droppedObject trigger", "seen droppedObject view",
      ])
  }

  @Test("An object dropped with its table is not named beside it")
  func ofDroppedTables() throws {
    let found = try skipped(
      """
      CREATE TABLE t(id INTEGER PRIMARY KEY, a); CREATE INDEX i ON t(a);
      CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END; CREATE TABLE u(id INTEGER PRIMARY KEY)
      """, "DROP TABLE t")
    #expect(found == ["t tableDropped "])
  }

  @Test("A dropped virtual table is named, even if its rows are not sent, but its shadow tables are not")
  func virtualTables() throws {
    let found = try skipped(
      """
      CREATE TABLE t(id INTEGER PRIMARY KEY, a); CREATE VIRTUAL TABLE own USING fts5(a);
      CREATE VIRTUAL TABLE external USING fts5(a, content='t', content_rowid='id')
      """, "DROP TABLE own; DROP TABLE external")
    #expect(found.sorted() == ["external tableDropped ", "own tableDropped "])
  }

  @Test("A name reused for another kind of object is one dropped and one new object")
  func otherKind() throws {
    let found = try skipped(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, a); CREATE VIEW x AS SELECT 1", "DROP VIEW x; CREATE INDEX x ON t(a)")
    #expect(found == ["x newObject index", "x droppedObject view"])
  }

  @Test("The indexes of our own tables are not the user's, whichever side has them")
  func own() throws {
    let ledger = "CREATE TABLE buckia_ledger(id INTEGER PRIMARY KEY, a); CREATE INDEX buckia_i ON Buckia_Ledger(a)"
    let table = "CREATE TABLE t(id INTEGER PRIMARY KEY)"
    #expect(try skipped(table, ledger) == [])
    let both = "\(table); \(ledger)"
    #expect(try skipped(both, "DROP TABLE buckia_ledger") == [])
    #expect(try skipped(both, "DROP INDEX buckia_i; CREATE INDEX buckia_i ON buckia_ledger(id, a)") == [])
  }
}
