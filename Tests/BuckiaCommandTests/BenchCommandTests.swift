import Foundation
import SQLiteConnections
import Testing

@Suite("buckia bench")
struct BenchCommandTests {
  /// A realistic database: references, a trigger, a view, a table without a key, and an empty table.
  private static func notes() throws -> Workbench {
    let bench = try Workbench()
    try bench.sql(
      "notes.db",
      """
      CREATE TABLE people(name TEXT PRIMARY KEY COLLATE NOCASE, age INTEGER CHECK(age > 0)) WITHOUT ROWID;
      CREATE TABLE notes(id INTEGER PRIMARY KEY, author TEXT REFERENCES people(name), text TEXT UNIQUE);
      CREATE TABLE sizes(id INTEGER PRIMARY KEY, text, size AS (length(text))); CREATE TABLE log(line); CREATE TABLE empty(id INTEGER PRIMARY KEY); CREATE VIEW names AS SELECT name FROM people;
      WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40) INSERT INTO people SELECT 'p' || i, i FROM n;
      WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
        INSERT INTO notes SELECT i, 'p' || (i % 40 + 1), 'text ' || i FROM n;
      INSERT INTO sizes(text) VALUES('x')
      """)
    return bench
  }

  @Test("The built-in tables are measured with each kind of work, the alternatives, and the machine")
  func ownTables() throws {
    let bench = try Workbench()
    let outcome = try bench.buckia(["bench", "--rows", "40", "--json"])
    #expect(outcome.status == 0)
    #expect(outcome.diagnostics.isEmpty)
    let document = try outcome.json
    #expect(document["version"] as? Int == 1)
    #expect(document["rows"] as? Int == 40)
    #expect(document["database"] is NSNull)
    #expect((document["sqlite"] as? String)?.hasPrefix("3.") == true)
    #expect(document["zstd"] as? String != nil)
    #expect(["debug", "release"].contains(document["build"] as? String))
    let machine = try #require(document["machine"] as? [String: Any])
    #expect(try #require(machine["cores"] as? Int) > 0)
    #expect(try #require(machine["memory"] as? Int) > 0)
    let comparisons = try #require(document["comparisons"] as? [[String: Any]])
    let ids = comparisons.compactMap { $0["id"] as? String }
    for work in ["inserts", "updates", "deletes", "conflicts", "difference"] {
      for shape in ["text-key", "integer-key", "without-rowid"] {
        #expect(ids.contains { $0.hasPrefix("\(work)-\(shape)") }, "\(work), \(shape)")
      }
    }
    #expect(ids.contains("small-files"))
    for comparison in comparisons {
      let contenders = try #require(comparison["contenders"] as? [[String: Any]])
      #expect(contenders.count >= 2)
      #expect(contenders.allSatisfy { ($0["values"] as? [Double])?.count == 3 && $0["median"] as? Double != nil })
      let figures = try #require(comparison["figures"] as? [[String: Any]])
      #expect(!figures.isEmpty)
      #expect(figures.allSatisfy { $0["number"] as? Double != nil && $0["kind"] as? String != nil })
    }
  }

  @Test("A database of the user is measured on copies and keeps each byte")
  func ownDatabase() throws {
    let bench = try Self.notes()
    let before = try Data(contentsOf: bench.folder.appendingPathComponent("notes.db"))
    let outcome = try bench.buckia(["bench", "notes.db", "--rows", "60", "--json"])
    #expect(outcome.status == 0, "\(outcome.diagnostics)")
    let database = try #require(try outcome.json["database"] as? [String: Any])
    #expect(database["path"] as? String == "notes.db")
    let tables = try #require(database["tables"] as? [[String: Any]])
    #expect(tables.map { $0["name"] as? String } == ["notes", "people"])
    #expect(tables.map { $0["rows"] as? Int } == [400, 40])
    #expect(try #require(tables[0]["updated"] as? Int) > 0)
    #expect(try #require(tables[0]["inserted"] as? Int) + #require(tables[0]["deleted"] as? Int) > 0)
    // Notes refer to people, so no person may be deleted.
    #expect(tables[1]["inserted"] as? Int == 0)
    #expect(tables[1]["deleted"] as? Int == 0)
    let skipped = try #require(database["skipped"] as? [[String: Any]])
    #expect(skipped.compactMap { $0["name"] as? String }.sorted() == ["empty", "log", "sizes"])
    #expect(skipped.allSatisfy { ($0["reason"] as? String)?.isEmpty == false })
    let comparisons = try #require(try outcome.json["comparisons"] as? [[String: Any]])
    #expect(comparisons.compactMap { $0["id"] as? String } == ["own-difference", "own-application"])

    #expect(try Data(contentsOf: bench.folder.appendingPathComponent("notes.db")) == before)
    #expect(try bench.names() == ["notes.db"])
  }

