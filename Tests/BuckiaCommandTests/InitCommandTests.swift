import Foundation
import Testing

@Suite("buckia init, and its effects on databases")
struct InitCommandTests {
  private let bench: Workbench

  init() throws { bench = try Workbench() }

  /// Copies the database that all replicas start with.
  private func copy(to names: String...) throws {
    for name in names { try FileManager.default.copyItem(atPath: bench.path("base.db"), toPath: bench.path(name)) }
  }

  private func initialize(_ database: String, _ flags: String...) throws -> Workbench.Outcome {
    let outcome = try bench.buckia(["init", database] + flags)
    #expect(outcome.status == 0, "\(outcome.diagnostics)")
    return outcome
  }

  // MARK: Clocks

  @Test func `with --clocks, diffs applied in any order under latest lead to the same rows`() throws {
    try bench.sql(
      "base.db",
      """
      CREATE TABLE note(id INTEGER PRIMARY KEY, title TEXT, body TEXT);
      INSERT INTO note VALUES (1, 'one', 'a'), (2, 'two', 'b')
      """)
    let names = ["anna.db", "ben.db", "cara.db", "dora.db"]
    for name in names {
      try copy(to: name)
      #expect(try initialize(name, "--clocks", "--json").json["clocks"] as? [String] == ["note"])
      #expect(try initialize(name, "--clocks").output.contains("The tables have their clocks already."))
    }
    try bench.sql("anna.db", "UPDATE note SET title = 'anna', body = 'anna'; DELETE FROM note WHERE id = 2")
    try bench.sql("ben.db", "UPDATE note SET title = 'ben'")
    // Ben's diff is the later one.
    for name in ["anna", "ben"] {
      #expect(try bench.buckia(["diff", "base.db", "\(name).db", "-o", "\(name).bdiff"]).status == 0)
    }
    let orders = [["ben.bdiff"], ["anna.bdiff"], ["anna.bdiff", "ben.bdiff"], ["ben.bdiff", "anna.bdiff"]]
    for (name, files) in zip(names, orders) {
      // One by one: files named together are applied in the order of their ids.
      for file in files {
        let applied = try bench.buckia(["apply", name, file, "--on-conflict", "latest"])
        #expect(applied.status == 0, "\(applied.output)\(applied.diagnostics)")
      }
      #expect(try bench.sql(name, "SELECT * FROM note") == ["1|ben|anna"], "\(name)")
    }
  }

  @Test func `with --clock, only the named tables have a clock`() throws {
    try bench.sql("notes.db", "CREATE TABLE note(id INTEGER PRIMARY KEY); CREATE TABLE tag(id INTEGER PRIMARY KEY)")
    #expect(try initialize("notes.db", "--clock", "tag").output.contains("Clocks were made for tag."))
    #expect(try bench.sql("notes.db", "SELECT table_name FROM buckia_clock") == ["tag"])
    let missing = try bench.buckia(["init", "notes.db", "--clock", "nothing"])
    #expect(missing.status == 1 && missing.diagnostics.contains("no table \"nothing\""), "\(missing.diagnostics)")
  }

  // MARK: Keys

  @Test func `with --key-ranges, no two copies assign the same key`() throws {
    try bench.sql(
      "base.db",
      """
      CREATE TABLE counted(id INTEGER PRIMARY KEY AUTOINCREMENT, v); CREATE TABLE plain(id INTEGER PRIMARY KEY, v);
      INSERT INTO counted(v) VALUES ('first')
      """)
    try copy(to: "anna.db", "ben.db")
    let json = try initialize("anna.db", "--key-ranges", "--json").json
    #expect(json["keyRanges"] as? [String] == ["counted"])
    #expect((json["warningCodes"] as? [[String: Any]])?.map { $0["code"] as? String } == ["noKeyRange"])
    #expect(try initialize("ben.db", "--key-ranges").output.contains("Keys from a range of their own: counted."))
    let keys = try ["anna.db", "ben.db"].map { name in
      try bench.sql(name, "INSERT INTO counted(v) VALUES ('new')")
      return try bench.sql(name, "SELECT id FROM counted ORDER BY id")
    }
    #expect(keys.map(\.count) == [2, 2])
    #expect(keys.map { $0[0] } == ["1", "1"])
    #expect(keys[0][1] != keys[1][1])
    let off = try initialize("anna.db", "--no-key-ranges")
    #expect(off.output.contains("New rows get the keys behind the greatest ones."))
    #expect(try bench.sql("anna.db", "SELECT value FROM buckia_settings WHERE name = 'key_ranges'") == ["0"])
  }

  // MARK: Undo

  /// The effects of the diff have about 5 MB. By default, 4 MiB are kept.
  @Test(arguments: ["1", "16M"])
  func `effects larger than --undo-size cannot be undone`(size: String) throws {
    try bench.sql("base.db", "CREATE TABLE t(id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 1)")
    try copy(to: "new.db", "ben.db")
    try bench.sql(
      "new.db",
      """
      WITH RECURSIVE n(i) AS (VALUES (2) UNION ALL SELECT i + 1 FROM n WHERE i < 51)
      INSERT INTO t SELECT i, zeroblob(100000) FROM n
      """)
    _ = try initialize("ben.db", "--undo-size", size)
    let bytes = size == "1" ? "1048576" : "16777216"
    #expect(try bench.sql("ben.db", "SELECT value FROM buckia_settings WHERE name = 'undo_bytes'") == [bytes])
    let sent = try bench.buckia(["diff", "base.db", "new.db", "-o", "new.bdiff", "--json"]).json
    let id = try #require(sent["id"] as? String)
    #expect(try bench.buckia(["apply", "ben.db", "new.bdiff"]).status == 0)
    #expect(try bench.sql("ben.db", "SELECT count(*) FROM t") == ["51"])
    let undo = try bench.buckia(["undo", "ben.db", id])
    if size == "1" {
      #expect(undo.status == 1 && undo.diagnostics.contains("is no longer on record"), "\(undo.diagnostics)")
      #expect(try bench.sql("ben.db", "SELECT count(*) FROM t") == ["51"])
    } else {
      #expect(undo.status == 0, "\(undo.diagnostics)")
      #expect(try bench.sql("ben.db", "SELECT count(*) FROM t") == ["1"])
    }
  }

  @Test(arguments: [["--undo-size", "0"], ["--undo-size", "512k"], ["--undo-days=-1"]])
  func `an impossible amount is a usage error`(flags: [String]) throws {
    let outcome = try bench.buckia(["init", "new.db"] + flags)
    #expect(outcome.status == 64 && outcome.diagnostics.contains("--undo-"), "\(outcome.diagnostics)")
    #expect(try bench.names() == [])
  }

  @Test("--remove deletes the ledger and keeps the app's rows")
  func remove() throws {
    let bench = try ServedDatabases.inConflict()
    let before = try bench.sql("ben.db", "SELECT * FROM notes")
    let unsure = try bench.buckia(["init", "ben.db", "--remove"])
    #expect(unsure.status == 64 && unsure.diagnostics.contains("--yes"), "\(unsure.diagnostics)")
    #expect(try bench.buckia(["init", "ben.db", "--remove", "--yes"]).status == 0)
    #expect(try bench.sql("ben.db", "SELECT name FROM sqlite_schema WHERE name LIKE 'buckia%'").isEmpty)
    #expect(try bench.sql("ben.db", "SELECT * FROM notes") == before)
    #expect(try bench.buckia(["init", "ben.db", "--remove", "--yes"]).output.hasPrefix("There are no ledger tables"))
  }
}
