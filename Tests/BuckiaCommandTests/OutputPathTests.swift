import Foundation
import Testing

@Suite("Destinations of -o, and diff files under other names")
struct OutputPathTests {
  @Test("A missing folder is created, and the file is named by its id", arguments: [false, true])
  func newFolder(raw: Bool) throws {
    let bench = try DiffCommandTests.pair()
    let options = raw ? ["--raw", "--tables", "tags", "--method", "rows"] : []
    if raw { try bench.sql("old.db", "CREATE TABLE tags(name TEXT PRIMARY KEY)") }
    let document = try bench.buckia(["diff", "old.db", "new.db", "-o", "out/box/", "--json"] + options).json
    let id = try #require(document["id"] as? String)
    #expect(try bench.names(in: "out/box") == [raw ? "\(id).changeset" : "\(id).bdiff"])
    #expect(document["path"] as? String == "out/box/\(raw ? "\(id).changeset" : "\(id).bdiff")")
    #expect(try bench.buckia(["apply", "old.db", "out/box"]).status == 0)
    #expect(try bench.sql("old.db", "SELECT * FROM tags") == ["x"])
  }

  @Test("Without changes, no folder is created")
  func nothing() throws {
    let bench = try DiffCommandTests.pair()
    #expect(try bench.buckia(["diff", "old.db", "old.db", "-o", "outbox"]).status == 0)
    #expect(try bench.names() == ["new.db", "old.db"])
  }

  @Test(
    "A known extension and an existing file name the file itself", arguments: ["a.bdiff", "a.changeset", "there"])
  func file(name: String) throws {
    let bench = try DiffCommandTests.pair()
    try Data("old".utf8).write(to: bench.folder.appendingPathComponent("there"))
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", name, "--force"]).status == 0)
    #expect(try bench.names().contains(name))
    #expect(
      try Data(contentsOf: bench.folder.appendingPathComponent(name)).prefix(4) == Data([0x28, 0xb5, 0x2f, 0xfd]))
  }

  @Test("An existing folder is used whatever its name, and a file in the way is named")
  func odd() throws {
    let bench = try DiffCommandTests.pair()
    try FileManager.default.createDirectory(atPath: bench.path("box.bdiff"), withIntermediateDirectories: true)
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "box.bdiff"]).status == 0)
    #expect(try bench.names(in: "box.bdiff").count == 1)
    let outcome = try bench.buckia(["diff", "old.db", "new.db", "-o", "old.db/box"])
    #expect(outcome.status == 1)
    #expect(outcome.diagnostics == "buckia: old.db: the folder cannot be made: File exists\n")
  }

  @Test(
    "- is standard output: the file goes there alone, and messages go to standard error",
    arguments: [false, true])
  func standardOutput(raw: Bool) throws {
    let bench = try DiffCommandTests.pair()
    try bench.sql("new.db", "DROP TABLE tags; ALTER TABLE notes DROP COLUMN stars")
    let options = raw ? ["--raw"] : []
    // The bytes are no text: the shell writes them to a file.
    #expect(try bench.shell("\"$BUCKIA\" diff old.db new.db -o - \(options.joined()) > made 2> said").status == 0)
    let said = try String(contentsOfFile: bench.path("said"), encoding: .utf8)
    #expect(said.hasPrefix("standard output  ") && said.contains("notes"), "\(said)")
    #expect(try bench.buckia(["verify", "made"]).status == 0)
    #expect(try bench.buckia(["apply", "old.db", "made"]).status == 0)
    #expect(try bench.sql("old.db", "SELECT * FROM notes") == (try bench.sql("new.db", "SELECT * FROM notes")))

    let nothing = try bench.buckia(["diff", "old.db", "old.db", "-o", "-"] + options)
    #expect(nothing.output.isEmpty && nothing.diagnostics.hasPrefix("No changes"), "\(nothing.diagnostics)")
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "-", "--json"]).status == 64)
  }

  @Test("Diff files under other names are reported with advice, and applied when named")
  func misnamed() throws {
    let bench = try DiffCommandTests.pair()
    try FileManager.default.createDirectory(atPath: bench.path("inbound"), withIntermediateDirectories: true)
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "inbound/x.bdiff"]).status == 0)
    try FileManager.default.moveItem(
      atPath: bench.path("inbound/x.bdiff"), toPath: bench.path("inbound/Anna's changes (1).bin"))
    try bench.sql("third.db", "CREATE TABLE t(id INTEGER PRIMARY KEY)")
    try bench.record("third.db", "INSERT INTO t VALUES (7)", to: "inbound/raw")
    for (name, text) in [("letter.txt", "Thanks!"), ("Todo", String(repeating: "T\u{2}a ", count: 300)), ("empty", "")]
    {
      try Data(text.utf8).write(to: bench.folder.appendingPathComponent("inbound/\(name)"))
    }
    try Transcript(
      #"""
      $ buckia apply old.db inbound
      There is nothing to apply.

      0 rows changed by 0 files in ….
      The ledger tables (buckia_…) were made in old.db.
      5 other files in the folder were left alone.
      2 of them are diff files or changesets under another name than their id. …
      …
        buckia apply old.db 'inbound/Anna'\''s changes (1).bin'
        buckia apply old.db inbound/raw
      Trust: …
      """#
    ).play(on: bench)
    let document = try bench.buckia(["apply", "old.db", "inbound", "--json"]).json
    #expect(document["misnamed"] as? [String] == ["inbound/Anna's changes (1).bin", "inbound/raw"])
    let verified = try bench.buckia(["verify", "inbound", "--json"]).json
    #expect(verified["misnamed"] as? [String] == ["inbound/Anna's changes (1).bin", "inbound/raw"])
    #expect(try bench.buckia(["apply", "old.db", "inbound/Anna's changes (1).bin"]).status == 0)
    #expect(try bench.sql("old.db", "SELECT * FROM tags") == ["x"])
  }

  @Test("Output made from a private file is private, and from a readable file readable", arguments: [0o600, 0o644])
  func permissions(of permissions: Int) throws {
    let bench = try DiffCommandTests.pair()
    try bench.sql("new.db", "DROP TABLE tags; ALTER TABLE notes DROP COLUMN stars")
    func protect(_ name: String) throws {
      try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: bench.path(name))
    }
    // Of a merge, only the changes of one side may be private.
    for name in ["old.db", "new.db"] { try protect(name) }
    let commands = [
      "diff old.db new.db -o a.bdiff", "diff old.db new.db --raw --tables notes -o b.changeset",
      "share new.db --to ben --table notes --unencrypted -o c.bdiff", "changeset invert b.changeset -o d.changeset",
      "changeset sort a.bdiff -o e.bdiff", "show a.bdiff --html f.html", "conflicts new.db --html g.html",
      "merge old.db old.db new.db -o h.db", "encrypt a.bdiff --passphrase-file word -o i.age",
      "decrypt i.age --passphrase-file word -o j.bdiff", "apply old.db a.bdiff --snapshot k.db",
    ]
    try Data("a passphrase".utf8).write(to: bench.folder.appendingPathComponent("word"))
    for command in commands {
      let arguments = command.split(separator: " ").map(String.init)
      let outcome = try bench.buckia(arguments)
      #expect(outcome.status == 0, "\(command): \(outcome.diagnostics)")
      let made = arguments[arguments.count - 1]
      let attributes = try FileManager.default.attributesOfItem(atPath: bench.path(made))
      let found = try #require(attributes[.posixPermissions] as? Int)
      #expect(found & 0o004 == permissions & 0o004, "\(command): \(String(found, radix: 8))")
    }
  }
}