  @Test("A database in use, with rows in its log, is copied in its current state")
  func inUse() throws {
    let bench = try Self.notes()
    try bench.sql("notes.db", "PRAGMA journal_mode = WAL")
    let user = try SQLiteConnection(opening: bench.path("notes.db"), as: .readWrite)
    let transaction = try SQLiteTransaction(.deferred, on: user)
    #expect(try user.integer("SELECT count(*) FROM notes") == 400)
    try bench.sql("notes.db", "DELETE FROM notes WHERE id > 300")
    let outcome = try bench.buckia(["bench", "notes.db", "--json"])
    #expect(outcome.status == 0, "\(outcome.diagnostics)")
    let tables = try #require((try outcome.json["database"] as? [String: Any])?["tables"] as? [[String: Any]])
    #expect(tables.first?["rows"] as? Int == 300)
    transaction.rollback()
  }

  @Test("The text names the machine and the sizes, and says that a debug build's figures mean nothing")
  func text() throws {
    let bench = try Self.notes()
    let outcome = try bench.buckia(["bench", "notes.db"])
    #expect(outcome.status == 0)
    let text = outcome.output
    #expect(text.contains(/buckia \d+\.\d+\.\d+ \(SQLite 3\.\d+\.\d+, zstd 1\.\d+\.\d+\), (debug|release) build/))
    #expect(text.contains("debug build") == text.contains("its figures mean nothing"))
    #expect(text.contains(/\d+ cores?, \d+ GiB/))
    #expect(text.contains("sqlite3session_diff"))
    #expect(text.contains("sqlite3changeset_apply_v2"))
    #expect(text.contains(/Buckia is \d+\.\d\dx as fast/))
    #expect(text.contains(/log +it has no primary key/))
    #expect(outcome.diagnostics.isEmpty)
  }

  @Test("--quiet prints nothing")
  func quiet() throws {
    let outcome = try Self.notes().buckia(["bench", "notes.db", "--quiet"])
    #expect(outcome.status == 0)
    #expect(outcome.output.isEmpty)
    #expect(outcome.diagnostics.isEmpty)
  }

  @Test("Each run changes the same rows")
  func isReproducible() throws {
    let bench = try Self.notes()
    let counts = try (0..<2).map { _ in
      let database = try bench.buckia(["bench", "notes.db", "--rows", "33", "--json"]).json["database"]
      return try #require(database as? [String: Any]) as NSDictionary
    }
    #expect(counts[0] == counts[1])
  }

  @Test(
    "A database that cannot be measured is named",
    arguments: [("missing.db", "no-database"), ("bare.db", "nothing-to-measure"), ("text.db", "sqlite-26")])
  func failures(name: String, code: String) throws {
    let bench = try Workbench()
    try bench.sql("bare.db", "CREATE TABLE log(line); INSERT INTO log VALUES('x')")
    try Data(String(repeating: "This is no database. ", count: 100).utf8)
      .write(to: bench.folder.appendingPathComponent("text.db"))
    let outcome = try bench.buckia(["bench", name, "--json"])
    #expect(outcome.status == 1)
    let error = try #require(try outcome.json["error"] as? [String: Any])
    #expect(error["code"] as? String == code)
    #expect((error["message"] as? String)?.contains(name) == true)
    #expect(outcome.diagnostics.hasPrefix("buckia: "))
  }

  @Test("Nothing stays in the folder for temporary files, even after an interruption", arguments: [false, true])
  func leavesNothing(isInterrupted: Bool) throws {
    let bench = try Self.notes()
    try FileManager.default.createDirectory(atPath: bench.path("tmp"), withIntermediateDirectories: true)
    if isInterrupted {
      let command = try RunningCommand(
        ["bench", "--rows", "200000"], on: bench, environment: ["TMPDIR": bench.path("tmp")])
      // Once the folder has subfolders, the work has begun.
      func hasBegun() throws -> Bool {
        try bench.names(in: "tmp").first.map { try !bench.names(in: "tmp/\($0)").isEmpty } ?? false
      }
      while command.isRunning, try !hasBegun() { usleep(200) }
      #expect(command.interrupt() == SIGINT)
    } else {
      #expect(try bench.buckia(["bench", "notes.db"], environment: ["TMPDIR": bench.path("tmp")]).status == 0)
    }
    #expect(try bench.names(in: "tmp") == [])
  }
}
