import SQLiteConnections
import Testing

/// A kind of data that SQLite can store: a database, and edits of it.
struct KindOfData: Sendable, CustomTestStringConvertible {
  let testDescription: String
  /// The statements that make the old database.
  let schema: String
  /// The statements that make the new one from it. `unwatched` has those that no session records, such as VACUUM.
  let edits: String
  /// Statements that change the new database without being recorded.
  var unwatched = ""
  /// Why `sqlite3session_diff` does not find all changes; nil if it does.
  var missedBySession: String?
  /// Why a session of SQLite 3.40 does not record all changes; nil if it does.
  var notRecorded: String?
  /// The tables that cannot be created elsewhere.
  var lost: Set<String> = []

  init(
    _ name: String, _ schema: String, _ edits: String, unwatched: String = "", missedBySession: String? = nil,
    notRecorded: String? = nil, lost: Set<String> = []
  ) {
    testDescription = name
    self.schema = schema
    self.edits = edits
    self.unwatched = unwatched
    self.missedBySession = missedBySession
    self.notRecorded = notRecorded
    self.lost = lost
  }

  private static let noKey = "it has no primary key"
  private static let nullKey = "rows with NULL in the key have no identity there"
  private static let generated = "it has generated columns"
  private static let takenForEqual = "SQLite takes the values for equal"

  /// Values of every storage class, with the extremes.
  private static let values = [
    "NULL", "0", "1", "-1", "9223372036854775807", "-9223372036854775808", "9007199254740993", "0.0", "1.0", "-1.5",
    "1e308", "5e-324", "9e999", "-9e999", "9223372036854775808", "1e18", "''", "'0'", "'1'", "' 1 '", "'1.0'", "'1e3'",
    "'0x10'",
    "'9223372036854775808'", "'abc'", "'a' || char(0) || 'b'", "char(0)", "x''", "x'00'", "x'31'", "zeroblob(5000)",
    "'مرحبا'",
    "'שלום'", "'e' || char(769)", "char(233)", "char(128512)", "char(8238) || 'x'", "char(65279) || 'bom'",
    "char(1114111)",
    "printf('%.*c', 9000, 'ü')",
  ]

  private static func rows(from first: Int, _ columns: String) -> String {
    values.enumerated().map { "INSERT INTO t(\(columns)) VALUES (\(first + $0), \($1));" }.joined(separator: "\n")
  }

  /// The values in a column of a type. Rows get the values of their neighbours, and some are deleted and inserted.
  private static func column(_ type: String, _ options: String = "", prefix: String = "") -> KindOfData {
    KindOfData(
      "all values in a column of type '\(type)'\(options.isEmpty ? "" : ", \(options)")\(prefix.isEmpty ? "" : ", \(prefix)")",
      "\(prefix) CREATE TABLE t(id INTEGER PRIMARY KEY, v \(type)) \(options); \(rows(from: 1, "id, v"))",
      """
      UPDATE t SET v = (SELECT n.v FROM t AS n WHERE n.id = t.id + 1) WHERE id % 3 = 0; DELETE FROM t WHERE id % 7 = 0;
      \(rows(from: 100, "id, v")); UPDATE t SET v = -0.0 WHERE v IS 1.5; INSERT INTO t VALUES (999, -0.0), (1000, 9e999 - 9e999)
      """)
  }

  /// The values as keys.
  private static func keys(_ definition: String, missedBySession: String? = nil) -> KindOfData {
    KindOfData(
      "all values as keys of \(definition)", "CREATE TABLE t\(definition); " + keyRows("id % 2 = 0"),
      """
      \(keyRows("id % 2 = 1")) UPDATE t SET v = v || 'x' WHERE v % 4 = 0; DELETE FROM t WHERE v % 6 = 0;
      UPDATE OR IGNORE t SET k = k || 'y' WHERE v % 10 = 0
      """, missedBySession: missedBySession)
  }

  private static func keyRows(_ condition: String) -> String {
    values.enumerated().filter { $0.offset > 0 && ($0.offset % 2 == 0) == (condition == "id % 2 = 0") }
      .map { "INSERT OR IGNORE INTO t(k, v) VALUES (\($1), \($0));" }.joined(separator: "\n")
  }

