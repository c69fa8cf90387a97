import BuckiaDiff
import Foundation
import SQLiteConnections
import Testing
import ReplicationTestSupport
import TestSupport

/// A pair of databases. Their difference, applied to the first, must give the second.
struct Pair: Sendable, CustomTestStringConvertible {
  let name: String
  let older: String
  let newer: String
  /// True if `sqlite3session_diff` treats some of the values as equal: `a` and `A` under NOCASE, 1 and 1.0.
  var isMissedBySession = false
  var testDescription: String { name }

  static let all: [Pair] = [
    Pair(
      name: "integer key",
      older: "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b); INSERT INTO t VALUES (1,'x',2),(2,'y',3),(3,NULL,x'00')",
      newer: "UPDATE t SET a = 'z' WHERE id = 1; DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (9, 1.5, -0.0)"),
    Pair(
      name: "text key with both cases of a letter",
      older: "CREATE TABLE t(k TEXT PRIMARY KEY COLLATE NOCASE, v); INSERT INTO t VALUES ('a',1),('b',2)",
      newer: "UPDATE t SET k = 'A' WHERE k = 'a'; INSERT INTO t VALUES ('c', 3)", isMissedBySession: true),
    Pair(
      name: "composite key without rowid",
      older: """
        CREATE TABLE t(a TEXT, b INTEGER, c, PRIMARY KEY (b, a)) WITHOUT ROWID;
        INSERT INTO t VALUES ('x',1,1),('y',1,2),('x',2,3)
        """,
      newer: "UPDATE t SET c = c + 1 WHERE b = 1; DELETE FROM t WHERE b = 2; INSERT INTO t VALUES ('ü',7,NULL)"),
    Pair(
      name: "no key",
      older: "CREATE TABLE t(a, b); INSERT INTO t VALUES (1,1),(1,1),(2,NULL)",
      newer: "DELETE FROM t WHERE rowid = 1; UPDATE t SET b = 5 WHERE a = 2; INSERT INTO t VALUES (3,3),(3,3)"),
    Pair(
      name: "NULL in the key",
      older: "CREATE TABLE t(k TEXT PRIMARY KEY, v); INSERT INTO t VALUES (NULL,1),(NULL,1),(NULL,2),('a',1)",
      newer: "DELETE FROM t WHERE rowid = 1; UPDATE t SET v = 9 WHERE v = 2; INSERT INTO t VALUES (NULL,7)"),
    Pair(
      name: "NULL in a key that is NOT NULL since",
      older: "CREATE TABLE t(k TEXT PRIMARY KEY, v); INSERT INTO t VALUES (NULL,1),('a',1)",
      newer: """
        DELETE FROM t WHERE k IS NULL; ALTER TABLE t RENAME TO o; CREATE TABLE t(k TEXT NOT NULL PRIMARY KEY, v);
        INSERT INTO t SELECT * FROM o; DROP TABLE o
        """),
    Pair(
      name: "generated columns",
      older: """
        CREATE TABLE t(a INTEGER PRIMARY KEY, g AS (b * 2), b, s TEXT AS (b || 'x') STORED);
        INSERT INTO t(a, b) VALUES (1,1),(2,2)
        """,
      newer: "UPDATE t SET b = 10 WHERE a = 1; INSERT INTO t(a, b) VALUES (3,3); DELETE FROM t WHERE a = 2"),
    Pair(
      name: "a new table and a new column with a default",
      older: "CREATE TABLE t(id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1,1),(2,2),(3,3)",
      newer: """
        ALTER TABLE t ADD COLUMN n INTEGER NOT NULL DEFAULT '5'; UPDATE t SET n = 6 WHERE id = 2;
        CREATE TABLE u(x TEXT PRIMARY KEY, y REAL DEFAULT 1.5, UNIQUE (y)); INSERT INTO u VALUES ('p', 2), ('q', NULL);
        DELETE FROM t WHERE id = 3; INSERT INTO t VALUES (4, 4, 4)
        """),
    Pair(
      name: "a new column in the middle",
      older: "CREATE TABLE t(id INTEGER PRIMARY KEY, a, c); INSERT INTO t VALUES (1,'a','c'),(2,'aa','cc')",
      newer: """
        ALTER TABLE t RENAME TO o; CREATE TABLE t(b DEFAULT 7, c, id INTEGER PRIMARY KEY, a);
        INSERT INTO t(id, a, b, c) SELECT id, a, 'b', c FROM o; INSERT INTO t(id, a, c) VALUES (5, 1, 2); DROP TABLE o
        """),
    Pair(
      name: "values swapped under UNIQUE",
      older: """
        CREATE TABLE t(id INTEGER PRIMARY KEY, u UNIQUE);
        WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50) INSERT INTO t SELECT i, i FROM n
        """,
      newer: """
        UPDATE t SET u = -u; UPDATE t SET u = CASE WHEN id % 2 THEN id + 1 ELSE id - 1 END
        """),
    Pair(
      name: "a whole column moved up under UNIQUE",
      older: """
        CREATE TABLE t(id TEXT PRIMARY KEY, pos INTEGER NOT NULL UNIQUE);
        WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) INSERT INTO t SELECT 'r' || i, i FROM n
        """,
      newer: "UPDATE t SET pos = -pos; UPDATE t SET pos = 1 - pos"),
    Pair(
      name: "names in other scripts, with quotes and spaces",
      older: """
        CREATE TABLE "ta""ble 'x' [y]"("ключ 1" INTEGER PRIMARY KEY, "sp ace", "quo""te" DEFAULT 'it''s', `select`);
        INSERT INTO "ta""ble 'x' [y]" VALUES (1,2,3,4)
        """,
      newer: """
        UPDATE "ta""ble 'x' [y]" SET "sp ace" = 'ändern'; INSERT INTO "ta""ble 'x' [y]"("ключ 1") VALUES (2);
        CREATE TABLE "新しい 表"("列" TEXT PRIMARY KEY, "b;--" INT); INSERT INTO "新しい 表" VALUES ('値', 1)
        """),
    Pair(
      name: "triggers and checks",
      older: """
        CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER CHECK (a < 100)); CREATE TABLE log(id INTEGER PRIMARY KEY, t);
        CREATE TRIGGER tr AFTER INSERT ON t BEGIN INSERT INTO log(t) VALUES (new.id); END;
        CREATE TRIGGER bad AFTER UPDATE ON t BEGIN SELECT no_such_function(new.a); END;
        INSERT INTO t VALUES (1,1)
        """,
      newer: "INSERT INTO t VALUES (2,2),(3,99); DELETE FROM t WHERE id = 1"),
    Pair(
      name: "foreign keys with cascades",
      older: """
        CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p ON DELETE CASCADE);
        INSERT INTO p VALUES (1),(2); INSERT INTO c VALUES (1,1),(2,2),(3,2)
        """,
      newer:
        "PRAGMA foreign_keys = ON; DELETE FROM p WHERE id = 2; INSERT INTO p VALUES (7); INSERT INTO c VALUES (9,7)"),
    Pair(
      name: "STRICT and AUTOINCREMENT",
      older: "CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, a ANY, b TEXT NOT NULL) STRICT",
      newer: """
        INSERT INTO t(a, b) VALUES (1, 'x'), ('1', 'y'), (x'01', ''); DELETE FROM t WHERE id = 2;
        CREATE TABLE u(id INTEGER PRIMARY KEY AUTOINCREMENT, v ANY) STRICT; INSERT INTO u(v) VALUES (1.0), ('1.0')
        """),
    Pair(
      name: "one and one point nought",
      older: "CREATE TABLE t(k PRIMARY KEY, v); INSERT INTO t VALUES (1, 1), (2.5, 2), ('1', 3), (x'31', 4)",
      newer: "UPDATE t SET k = 1.0 WHERE v = 1; UPDATE t SET v = 1.0 WHERE v = 2; UPDATE t SET v = 4.0 WHERE v = 4",
      isMissedBySession: true),
    Pair(
      name: "UTF-16",
      older:
        "PRAGMA encoding = 'UTF-16le'; CREATE TABLE t(k TEXT PRIMARY KEY, v); INSERT INTO t VALUES ('ā',1),('b',2),('ﬀ',3)",
      newer: "DELETE FROM t WHERE k = 'b'; INSERT INTO t VALUES ('𝒳', 'x'), ('z', 'ё')"),
    Pair(
      name: "keys at both ends and in descending order",
      older: """
        CREATE TABLE t(a INTEGER, b REAL, PRIMARY KEY (a DESC, b)) WITHOUT ROWID;
        INSERT INTO t VALUES (-9223372036854775808, 1e308), (9223372036854775807, -1e308), (0, 0.1)
        """,
      newer: "DELETE FROM t WHERE a = 0; INSERT INTO t VALUES (9007199254740993, 9e999), (9007199254740992, -9e999)"),
    Pair(
      name: "a full-text table beside an ordinary one",
      older:
        "CREATE TABLE n(id INTEGER PRIMARY KEY, t); CREATE VIRTUAL TABLE f USING fts5(t); INSERT INTO n VALUES (1, 'a')",
      newer: "INSERT INTO f VALUES ('hello'); INSERT INTO n VALUES (2, 'b')"),
  ]
}

