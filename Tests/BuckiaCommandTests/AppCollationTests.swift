import Foundation
import SQLiteConnections
import TestSupport
import Testing

@Suite("Functions and collating sequences of an app") struct AppCollationTests {
  private static let schema = """
    CREATE TABLE note(id INTEGER PRIMARY KEY, title TEXT COLLATE unicase); CREATE INDEX titles ON note(title);
    CREATE TABLE tag(name TEXT COLLATE unicase PRIMARY KEY, n INTEGER) WITHOUT ROWID;
    """

  /// Two databases with an app-defined collating sequence, which compares byte by byte as SQLite does, and their diff.
  private static func bench() throws -> Workbench {
    let bench = try Workbench()
    for (name, edit) in [
      ("old.db", ""), ("new.db", "UPDATE note SET title = 'b' WHERE id = 1; INSERT INTO tag VALUES ('y', 2)"),
    ] {
      let connection = try SQLiteConnection(opening: bench.path(name), as: .create)
      try connection.registerByteCollation(named: "unicase")
      try connection.execute(schema)
      try connection.execute(
        "INSERT INTO note VALUES (1, 'a'), (2, 'B'), (3, 'c'); INSERT INTO tag VALUES ('x', 1); \(edit)")
    }
    try #require(try bench.buckia(["diff", "old.db", "new.db", "-o", "edits.bdiff"]).status == 0)
    return bench
  }