  private static let scripts = [
    "'plain'", "'ñandú'", "'e' || char(769)", "char(233)", "'شكرا جزيلا'", "'תודה'", "'日本語の文'",
    "char(128512, 8205, 128187)",
    "char(119558)", "char(65279) || 'x'", "'x' || char(0) || 'y'", "char(65533)", "''", "char(1114109)",
    "char(8238, 65)",
  ]

  private static func text(_ name: String, _ older: String) -> KindOfData {
    let first = scripts.enumerated().map { "(\(scripts[$0.offset]), \($0.offset))" }.joined(separator: ", ")
    return KindOfData(
      name,
      "\(older) CREATE TABLE t(k TEXT PRIMARY KEY, v, w TEXT COLLATE NOCASE); INSERT INTO t(k, v) VALUES \(first)",
      """
      UPDATE t SET w = k || 'z' WHERE v % 2 = 0; UPDATE t SET k = 'q' || k WHERE v % 3 = 0; DELETE FROM t WHERE v = 7;
      INSERT INTO t SELECT 'n' || k, v + 100, k FROM t WHERE v < 5
      """)
  }

  static let all: [KindOfData] =
    [
      column(""), column("INTEGER"), column("REAL"), column("TEXT"), column("BLOB"), column("NUMERIC"),
      column("ANY", "STRICT"), column("DECIMAL(10, 2)"), column("VARCHAR(5)"), column("BOOLEAN"),
      column("", "WITHOUT ROWID"),
      column("", prefix: "PRAGMA encoding = 'UTF-16le';"), column("REAL", prefix: "PRAGMA encoding = 'UTF-16be';"),
      column("", prefix: "PRAGMA page_size = 512;"), column("ANY", prefix: "PRAGMA auto_vacuum = 1;"),
      keys("(k PRIMARY KEY, v)"), keys("(k TEXT PRIMARY KEY, v)"), keys("(k BLOB PRIMARY KEY, v) WITHOUT ROWID"),
      keys("(v, k NUMERIC PRIMARY KEY)"), keys("(k REAL, v, PRIMARY KEY (v, k)) WITHOUT ROWID"),
      keys("(k ANY PRIMARY KEY, v ANY) STRICT"), keys("(k TEXT COLLATE NOCASE PRIMARY KEY, v)"),
      keys("(k TEXT COLLATE RTRIM, v, PRIMARY KEY (k DESC)) WITHOUT ROWID"),
      text("text of many scripts", ""), text("text of many scripts in UTF-16le", "PRAGMA encoding = 'UTF-16le';"),
      text("text of many scripts in UTF-16be", "PRAGMA encoding = 'UTF-16be';"),
    ] + shapes + special

