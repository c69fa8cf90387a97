import Buckia
import Testing

@Suite("buckia_diff, buckia_changes and buckia_invert")
struct DiffFunctionTests {
  private static let edits = """
    UPDATE notes SET title = 'Boat' WHERE id = 1; DELETE FROM notes WHERE id = 2;
    INSERT INTO notes VALUES (3, 'Harbour', x'07'), (9007199254740993, '', -0.5);
    """

  private func bench() throws -> ExtensionBench {
    let bench = try ExtensionBench()
    try bench.make("old.sqlite", ExtensionBench.notes)
    _ = try bench.folder.copy("old.sqlite", to: "new.sqlite")
    try bench.make("new.sqlite", Self.edits)
    return bench
  }

  @Test("The table-valued function counts changes, and the scalar one returns them, to be read and inverted")
  func changes() throws {
    let found = try bench().sql(
      [
        "SELECT * FROM buckia_diff('old.sqlite', 'new.sqlite')",
        "CREATE TABLE sent AS SELECT buckia_diff('old.sqlite', 'new.sqlite') AS file",
        "SELECT position, op, key, old, new FROM sent, buckia_changes(sent.file)",
        "SELECT op, key, old, new FROM sent, buckia_changes(buckia_invert(sent.file))",
        "SELECT typeof(buckia_invert(buckia_invert(file))), buckia_invert(buckia_invert(file)) = file FROM sent",
      ], on: ":memory:")
    #expect(
      found == [
        "notes|2|1|1|pages|0|NULL",
        #"1|delete|{"column 1":2}|{"column 1":2,"column 2":"Radio","column 3":{"blob":"00ff"}}|NULL"#,
        #"2|update|{"column 1":1}|{"column 1":1,"column 2":"Ship"}|{"column 2":"Boat"}"#,
        #"3|insert|{"column 1":3}|NULL|{"column 1":3,"column 2":"Harbour","column 3":{"blob":"07"}}"#,
        #"4|insert|{"column 1":{"int":"9007199254740993"}}|NULL|{"column 1":{"int":"9007199254740993"},"column 2":"","column 3":-0.5}"#,
        #"delete|{"column 1":3}|{"column 1":3,"column 2":"Harbour","column 3":{"blob":"07"}}|NULL"#,
        #"delete|{"column 1":{"int":"9007199254740993"}}|{"column 1":{"int":"9007199254740993"},"column 2":"","column 3":-0.5}|NULL"#,
        #"update|{"column 1":1}|{"column 1":1,"column 2":"Boat"}|{"column 2":"Ship"}"#,
        #"insert|{"column 1":2}|NULL|{"column 1":2,"column 2":"Radio","column 3":{"blob":"00ff"}}"#,
        "blob|1",
      ])
  }

  @Test("A diff file has the names of the columns, and values have storage class and bytes")
  func values() throws {
    let found = try bench().sql(
      [
        "SELECT op, col, is_key, typeof(old), old, typeof(new), new FROM buckia_change_values("
          + #"buckia_diff('old.sqlite', 'new.sqlite', '{"raw":false}'))"#
      ], on: ":memory:")
    #expect(
      found == [
        "delete|id|1|integer|2|null|NULL", "delete|title|0|text|Radio|null|NULL",
        "delete|body|0|blob|x'00ff'|null|NULL",
        "update|id|1|integer|1|null|NULL", "update|title|0|text|Ship|text|Boat",
        "insert|id|1|null|NULL|integer|3", "insert|title|0|null|NULL|text|Harbour",
        "insert|body|0|null|NULL|blob|x'07'",
        "insert|id|1|null|NULL|integer|9007199254740993", "insert|title|0|null|NULL|text|",
        "insert|body|0|null|NULL|real|-0.5",
      ])
  }

  @Test("Invalid UTF-8, empty values and extreme numbers are unchanged")
  func unusualValues() throws {
    let bench = try ExtensionBench()
    try bench.make("old.sqlite", "CREATE TABLE t(id INTEGER PRIMARY KEY, a)")
    _ = try bench.folder.copy("old.sqlite", to: "new.sqlite")
    try bench.make(
      "new.sqlite",
      """
      INSERT INTO t VALUES (1, CAST(x'41ff00c3' AS TEXT)), (2, x''), (3, ''), (4, 9e999), (5, -9223372036854775808),
        (6, 1.0), (7, NULL)
      """)
    let found = try bench.sql(
      [
        "SELECT typeof(new), hex(new), quote(new) FROM buckia_change_values(buckia_diff('old.sqlite', 'new.sqlite')) "
          + "WHERE NOT is_key AND typeof(new) IN ('text', 'blob')",
        "SELECT typeof(new), new = 9e999, new = -9223372036854775808, new = 1 FROM buckia_change_values("
          + "buckia_diff('old.sqlite', 'new.sqlite')) WHERE NOT is_key AND typeof(new) NOT IN ('text', 'blob')",
      ], on: ":memory:")
    #expect(
      found == [
        "text|41FF00C3|'A\u{fffd}'", "blob||X''", "text||''", "real|1|0|0", "integer|0|1|0", "real|0|0|1",
        "null|NULL|NULL|NULL",
      ])
  }

  @Test("Without changes the result is empty, and without an older database all rows are new")
  func nothing() throws {
    let found = try bench().sql(
      [
        "SELECT buckia_diff('old.sqlite', 'old.sqlite'), (SELECT count(*) FROM buckia_diff('old.sqlite', 'old.sqlite'))",
        "SELECT buckia_invert(NULL), (SELECT count(*) FROM buckia_changes(NULL))",
        "SELECT count(*) FROM buckia_changes(x'')",
        "SELECT name, inserted, new FROM buckia_diff(NULL, 'new.sqlite')",
        #"SELECT op, count(*) FROM buckia_changes(buckia_diff(NULL, 'new.sqlite', '{"raw":false}')) GROUP BY op"#,
      ], on: ":memory:")
    #expect(found == ["NULL|0", "NULL|0", "0", "notes|3|1", "insert|3"])
  }

  @Test("A part that a changeset cannot carry is an error, and the table-valued function lists all skipped parts")
  func incomplete() throws {
    let bench = try bench()
    try bench.make(
      "new.sqlite", "CREATE TABLE tags(id INTEGER PRIMARY KEY); INSERT INTO tags VALUES (1); CREATE VIEW v AS SELECT 1")
    let found = try bench.sql(
      [
        "SELECT buckia_diff('old.sqlite', 'new.sqlite')",
        "SELECT name, inserted, new, reason IS NULL FROM buckia_diff('old.sqlite', 'new.sqlite')",
        #"SELECT count(*) FROM buckia_changes(buckia_diff('old.sqlite', 'new.sqlite', '{"raw":false}'))"#,
      ], on: ":memory:")
    #expect(found.first?.hasPrefix("error 1: tags: ") == true)
    #expect(found.first?.hasSuffix(#"; ask for a diff file with the option {"raw":false}"#) == true)
    #expect(found.dropFirst() == ["notes|2|0|1", "tags|1|1|1", "v|NULL|NULL|0", "5"])
  }

  /// The refused changes had been recorded as sent, and so were missing from the diff file requested instead.
  @Test("A refused changeset is not recorded as sent: the diff file made instead has all changes")
  func refusedIsNotSent() throws {
    let bench = try ExtensionBench()
    let database = DatabaseManager(try bench.make("now.sqlite", ExtensionBench.notes))
    try database.keepClocks()
    try database.snapshot(to: bench.folder.file("shared.sqlite"))
    try bench.make(
      "now.sqlite",
      "UPDATE notes SET title = 'Boat' WHERE id = 1; CREATE TABLE tags(id INTEGER PRIMARY KEY); INSERT INTO tags VALUES (1)"
    )
    let found = try bench.sql(
      [
        "SELECT buckia_diff('shared.sqlite', 'now.sqlite')",
        "SELECT tbl, count(*) FROM buckia_changes(buckia_diff('shared.sqlite', 'now.sqlite', '{\"raw\":false}')) "
          + "GROUP BY tbl",
      ], on: ":memory:")
    #expect(found.first?.hasPrefix("error 1: tags: ") == true, "\(found)")
    #expect(found.dropFirst() == ["notes|1", "tags|1"])
  }

  @Test("Options choose tables and the method")
  func options() throws {
    let bench = try bench()
    try bench.make("new.sqlite", "CREATE TABLE tags(id INTEGER PRIMARY KEY); INSERT INTO tags VALUES (1)")
    #expect(
      try bench.sql(
        [
          #"SELECT name, method FROM buckia_diff('old.sqlite', 'new.sqlite', '{"method":"rows","tables":["notes"]}')"#,
          #"SELECT count(*) FROM buckia_changes(buckia_diff('old.sqlite', 'new.sqlite', '{"tables":["tags"],"raw":false}'))"#,
        ], on: ":memory:") == ["notes|rows", "1"])
  }

  @Test("Every mistake is an error of the statement with advice, and the program continues")
  func mistakes() throws {
    let found = try bench().sql(
      [
        "SELECT buckia_diff('old.sqlite', 'nowhere.sqlite')",
        "SELECT * FROM buckia_diff('old.sqlite', 'nowhere.sqlite')",
        "SELECT buckia_diff('old.sqlite', NULL)",
        "SELECT buckia_diff(7, 'new.sqlite')",
        #"SELECT buckia_diff('old.sqlite', 'new.sqlite', '{"tabels":[]}')"#,
        #"SELECT buckia_diff('old.sqlite', 'new.sqlite', '{"tables":"notes"}')"#,
        #"SELECT buckia_diff('old.sqlite', 'new.sqlite', '{"method":"guess"}')"#,
        #"SELECT buckia_diff('old.sqlite', 'new.sqlite', '{"home":"a\u0000b"}')"#,
        "SELECT buckia_diff('old.sqlite', 'new.sqlite', '[]')",
        "SELECT buckia_diff('old.sqlite', 'new.sqlite', '{')",
        "SELECT * FROM buckia_diff('old.sqlite')",
        "SELECT * FROM buckia_changes",
        "SELECT * FROM buckia_changes('old.sqlite')",
        "SELECT * FROM buckia_changes(x'540100')",
        "SELECT buckia_invert(x'00')",
        "SELECT 'still there'",
      ], on: ":memory:")
    #expect(
      found == [
        "error 1: nowhere.sqlite: there is no such database; check the path",
        "error 1: nowhere.sqlite: there is no such database; check the path",
        "error 1: buckia_diff needs the path of the newer database",
        "error 1: buckia_diff takes a path as text",
        "error 1: buckia_diff has no option \"tabels\"; its options are tables, method, raw, again, force, home",
        "error 1: the option \"tables\" of buckia_diff must be a list of texts",
        "error 1: the option \"method\" of buckia_diff must be one of pages, rows, session",
        "error 1: the option \"home\" of buckia_diff must be text",
        "error 1: the options of buckia_diff must be a JSON object, such as {\"tables\": …}",
        "error 1: the options of buckia_diff are not JSON: the text ends inside a value (at byte 1)",
        "error 1: buckia_diff needs the argument buckia_new_path",
        "error 1: buckia_changes needs the argument buckia_file",
        "error 1: buckia_changes takes the bytes of a file as a blob, such as readfile('…') in the shell",
        "error 1: blob: a table header names no key column (at byte 0); nothing of it was used; its sender's program has to make it "
          + "again",
        "error 1: blob: it is not a zstd-compressed file; the file is damaged or was not made by Buckia; fetch it again",
        "still there",
      ])
  }

  @Test("Functions with effects or file access are refused in views and triggers; others are allowed in a schema")
  func schemas() throws {
    let found = try bench().sql(
      [
        "CREATE TABLE t(a, id TEXT DEFAULT (buckia_ksuid()))",
        "INSERT INTO t(a) VALUES (1)",
        "SELECT length(id), buckia_ksuid_time(id) > 1700000000 FROM t",
        "CREATE VIEW v AS SELECT buckia_diff('old.sqlite', 'new.sqlite')",
        "SELECT * FROM v",
        "CREATE VIEW w AS SELECT * FROM buckia_diff('old.sqlite', 'new.sqlite')",
        "SELECT * FROM w",
        "CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT buckia_apply('inbound'); END",
        "INSERT INTO t(a) VALUES (2)",
        "CREATE VIEW x AS SELECT count(*) FROM buckia_changes(x'')",
        "SELECT * FROM x",
        "PRAGMA trusted_schema = OFF",
        "SELECT * FROM x",
      ], on: ":memory:")
    #expect(
      found == [
        "27|1", "error 1: unsafe use of buckia_diff()", "error 1: unsafe use of virtual table \"buckia_diff\"",
        "error 1: unsafe use of buckia_apply()", "0", "0",
      ])
  }
}
