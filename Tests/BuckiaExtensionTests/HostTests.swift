import Foundation
import Testing

/// The extension in programs that people use with SQLite, and with other versions of SQLite.
@Suite("Hosts")
struct HostTests {
  private static let edits =
    "UPDATE notes SET title = 'Boat' WHERE id = 1; INSERT INTO notes VALUES (3, 'Harbour', NULL)"
  private static let apply = "SELECT json_extract(buckia_apply('inbound'), '$.diffs[0].state')"
  private static let titles = "SELECT group_concat(title) FROM notes"

  private func bench() throws -> ExtensionBench {
    let bench = try ExtensionBench()
    try bench.exchange(theirs: Self.edits)
    return bench
  }

  @Test(
    "A host with another SQLite, without the session extension, can do the same as with the system's",
    .enabled(if: HostProgram.otherSQLite.isThere, "\(HostProgram.otherSQLite.requirement)"))
  func otherVersion() throws {
    let sqlite = try #require(HostProgram.otherSQLite.path)
    let bench = try bench()
    func run(_ lines: [String], _ database: String = "mine.sqlite") throws -> [String] {
      try bench.sql(lines, on: database, with: sqlite)
    }
    let versions = try [run(["SELECT sqlite_version()"]), bench.sql(["SELECT sqlite_version()"])]
    #expect(versions[0] != versions[1])
    #expect(
      try run([
        "SELECT name, inserted, updated FROM buckia_diff('base.sqlite', 'mine.sqlite')",
        "UPDATE notes SET title = 'Yacht' WHERE id = 1",
        "SELECT name, inserted, updated, method FROM buckia_diff('base.sqlite', 'mine.sqlite')",
        Self.apply, Self.titles,
        "SELECT kind, outcome FROM buckia_conflicts",
        "SELECT state, conflicts FROM buckia_log",
        "SELECT count(*) FROM buckia_changes(buckia_invert(buckia_diff('base.sqlite', 'mine.sqlite')))",
        #"SELECT * FROM buckia_diff('base.sqlite', 'mine.sqlite', '{"method":"session"}')"#,
        "SELECT length(buckia_ksuid())",
        "PRAGMA integrity_check",
      ]) == [
        "notes|0|1|pages", "applied", "Yacht,Radio,Harbour", "data|kept-local", "applied|1", "2",
        "error 1: this copy of SQLite has no session extension (sqlite3session_create is missing); compile it with "
          + "SQLITE_ENABLE_SESSION and SQLITE_ENABLE_PREUPDATE_HOOK, and hand its functions over",
        "27", "ok",
      ])
  }

  @Test(
    "Databases are opened with the host's SQLite, and with no other",
    .enabled(if: HostProgram.otherSQLite.isThere, "\(HostProgram.otherSQLite.requirement)"))
  func noOtherCopy() throws {
    // A database that only newer versions can read: STRICT tables with a generated column would be enough for 3.31;
    // this one needs 3.44's ORDER BY in an aggregate.
    let bench = try ExtensionBench()
    let sqlite = try #require(HostProgram.otherSQLite.path)
    let schema = "CREATE TABLE t(a INTEGER PRIMARY KEY, b)"
    let view = "CREATE VIEW v AS SELECT group_concat(b, ',' ORDER BY a) FROM t"
    for name in ["old.sqlite", "new.sqlite"] { _ = try bench.sql([schema, view], on: name, with: sqlite) }
    _ = try bench.sql(["INSERT INTO t VALUES (1, 2)"], on: "new.sqlite", with: sqlite)
    let count = "SELECT name, inserted FROM buckia_diff('old.sqlite', 'new.sqlite')"
    #expect(try bench.sql([count], on: ":memory:", with: sqlite) == ["t|1"])
    #expect(try bench.sql([count], on: ":memory:").first?.hasPrefix("error 1: ") == true)
  }

  @Test(
    "Two copies of SQLite in one process cannot both load it",
    .enabled(if: HostProgram.otherSQLite.isThere, "\(HostProgram.otherSQLite.requirement)"))
  func twoCopies() throws {
    let program = """
      import ctypes, sys
      for path in sys.argv[1:]:
          sqlite = ctypes.CDLL(path)
          db, message = ctypes.c_void_p(), ctypes.c_char_p()
          sqlite.sqlite3_open(b":memory:", ctypes.byref(db))
          sqlite.sqlite3_enable_load_extension(db, 1)
          code = sqlite.sqlite3_load_extension(db, b"./buckia", b"sqlite3_buckia_init", ctypes.byref(message))
          print(code, (message.value or b"loaded").decode())
      """
    let other = try #require(HostProgram.otherSQLite.path)
    let found = try bench().run(
      #require(HostProgram.apsw.path), ["-c", program, other, ExtensionBench.systemSQLite, other])
    #expect(found.count == 3 && found.first == "0 loaded" && found.last == "0 loaded")
    #expect(
      found.dropFirst().first?.hasPrefix(
        "1 error during initialization: another copy of SQLite in this process has loaded")
        == true)
  }

  @Test("The sqlite3 shell", .enabled(if: HostProgram.shell.isThere, "\(HostProgram.shell.requirement)"))
  func shell() throws {
    let bench = try bench()
    let lines = [".load ./buckia", Self.apply + ";", Self.titles + ";", "SELECT state FROM buckia_log;"]
    let found = try bench.run(
      #require(HostProgram.shell.path), ["-batch", "mine.sqlite"], input: lines.joined(separator: "\n") + "\n")
    #expect(found == ["applied", "Boat,Radio,Harbour", "applied"])
  }

  @Test("Python's sqlite3", .enabled(if: HostProgram.python.isThere, "\(HostProgram.python.requirement)"))
  func python() throws {
    let program = """
      import json, sqlite3
      db = sqlite3.connect("mine.sqlite")
      db.enable_load_extension(True)
      db.load_extension("./buckia")
      db.enable_load_extension(False)
      (report,) = db.execute("SELECT buckia_apply(?)", ("inbound",)).fetchone()
      print(json.loads(report)["diffs"][0]["state"])
      print([title for (title,) in db.execute("SELECT title FROM notes ORDER BY id")])
      (changes,) = db.execute("SELECT buckia_diff('base.sqlite', 'mine.sqlite')").fetchone()
      print(type(changes).__name__, db.execute("SELECT count(*) FROM buckia_changes(?)", (changes,)).fetchone())
      try:
          db.execute("SELECT buckia_apply('nowhere')")
      except sqlite3.OperationalError as error:
          print(error)
      for _ in range(3):
          other = sqlite3.connect("base.sqlite")
          other.enable_load_extension(True)
          other.load_extension("./buckia")
          other.execute("SELECT count(*) FROM buckia_changes(?)", (changes,)).fetchone()
          other.close()
      db.close()
      """
    #expect(
      try bench().run(#require(HostProgram.python.path), ["-c", program]) == [
        "applied", "['Boat', 'Radio', 'Harbour']", "bytes (2,)", "nowhere: there is no such file or folder",
      ])
  }

  @Test("Python's apsw, with another SQLite", .enabled(if: HostProgram.apsw.isThere, "\(HostProgram.apsw.requirement)"))
  func apsw() throws {
    let program = """
      import apsw, json
      db = apsw.Connection("mine.sqlite")
      db.enable_load_extension(True)
      db.load_extension("./buckia")
      with db:
          print(json.loads(db.execute("SELECT buckia_apply('inbound')").get)["diffs"][0]["state"])
      print(db.execute("SELECT group_concat(title) FROM notes").get)
      db.close()
      """
    #expect(
      try bench().run(#require(HostProgram.apsw.path), ["-c", program]) == ["applied", "Boat,Radio,Harbour"])
  }

  @Test("Node's node:sqlite", .enabled(if: HostProgram.node.isThere, "\(HostProgram.node.requirement)"))
  func node() throws {
    let program = """
      const { DatabaseSync } = require("node:sqlite");
      const db = new DatabaseSync("mine.sqlite", { allowExtension: true });
      db.loadExtension("./buckia");
      const { report } = db.prepare("SELECT buckia_apply('inbound') AS report").get();
      console.log(JSON.parse(report).diffs[0].state);
      console.log(db.prepare("SELECT group_concat(title) AS titles FROM notes").get().titles);
      db.close();
      """
    #expect(
      try bench().run(#require(HostProgram.node.path), ["--no-warnings", "-e", program]) == [
        "applied", "Boat,Radio,Harbour",
      ])
  }

  @Test("PHP's SQLite3", .enabled(if: HostProgram.php.isThere, "\(HostProgram.php.requirement)"))
  func php() throws {
    let bench = try bench()
    // PHP follows no links out of its folder.
    let library = URL(fileURLWithPath: bench.library)
    try bench.folder.makeFolder("extensions")
    _ = try bench.folder.copy(library.resolvingSymlinksInPath().path, to: "extensions/\(library.lastPathComponent)")
    let program = """
      $db = new SQLite3("mine.sqlite");
      $db->loadExtension("\(library.lastPathComponent)");
      echo json_decode($db->querySingle("SELECT buckia_apply('inbound')"))->diffs[0]->state, "\\n";
      echo $db->querySingle("SELECT group_concat(title) FROM notes"), "\\n";
      $db->close();
      """
    #expect(
      try bench.run(
        #require(HostProgram.php.path),
        ["-d", "sqlite3.extension_dir=\(bench.folder.file("extensions"))", "-r", program]) == [
          "applied", "Boat,Radio,Harbour",
        ])
  }
}