  private static let shapes: [KindOfData] = [
    KindOfData(
      "tables without a key, with duplicates, after VACUUM",
      """
      CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 1), (1, 1), (1, 1), (NULL, NULL), ('x', x'00');
      CREATE TABLE u(rowid, oid, c TEXT); INSERT INTO u VALUES (1, 2, 'a'), (1, 2, 'a'), (3, 4, 'b');
      CREATE TABLE w("_rowid", d); INSERT INTO w VALUES (5, 6); INSERT INTO w(rowid, "_rowid", d) VALUES
        (9223372036854775807, 1, 1), (-9223372036854775808, 2, 2), (-5, 3, 3)
      """,
      """
      DELETE FROM t WHERE rowid = 2; INSERT INTO t VALUES (1, 1), (2.0, 'n'); UPDATE t SET b = 7 WHERE a = 'x';
      DELETE FROM u WHERE "_rowid_" = 1; INSERT INTO u VALUES (8, 9, 'c'); UPDATE w SET d = 9 WHERE rowid < 0;
      INSERT INTO w(rowid, d) VALUES (40, 4)
      """, unwatched: "VACUUM", notRecorded: noKey, lost: ["u"]),
    KindOfData(
      "the same rows under other rowids",
      "CREATE TABLE t(a); INSERT INTO t(rowid, a) VALUES (5, 'a'), (6, 'b'), (90, 'c'), (91, 'c')", "",
      unwatched: "VACUUM"),
    KindOfData(
      "NULL in keys",
      """
      CREATE TABLE t(k PRIMARY KEY, v); INSERT INTO t VALUES (NULL, 1), (NULL, 1), (NULL, 2), ('a', 1), (1, NULL);
      CREATE TABLE u(a TEXT, b INT, v, PRIMARY KEY (a, b));
      INSERT INTO u VALUES ('x', NULL, 1), (NULL, 1, 2), (NULL, NULL, 3), ('x', 1, 4), ('x', NULL, 1)
      """,
      """
      DELETE FROM t WHERE v = 2; INSERT INTO t VALUES (NULL, NULL), (NULL, 1); UPDATE t SET v = 5 WHERE k = 'a';
      UPDATE u SET v = 9 WHERE a IS NULL AND b = 1; DELETE FROM u WHERE rowid = 1; UPDATE u SET b = 2 WHERE v = 3;
      UPDATE t SET k = 'b' WHERE rowid = 1
      """, notRecorded: nullKey),
    KindOfData(
      "composite and collated keys, in both directions",
      """
      CREATE TABLE t(a TEXT COLLATE NOCASE, b INT, c REAL, v, PRIMARY KEY (c, a, b));
      INSERT INTO t VALUES ('a', 1, 1, 1), ('B', 1, 1.5, 2), ('c', 2, -9e999, 3);
      CREATE TABLE u(a TEXT COLLATE RTRIM, b, v, PRIMARY KEY (b DESC, a)) WITHOUT ROWID;
      INSERT INTO u VALUES ('a ', 1, 1), ('b', 2, 2), ('c', x'01', 3);
      CREATE TABLE w(a, b, c, PRIMARY KEY (a, b, a)); INSERT INTO w VALUES (1, 2, 3), (1, 3, 4);
      CREATE TABLE x(k TEXT, v, PRIMARY KEY (k COLLATE NOCASE)); INSERT INTO x VALUES ('a', 1), ('B', 2)
      """,
      """
      UPDATE t SET v = 10 WHERE a = 'A'; UPDATE t SET a = 'd' WHERE a = 'b'; DELETE FROM t WHERE b = 2;
      INSERT INTO t VALUES ('E', 9, 0, NULL); UPDATE u SET b = 7 WHERE v = 2; INSERT INTO u VALUES ('', '', 4);
      DELETE FROM u WHERE v = 3; UPDATE w SET c = 5; INSERT INTO w VALUES (2, 2, 2); UPDATE x SET v = 3 WHERE k = 'a';
      INSERT INTO x VALUES ('c', 3)
      """),
    KindOfData(
      "keys that become others which SQLite takes for equal",
      """
      CREATE TABLE t(k TEXT COLLATE NOCASE PRIMARY KEY, v); INSERT INTO t VALUES ('a', 1), ('b', 2);
      CREATE TABLE u(k PRIMARY KEY, v); INSERT INTO u VALUES (1, 1), (0.0, 2), (2, 3);
      CREATE TABLE w(k TEXT COLLATE RTRIM PRIMARY KEY, v) WITHOUT ROWID; INSERT INTO w VALUES ('x', 1), ('y ', 2)
      """,
      """
      UPDATE t SET k = 'A' WHERE k = 'a'; UPDATE u SET k = 1.0 WHERE v = 1; UPDATE u SET k = -0.0 WHERE v = 2;
      UPDATE w SET k = 'x  ' WHERE v = 1; UPDATE t SET v = 5 WHERE v = 2
      """, missedBySession: takenForEqual, notRecorded: takenForEqual),
    KindOfData(
      "values that become others which SQLite takes for equal",
      "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b TEXT COLLATE NOCASE); INSERT INTO t VALUES (1, 1, 'a'), (2, 0.0, 'b')",
      "UPDATE t SET a = 1.0, b = 'A' WHERE id = 1; UPDATE t SET a = 0 WHERE id = 2", missedBySession: takenForEqual),
    KindOfData(
      "0.0 that becomes -0.0", "CREATE TABLE t(id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 0.0), (2, -0.0)",
      "UPDATE t SET a = -a", missedBySession: takenForEqual, notRecorded: takenForEqual),
    KindOfData(
      "WITHOUT ROWID with a wide key",
      """
      CREATE TABLE t(v, a, b, c, PRIMARY KEY (c, a)) WITHOUT ROWID;
      WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
      INSERT INTO t SELECT i, 'k' || (i % 20), printf('%.*c', i % 300, 'x'), i / 20 FROM n
      """,
      """
      UPDATE t SET b = zeroblob(3000) WHERE v % 50 = 0; DELETE FROM t WHERE v % 31 = 0; UPDATE t SET c = c + 1000 WHERE v % 77 = 1;
      INSERT INTO t VALUES (9, 'new', NULL, 9)
      """),
    KindOfData(
      "STRICT tables of all types",
      """
      CREATE TABLE t(id INT PRIMARY KEY, i INTEGER, r REAL, x TEXT, b BLOB, a ANY) STRICT;
      INSERT INTO t VALUES (1, 1, 1, '1', x'31', 1), (2, NULL, NULL, NULL, NULL, NULL), (3, -1, 1e300, '', x'', '1')
      """,
      """
      UPDATE t SET a = '1', r = -0.0 WHERE id = 1; UPDATE t SET a = 1.0, i = 9223372036854775807 WHERE id = 2;
      INSERT INTO t VALUES (4, 0, 9e999, 'ж', x'ff', x'00'), (5, 0, 3, '7', x'', 9007199254740993); DELETE FROM t WHERE id = 3
      """),
    KindOfData(
      "generated columns, stored and not, indexed and unique",
      """
      CREATE TABLE t(g AS (a + b) UNIQUE, a INTEGER, s TEXT AS (upper(x)) STORED, b, x TEXT, id INTEGER PRIMARY KEY, h AS (s || g) STORED);
      CREATE INDEX i ON t(s); INSERT INTO t(a, b, x, id) VALUES (1, 2, 'q', 1), (5, 5, 'ß', 2), (NULL, 1, NULL, 3);
      CREATE TABLE u(a, g AS (a), b); INSERT INTO u VALUES (1, 2), (1, 2)
      """,
      """
      UPDATE t SET a = 100 WHERE id = 1; DELETE FROM t WHERE id = 2; INSERT INTO t(a, b, x, id) VALUES (7, 8, 'z', 9);
      UPDATE u SET b = 5 WHERE rowid = 2; INSERT INTO u VALUES (NULL, x'00')
      """, notRecorded: generated),
    KindOfData(
      "AUTOINCREMENT",
      """
      CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, v); INSERT INTO t(v) VALUES (1), (2), (3);
      CREATE TABLE u(v TEXT, id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL) STRICT
      """,
      """
      INSERT INTO t(v) VALUES (4), (5); DELETE FROM t WHERE id IN (2, 5); UPDATE t SET id = 50 WHERE id = 1;
      INSERT INTO u(v) VALUES ('a'), ('b'); INSERT INTO u(id, v) VALUES (9007199254740993, 'c'); INSERT INTO t(id) VALUES (-7)
      """),
    KindOfData(
      "an INTEGER PRIMARY KEY that is no rowid",
      """
      CREATE TABLE t(id INTEGER PRIMARY KEY DESC, v); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (9223372036854775807, 'c');
      CREATE TABLE u(id INT PRIMARY KEY, v); INSERT INTO u VALUES (1, 'a'), (2.5, 'b'), ('x', 'c')
      """,
      "UPDATE t SET v = 'z' WHERE id = 1; DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (-1, 'n'); UPDATE u SET v = 1"
    ),
    KindOfData(
      "rows from before a column was added",
      """
      CREATE TABLE t(id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 1), (2, 2), (3, 3);
      ALTER TABLE t ADD COLUMN i INTEGER DEFAULT '7'; ALTER TABLE t ADD COLUMN x TEXT NOT NULL DEFAULT 1.50;
      ALTER TABLE t ADD COLUMN r REAL DEFAULT 5; ALTER TABLE t ADD COLUMN b BLOB DEFAULT x'00ff'; ALTER TABLE t ADD COLUMN n
      """,
      "UPDATE t SET a = 9 WHERE id = 1; UPDATE t SET r = 6 WHERE id = 2; INSERT INTO t(id) VALUES (4); DELETE FROM t WHERE id = 3",
      notRecorded: "the old value of a column that is younger than its row is recorded as NULL"),
    KindOfData(
      "names in other scripts, alike to people but not to SQLite",
      """
      CREATE TABLE "caf\u{e9}"("\u{e9}" INTEGER PRIMARY KEY, "e\u{301}" TEXT, "K", "\u{212a}"); INSERT INTO "caf\u{e9}" VALUES (1, 'a', 'b', 'c');
      CREATE TABLE "cafe\u{301}"("e\u{301}" TEXT PRIMARY KEY, "\u{e9}") WITHOUT ROWID; INSERT INTO "cafe\u{301}" VALUES ('k', 1), ('l', 2);
      CREATE TABLE "\u{212a}"("a b" PRIMARY KEY, "c;--", "d""e", [f]); INSERT INTO "\u{212a}" VALUES (1, 2, 3, 4)
      """,
      """
      UPDATE "caf\u{e9}" SET "e\u{301}" = 'z', "\u{212a}" = 'y'; INSERT INTO "caf\u{e9}" VALUES (2, 'p', 'q', 'r');
      UPDATE "cafe\u{301}" SET "\u{e9}" = 5 WHERE "e\u{301}" = 'k'; DELETE FROM "cafe\u{301}" WHERE "e\u{301}" = 'l';
      UPDATE "\u{212a}" SET [f] = NULL
      """),
  ]

