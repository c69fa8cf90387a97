import Buckia
import Foundation
import TestSupport
import Testing

@Suite("A database as text") struct DatabaseTextTests {
  private func lines(_ sql: String) throws -> [String] {
    let folder = try TemporaryFolder()
    let path = try TestDatabases.run(sql, on: folder.file("a.db"))
    var lines: [String] = []
    try DatabaseManager(path).forEachTextLine { lines.append($0) }
    return lines
  }

  @Test("The schema comes first, then the rows by key, and different values have different text")
  func values() throws {
    let found = try lines(
      """
      PRAGMA user_version = 3;
      CREATE TABLE t(k TEXT PRIMARY KEY, v) WITHOUT ROWID; CREATE INDEX i ON t(v); CREATE VIEW a AS SELECT 1;
      INSERT INTO t VALUES ('b', 1), ('a', 1.0), ('c', '1'), ('d', NULL), ('e', x'31'), ('f', zeroblob(33)),
        ('g', 'it''s ' || char(10) || '\\n' || char(27)), ('h', 9e999), ('i', CAST(x'ff' AS TEXT));
      CREATE TABLE log(line); INSERT INTO log(rowid, line) VALUES (7, 'x')
      """)
    #expect(
      found == [
        "PRAGMA user_version = 3;", "", "CREATE TABLE log(line);", "",
        "CREATE TABLE t(k TEXT PRIMARY KEY, v) WITHOUT ROWID;", "", "CREATE INDEX i ON t(v);", "",
        "CREATE VIEW a AS SELECT 1;", "", "table log", "  _rowid_=7, line='x'", "", "table t", "  k='a', v=1.0",
        "  k='b', v=1", "  k='c', v='1'", "  k='d', v=NULL", "  k='e', v=x'31'",
        "  k='f', v=blob(33 bytes, sha256 7f9c9e31ac8256ca2f258583df262dbc7d6f68f2a03043d5c99a4ae5a7396ce9)",
        "  k='g', v='it''s \\n\\\\n\\u{1B}'", "  k='h', v=inf", "  k='i', v=text x'ff'",
      ])
  }

  @Test("Equal databases give equal text, however they were made")
  func stable() throws {
    let one = try lines(
      "CREATE TABLE t(k INTEGER PRIMARY KEY, v); CREATE TABLE u(x); INSERT INTO t VALUES (2, 'b'), (1, 'a')")
    let other = try lines(
      "CREATE TABLE u(x); CREATE TABLE w(x); CREATE TABLE t(k INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 'a'), (3, 'c'), (2, 'b');"
        + "DELETE FROM t WHERE k = 3; DROP TABLE w; VACUUM")
    #expect(one == other)
  }

  @Test("The text has the rows of virtual tables, but not those of their internal tables")
  func virtualTables() throws {
    let found = try lines("CREATE VIRTUAL TABLE f USING fts5(body); INSERT INTO f VALUES ('hello')")
    #expect(found.contains("  _rowid_=1, body='hello'"))
    #expect(!found.contains { $0.contains("f_content") || $0.contains("f_data") })
  }
}