  @Test("Without it the file is refused, with the columns and advice")
  func refused() throws {
    let bench = try Self.bench()
    let refused = try bench.buckia(["apply", "old.db", "edits.bdiff", "--full"])
    #expect(refused.status == 1)
    let text = (refused.output + refused.diagnostics).split(whereSeparator: \.isWhitespace).joined(separator: " ")
    #expect(
      text.contains(
        "no such collation sequence: unicase in the index of note.title, tag.name; it is the app's own: name a built-in one "
          + "that sorts alike (--collation NAME=nocase), or load the extension that has it (--load FILE)"), "\(text)")
  }

  @Test("A built-in sequence stands in for it", arguments: ["unicase=binary", "UniCase=BINARY"])
  func standIn(choice: String) throws {
    let bench = try Self.bench()
    let applied = try bench.buckia(["apply", "old.db", "edits.bdiff", "--collation", choice])
    #expect(applied.status == 0, "\(applied.output)\(applied.diagnostics)")
    let connection = try SQLiteConnection(opening: bench.path("old.db"), as: .readOnly)
    try connection.registerByteCollation(named: "unicase")
    #expect(try connection.text("PRAGMA integrity_check") == "ok")
    #expect(try TestDatabases.texts("SELECT title FROM note ORDER BY id", on: connection) == ["b", "B", "c"])
    #expect(try TestDatabases.texts("SELECT * FROM tag", on: connection) == ["x|1", "y|2"])
  }

  @Test("doctor detects if it sorts alike", arguments: [("binary", true), ("nocase", false)])
  func doctor(name: String, sortsAlike: Bool) throws {
    let bench = try Self.bench()
    let found = try bench.buckia(["doctor", "old.db", "--collation", "unicase=\(name)", "--json"])
    #expect(found.output.contains("damaged") != sortsAlike, "\(found.output)")
  }

  @Test(
    "A collating sequence that is not built in is a usage error",
    arguments: ["unicase", "unicase=icu", "=nocase", "NoCase=binary"])
  func wrong(choice: String) throws {
    #expect(try Workbench().buckia(["doctor", "old.db", "--collation", choice]).status == 64)
  }

  @Test("Extensions are loaded, and one that fails to load is named", .enabled(if: ProgramRun.path(of: "clang") != nil))
  func extensions() throws {
    let bench = try Workbench()
    try Data(
      """
      #include <sqlite3ext.h>
      #include <string.h>
      SQLITE_EXTENSION_INIT1
      static int compare(void *c, int n, const void *a, int m, const void *b) {
        int order = memcmp(a, b, n < m ? n : m);
        return order ? -order : m - n;
      }
      int sqlite3_backwards_init(sqlite3 *db, char **message, const sqlite3_api_routines *api) {
        SQLITE_EXTENSION_INIT2(api)
        return sqlite3_create_collation(db, "backwards", SQLITE_UTF8, 0, compare);
      }
      """.utf8
    ).write(to: bench.folder.appendingPathComponent("backwards.c"))
    try #require(try bench.shell("clang -shared -fPIC -o backwards.so backwards.c").status == 0)
    for (name, edit) in [("old.db", ""), ("new.db", "INSERT INTO tag VALUES (NULL, 1)")] {
      let connection = try SQLiteConnection(opening: bench.path(name), as: .create)
      try connection.registerByteCollation(named: "backwards")
      try connection.execute(
        "CREATE TABLE tag(name TEXT COLLATE backwards, n); CREATE INDEX names ON tag(name); \(edit)")
    }
    let diff = try bench.buckia(["diff", "old.db", "new.db", "-o", "edits.bdiff", "--load", "./backwards.so"])
    #expect(diff.status == 0, "\(diff.diagnostics)")
    #expect(try bench.buckia(["apply", "old.db", "edits.bdiff", "--load", "./backwards.so"]).status == 0)
    let missing = try bench.buckia(["doctor", "old.db", "--load", "./none.so"])
    #expect(missing.status == 1)
    #expect(missing.diagnostics.contains("./none.so: the extension cannot be loaded"), "\(missing.diagnostics)")
  }

  @Test(
    "The error of a missing function names the columns, tables and indexes that call it, with advice",
    .enabled(if: ProgramRun.path(of: "clang") != nil),
    arguments: [
      ("\"a b\" TEXT CHECK (trim(\"a b\", ',(') <> ''), low TEXT CHECK (slug(low) <> '')", "note.low"),
      ("low TEXT, CONSTRAINT c CHECK (Slug (low) <> '')", "table note"),
      ("low TEXT); CREATE INDEX lows ON note(slug(low)", "index lows"),
    ])
  func functions(columns: String, place: String) throws {
    let bench = try Workbench()
    try Data(
      """
      #include <sqlite3ext.h>
      SQLITE_EXTENSION_INIT1
      static void slug(sqlite3_context *c, int n, sqlite3_value **v) { sqlite3_result_value(c, v[0]); }
      int sqlite3_slug_init(sqlite3 *db, char **message, const sqlite3_api_routines *api) {
        SQLITE_EXTENSION_INIT2(api)
        return sqlite3_create_function(db, "slug", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, 0, slug, 0, 0);
      }
      """.utf8
    ).write(to: bench.folder.appendingPathComponent("slug.c"))
    try #require(try bench.shell("clang -shared -fPIC -o slug.so slug.c").status == 0)
    for (name, edit) in [("old", ""), ("new", "INSERT INTO note (id, low) VALUES (1, 'x')")] {
      let sql = ".load ./slug.so\nCREATE TABLE note(id INTEGER PRIMARY KEY, \(columns));\n\(edit);\n"
      try sql.write(toFile: bench.path("\(name).sql"), atomically: true, encoding: .utf8)
      try #require(try bench.shell("sqlite3 \(name).db < \(name).sql").status == 0)
    }
    try #require(try bench.buckia(["diff", "old.db", "new.db", "-o", "edits.bdiff"]).status == 0)
    let refused = try bench.buckia(["apply", "old.db", "edits.bdiff", "--full"])
    #expect(refused.status == 1)
    let text = refused.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    #expect(
      text.lowercased().contains(
        "slug() in \(place); if it is the app's own, load the extension that has it (--load file)"), "\(text)")
    // A name without a slash is also a file of the current folder.
    let merged = try bench.buckia(["merge", "old.db", "old.db", "new.db", "-o", "merged.db"])
    #expect(merged.diagnostics.hasPrefix("buckia: old.db: "), "\(merged.diagnostics)")
    #expect(try bench.buckia(["apply", "old.db", "edits.bdiff", "--load", "slug.so"]).status == 0)
  }
}