  private static let special: [KindOfData] = [
    KindOfData(
      "text that is no UTF-8",
      """
      CREATE TABLE t(k TEXT PRIMARY KEY, v TEXT);
      INSERT INTO t VALUES (CAST(x'ff' AS TEXT), CAST(x'c328' AS TEXT)), ('b', CAST(x'eda080' AS TEXT)), ('c', CAST(x'00ff00' AS TEXT))
      """,
      """
      UPDATE t SET v = CAST(x'f0288cbc' AS TEXT) WHERE k = 'b'; INSERT INTO t VALUES (CAST(x'eda0bdedb880' AS TEXT), CAST(x'fe' AS TEXT));
      UPDATE t SET k = CAST(x'80' AS TEXT) WHERE k = 'c'; UPDATE t SET v = CAST(x'efbfbeefbfbf' AS TEXT) WHERE k = CAST(x'ff' AS TEXT)
      """),
    KindOfData(
      "values too long for a page",
      """
      CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b BLOB); CREATE TABLE u(k TEXT PRIMARY KEY, v) WITHOUT ROWID;
      INSERT INTO t VALUES (1, printf('%.*c', 100000, 'ä'), zeroblob(70000)), (2, 'x', zeroblob(4096)), (3, '', x'');
      INSERT INTO u VALUES (printf('%.*c', 20000, 'k'), zeroblob(30000)), ('short', 1)
      """,
      """
      UPDATE t SET b = CAST(substr(b, 1, length(b) - 1) || x'01' AS BLOB) WHERE id = 1; UPDATE t SET a = printf('%.*c', 5000, 'y') WHERE id = 3;
      UPDATE u SET v = CAST(substr(v, 1, 29999) || x'07' AS BLOB) WHERE v IS NOT 1; INSERT INTO u VALUES (printf('%.*c', 20001, 'k'), NULL)
      """),
    KindOfData(
      "an empty value of each kind beside NULL",
      "CREATE TABLE t(k PRIMARY KEY, v); INSERT INTO t VALUES ('', 1), (x'', 2), ('a', ''), ('b', x''), ('c', NULL)",
      "UPDATE t SET v = NULL WHERE k = 'a'; UPDATE t SET v = '' WHERE k = 'b'; UPDATE t SET v = x'' WHERE k = 'c'; UPDATE t SET v = x'' WHERE k = ''"
    ),
    KindOfData(
      "a table that was written again",
      """
      CREATE TABLE t(id INTEGER PRIMARY KEY, a, b);
      WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO t SELECT i, i % 9, 'row ' || i FROM n
      """,
      "UPDATE t SET b = 'other' WHERE a = 3; DELETE FROM t WHERE a = 5; INSERT INTO t(a) VALUES (10)",
      unwatched: "VACUUM"),
  ]
}
