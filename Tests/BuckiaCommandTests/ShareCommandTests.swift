import Foundation
import Testing

@Suite("buckia share")
struct ShareCommandTests {
  private func bench() throws -> Workbench {
    let bench = try Workbench()
    try bench.sql(
      "anna.db",
      """
      CREATE TABLE topic(id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE note(id INTEGER PRIMARY KEY, topic INTEGER REFERENCES topic(id), text TEXT, draft TEXT);
      INSERT INTO topic VALUES (1,'house'),(2,'garden');
      INSERT INTO note VALUES (1,1,'roof','x'),(2,1,'door','y'),(3,2,'tree','z');
      """)
    try bench.sql("ben.db", "PRAGMA user_version = 1")
    return bench
  }

  @Test func `rows chosen by --where are shared without the columns that --exclude names`() throws {
    let bench = try bench()
    let share = [
      "share", "anna.db", "--to", "ben", "--table", "note", "--where", "topic = 1", "--exclude", "note.draft",
    ]
    let refused = try bench.buckia(share + ["-o", "inbound"])
    #expect(refused.status == 1 && refused.diagnostics.contains("--unencrypted"), "\(refused.diagnostics)")
    let preview = try bench.buckia(share + ["-o", "inbound", "--unencrypted", "--dry-run"])
    #expect(preview.status == 0 && preview.output.contains("note: id, topic, text"), "\(preview.output)")
    #expect(!FileManager.default.fileExists(atPath: bench.path("inbound")))
    let sent = try bench.buckia(share + ["-o", "inbound", "--unencrypted", "--json"])
    #expect(try sent.json["snapshot"] as? Bool == true)
    #expect(try sent.json["sequence"] as? Int == 1)
    #expect(try bench.buckia(["apply", "ben.db", "inbound"]).status == 0)
    #expect(try bench.sql("ben.db", "SELECT * FROM note") == ["1|1|roof", "2|1|door"])
    // The rows that they refer to are shared with their keys only, as the preview says.
    let said = (preview.output + preview.diagnostics).split { $0.isWhitespace }.joined(separator: " ")
    #expect(said.contains("go along where shared rows refer to them, without name"), "\(said)")
    #expect(try bench.sql("ben.db", "SELECT * FROM topic") == ["1"])
    let unchanged = try bench.buckia(share + ["-o", "inbound", "--unencrypted"])
    #expect(unchanged.status == 0 && unchanged.output.hasPrefix("No changes"), "\(unchanged.output)")
  }

  @Test func `share and status name a row that refers to no row, with advice`() throws {
    let bench = try bench()
    try bench.sql("anna.db", "INSERT INTO note VALUES (9,77,'lost','')")
    let share = ["share", "anna.db", "--to", "ben", "--table", "note", "-o", "inbound", "--unencrypted"]
    let sent = try bench.buckia(share + ["--json"])
    let leftOut = try #require(try sent.json["leftOut"] as? [[String: Any]])
    #expect(leftOut.map { $0["table"] as? String } == ["note"])
    #expect(leftOut.first?["count"] as? Int == 1)
    #expect(leftOut.first?["reason"] as? String == "noParent")
    let rows = try #require(leftOut.first?["rows"] as? [[String: Any]])
    #expect(rows.first?["key"] as? [Int] == [9] && rows.first?["values"] as? [Int] == [77])
    let again = try bench.buckia(share)
    let words = again.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    #expect(again.status == 0 && words.contains("1 of its rows are not shared"), "\(again.output)")
    let status = try bench.buckia(["status", "anna.db", "--json"]).json
    #expect((status["leftOut"] as? [[String: Any]])?.first?["rows"] as? Int == 1)
    let next = (status["next"] as? [[String: Any]])?.compactMap { $0["command"] as? String } ?? []
    #expect(next.contains("buckia doctor anna.db"), "\(next)")
    #expect(try bench.buckia(["status", "anna.db"]).output.contains("1 row of note"))
  }