@Suite struct MirrorTests {
  @Test(
    "The difference of two databases, applied to the older, turns it into the newer",
    arguments: Pair.all, [DiffMethod?.none, .session])
  func mirror(_ pair: Pair, method: DiffMethod?) throws {
    if method == .session, pair.isMissedBySession { return }
    let folder = try TemporaryFolder()
    let older = try TestDatabases.run(pair.older, on: folder.file("older"))
    let newer = try TestDatabases.run(pair.newer, on: try folder.copy("older", to: "newer"))
    let target = try folder.copy("older", to: "target")
    let result = try Shipping.ship(from: older, to: newer, onto: target, options: DiffOptions(method: method))
    #expect(result.counts.conflicts == 0)
    #expect(result.counts.omitted == 0)
    #expect(try TestDatabases.content(of: target) == TestDatabases.content(of: newer))
    let rest = try DatabaseComparison.run(older: target, newer: newer)
    #expect(rest.tables.isEmpty, "\(rest.tables.map(\.definition.name))")
  }

  @Test("An unchanged database has no difference")
  func unchanged() throws {
    let folder = try TemporaryFolder()
    for pair in Pair.all {
      let path = try TestDatabases.run(pair.older, on: folder.file(UUID().uuidString))
      #expect(try DatabaseComparison.run(older: path, newer: path).isEmpty)
    }
  }