  @Test func `a share is for contacts, cards and age recipients, and applied by those who can decrypt it`() throws {
    let bench = try bench()
    let homes = ["anna", "ben"].map { ["--home", bench.path("home of \($0)")] }
    for (name, home) in zip(["Anna", "Ben"], homes) {
      #expect(try bench.buckia(["identity", "new", "--name", name] + home).status == 0)
      let card = try bench.buckia(["identity", "show"] + home).output
      try card.write(toFile: bench.path("\(name).card"), atomically: true, encoding: .utf8)
    }
    let share = ["share", "anna.db", "--table", "topic", "-o", "inbound"] + homes[0]
    let stranger = try bench.buckia(share + ["--to", "ben"])
    #expect(stranger.status == 1 && stranger.diagnostics.contains("no contact"), "\(stranger.diagnostics)")
    #expect(try bench.buckia(share + ["--to", "Ben.card"]).status == 0)
    #expect(try bench.buckia(["contact", "add", "Ben.card"] + homes[0]).status == 0)
    let contact = try bench.buckia(share + ["--to", "ben", "--json"])
    #expect(try contact.json["snapshot"] as? Bool == true)
    #expect((try contact.json["warningCodes"] as? [[String: Any]])?.first?["code"] as? String == "recipientUnconfirmed")
    // The contact's card stands for the contact.
    #expect(try bench.buckia(share + ["--to", "Ben.card"]).output.hasPrefix("No changes"))
    let files = try FileManager.default.contentsOfDirectory(atPath: bench.path("inbound"))
    #expect(files.count == 2 && files.allSatisfy { $0.hasSuffix(".bdiff.age") })
    let file = "inbound/\(files[0])"
    #expect(try bench.buckia(["apply", "ben.db", file] + homes[0]).status == 1)
    #expect(try bench.buckia(["show", file] + homes[1]).output.contains("house"))
    #expect(try bench.buckia(["verify", file, "--identity", "home of ben/identity"]).status == 0)
    #expect(try bench.buckia(["apply", "ben.db", "inbound"] + homes[1]).status == 0)
    #expect(try bench.sql("ben.db", "SELECT name FROM topic") == ["house", "garden"])
  }

  @Test func `each --where belongs to the --table before it`() throws {
    let bench = try bench()
    let share = [
      "share", "anna.db", "--to", "ben", "--table", "topic", "--table", "note", "--where", "id > 2", "--unencrypted",
      "-o",
      "inbound", "--json",
    ]
    let tables = try #require(try bench.buckia(share).json["tables"] as? [[String: Any]])
    #expect(tables.map { $0["inserted"] as? Int } == [2, 1])
  }

  @Test(arguments: [
    (["--where", "id = 1"], "--where needs a --table"),
    (["--where", "id = 1", "--table", "note"], "--where needs a --table"),
    (["--exclude", "note.draft"], "which no --table names"),
    (["--scope", "s.json", "--where", "id = 1"], "go with --table"),
    (["--scope", "s.json", "--exclude", "note.draft"], "go with --table"),
    (["--scope", "s.json", "--table", "note"], "or with --scope"),
  ])
  func `an option that chooses nothing is refused, and nothing is sent`(options: [String], message: String) throws {
    let bench = try bench()
    let share = ["share", "anna.db", "--to", "ben", "--unencrypted", "-o", "inbound"]
    #expect(try bench.buckia(share + ["--table", "note", "--where", "topic = 2"]).status == 0)
    try bench.sql("anna.db", "INSERT INTO note VALUES (4, 2, 'hedge', '')")
    let refused = try bench.buckia(share + options)
    #expect(refused.status == 64 && refused.diagnostics.contains(message), "\(refused.diagnostics)")
    #expect(try bench.names(in: "inbound").count == 1)
  }

  @Test func `a scope is read from a file`() throws {
    let bench = try bench()
    try #"{"format":1,"tables":[{"table":"topic","where":"id = 2"},{"table":"note","childrenOf":["topic"]}]}"#.write(
      toFile: bench.path("scope.json"), atomically: true, encoding: .utf8)
    let share = ["share", "anna.db", "--to", "ben", "--scope", "scope.json", "--unencrypted", "-o", "inbound"]
    #expect(try bench.buckia(share).status == 0)
    #expect(try bench.buckia(["apply", "ben.db", "inbound"]).status == 0)
    #expect(try bench.sql("ben.db", "SELECT id FROM note") == ["3"])
    try "{}".write(toFile: bench.path("scope.json"), atomically: true, encoding: .utf8)
    let wrong = try bench.buckia(share)
    #expect(
      wrong.status == 1 && wrong.diagnostics.contains("\"format\" of the scope is missing"), "\(wrong.diagnostics)")
  }

  @Test func `status --words prints the same words for the shared rows on both sides`() throws {
    let bench = try bench()
    let share = ["share", "anna.db", "--to", "ben", "--table", "note", "--unencrypted", "-o", "inbound"]
    #expect(try bench.buckia(share).status == 0)
    #expect(try bench.buckia(["apply", "ben.db", "inbound"]).status == 0)
    let anna = try bench.buckia(["status", "anna.db", "--words", "--json"]).json["words"] as? [[String: Any]]
    let words = try #require(anna?.first?["words"] as? [String])
    #expect(words.count == 6)
    #expect(anna?.first?["people"] as? String == "ben")
    #expect(anna?.first?["rows"] as? Int == 5)
    let ben = try bench.buckia(["status", "ben.db", "--words"]).output
    #expect(ben.contains(words.joined(separator: " ")), "\(ben)")
    try bench.sql("ben.db", "UPDATE note SET text = 'other' WHERE id = 1")
    #expect(try !bench.buckia(["status", "ben.db", "--words"]).output.contains(words.joined(separator: " ")))
    #expect(try bench.buckia(["status", "ben.db", "--json"]).json["words"] as? [[String: Any]] != nil)
    #expect(try !bench.buckia(["status", "ben.db"]).output.contains("in words"))
  }

  @Test func `with --resync all rows are sent again to a recipient who has lost a file`() throws {
    let bench = try bench()
    let share = ["share", "anna.db", "--to", "ben", "--table", "note", "--unencrypted", "-o", "inbound"]
    func texts(_ database: String) throws -> [String] {
      try bench.sql(database, "SELECT text FROM note ORDER BY id")
    }
    #expect(try bench.buckia(share).status == 0)
    #expect(try bench.buckia(["apply", "ben.db", "inbound"]).status == 0)
    try bench.sql("anna.db", "UPDATE note SET text = 'lost' WHERE id = 1")
    #expect(try bench.buckia(share).status == 0)
    try FileManager.default.removeItem(atPath: bench.path("inbound"))
    try bench.sql("anna.db", "UPDATE note SET text = 'later' WHERE id = 2")
    #expect(try bench.buckia(share).status == 0)
    #expect(try bench.buckia(["apply", "ben.db", "inbound"]).status == 2)
    #expect(try texts("ben.db") == ["roof", "door", "tree"])
    let again = try bench.buckia(share + ["--resync", "--json"]).json
    #expect(again["snapshot"] as? Bool == true)
    #expect(again["sequence"] as? Int == 4)
    #expect(try bench.buckia(["apply", "ben.db", "inbound"]).status == 0)
    #expect(try texts("ben.db") == ["lost", "later", "tree"])
    #expect(try bench.buckia(share).output.hasPrefix("No changes"))
  }

  @Test(arguments: ["keep", "withdraw", nil])
  func `rows that are no longer shared are kept or withdrawn as --on-leave says`(policy: String?) throws {
    let bench = try bench()
    let share = [
      "share", "anna.db", "--to", "ben", "--table", "note", "--where", "topic = 1", "--unencrypted", "-o", "inbound",
    ]
    #expect(try bench.buckia(share).status == 0)
    #expect(try bench.buckia(["apply", "ben.db", "inbound"]).status == 0)
    try bench.sql("anna.db", "UPDATE note SET topic = 2 WHERE id = 2; UPDATE note SET text = 'tiles' WHERE id = 1")
    let sent = try bench.buckia(share + (policy.map { ["--on-leave", $0] } ?? []) + ["--json"])
    let tables = try #require(try sent.json["tables"] as? [[String: Any]], "\(sent.diagnostics)")
    #expect(tables.map { $0["name"] as? String } == ["note"])
    let counts = ["updated", "deleted", "withdrawn", "kept"].map { tables.first?[$0] as? Int }
    let expected: [Int?] = policy == "keep" ? [1, 0, 0, 1] : [1, 0, 1, 0]
    #expect(counts == expected)
    #expect(try bench.buckia(["apply", "ben.db", "inbound"]).status == 0)
    let rows = try bench.sql("ben.db", "SELECT id, text FROM note ORDER BY id")
    #expect(rows == (policy == "keep" ? ["1|tiles", "2|door"] : ["1|tiles"]))
  }

  @Test(arguments: [false, true])
  func `with --propagate, a share deletes the rows withdrawn from its sender`(isAsked: Bool) throws {
    let bench = try Workbench()
    let schema = """
      CREATE TABLE album(id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE photo(id TEXT PRIMARY KEY, album INTEGER REFERENCES album(id), title TEXT)
      """
    let rows = """
      INSERT INTO album VALUES (1,'summer'),(2,'winter');
      INSERT INTO photo VALUES ('a',1,'beach'),('b',1,'sea'),('c',2,'snow')
      """
    // Cara has the rows herself.
    for name in ["anna", "ben", "cara"] { try bench.sql("\(name).db", name == "ben" ? schema : "\(schema); \(rows)") }
    try #"{"format":1,"tables":[{"table":"album","where":"id = 1"},{"table":"photo","childrenOf":["album"]}]}"#.write(
      toFile: bench.path("scope.json"), atomically: true, encoding: .utf8)
    func send(_ sender: String, to recipient: String, _ flags: [String] = []) throws -> [[String: Any]] {
      let share = ["share", "\(sender).db", "--to", recipient, "--scope", "scope.json", "--unencrypted"] + flags
      let sent = try bench.buckia(
        share + ["-o", "for \(recipient)", "--json", "--home", bench.path("home of \(sender)")])
      let applied = try bench.buckia(
        ["apply", "\(recipient).db", "for \(recipient)", "--home", bench.path("home of \(recipient)")])
      #expect(applied.status == 0, "\(applied.output)\(applied.diagnostics)")
      return try #require(try sent.json["tables"] as? [[String: Any]], "\(sent.diagnostics)")
    }
    _ = try send("anna", to: "ben")
    _ = try send("ben", to: "cara")
    try bench.sql("anna.db", "UPDATE photo SET album = 2 WHERE id = 'b'")
    _ = try send("anna", to: "ben")
    #expect(try bench.sql("ben.db", "SELECT id FROM photo") == ["a"])
    let sent = try send("ben", to: "cara", isAsked ? ["--propagate"] : [])
    let expected: [[Int?]] = isAsked ? [[1, 0]] : [[0, 1]]
    #expect(sent.map { [$0["deleted"] as? Int, $0["withdrawn"] as? Int] } == expected)
    #expect(try bench.sql("cara.db", "SELECT id FROM photo ORDER BY id") == (isAsked ? ["a", "c"] : ["a", "b", "c"]))
  }

  @Test(arguments: [
    (["--to", "ben"], "Say what to share"),
    (["--to", "ben", "--table", "note", "--scope", "x"], "Say which rows"),
    (["--to", "ben", "--exclude", "note.x"], "which no --table names"),
    (["--to", "ben", "--where", "1", "--table", "note"], "needs a --table before it"),
    (["--to", "ben", "--table", "note", "--where", "1", "--where", "2"], "given twice"),
    (["--to", "ben", "--table", "note", "--exclude", "nota.x"], "which no --table names"),
    (["--to", "ben", "--table", "note", "--on-leave", "forget"], "--on-leave"),
    (["--table", "note"], "--to"),
  ])
  func `contradictory options are a usage error`(arguments: [String], message: String) throws {
    let refused = try bench().buckia(["share", "anna.db"] + arguments)
    #expect(refused.status == 64 && refused.diagnostics.contains(message), "\(refused.diagnostics)")
  }
}