  // SQLite adds such a column up to version 3.40, and refuses it later.
  @Test("A column whose default does not fit its STRICT type does not prevent other changes")
  func columnThatCannotBeAdded() throws {
    let folder = try TemporaryFolder()
    let older = try TestDatabases.run(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT) STRICT; INSERT INTO t VALUES (1, 'x')", on: folder.file("older"))
    let newer = try TestDatabases.run(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, n INTEGER DEFAULT 'word') STRICT; INSERT INTO t VALUES (1, 'y', 5)",
      on: folder.file("newer"))
    let difference = try DatabaseComparison.run(older: older, newer: newer)
    #expect(difference.tables.map(\.updated) == [1])
    let travels = difference.tables.first?.newColumns == ["n"]
    #expect(travels != difference.skipped.contains { $0.name == "t.n" })
  }

  @Test("A key or UNIQUE with another collation than the column's declared one is named")
  func otherCollations() throws {
    let folder = try TemporaryFolder()
    let older = try TestDatabases.run("CREATE TABLE other(a)", on: folder.file("older"))
    let newer = try folder.copy("older", to: "newer")
    try TestDatabases.run(
      """
      CREATE TABLE t(a TEXT, b TEXT COLLATE NOCASE, c, PRIMARY KEY (a COLLATE NOCASE), UNIQUE (b COLLATE RTRIM, c), UNIQUE (b));
      CREATE TABLE w(a TEXT COLLATE NOCASE, PRIMARY KEY (a)) WITHOUT ROWID
      """, on: newer)
    let skipped = try DatabaseComparison.run(older: older, newer: newer).skipped
    #expect(skipped.map(\.name) == ["t", "t"])
    #expect(skipped.contains { $0.reason.description.contains("primary key compares \"a\" by NOCASE") })
    #expect(skipped.contains { $0.reason.description.contains("UNIQUE on \"b\" compares by RTRIM") })
  }
}
