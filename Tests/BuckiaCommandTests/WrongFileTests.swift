import Foundation
import Testing
@testable import Buckia

@Suite("Files of the wrong kind")
struct WrongFileTests {
  private static let kinds: [(bytes: [UInt8], name: String)] = [
    (Array("SQLite format 3\0".utf8) + Array(repeating: 0, count: 100), "an SQLite database"),
    ([0x1f, 0x8b, 8, 0, 0, 0, 0, 0], "a gzip file"),
    (Array("PK\u{3}\u{4}".utf8) + Array(repeating: 7, count: 60), "a zip archive"),
    (
      Array(repeating: 0x61, count: 257) + Array("ustar\u{0}00".utf8) + Array(repeating: 0, count: 247), "a tar archive"
    ),
    ([0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x00, 0x01, 0, 0, 0x99, 0xe9, 0xd8, 0x51], "a zstd-compressed file"),
    (Array("%PDF-1.7\n%\u{e2}".utf8), "a PDF document"),
    (Array("Thank you for the changes, they look good to me.\n".utf8), "a text file"),
    (Array("{\"notes\": []}".utf8), "a text file"),
  ]

  @Test("A file that is no diff file is reported with its actual kind", arguments: kinds.indices)
  func named(index: Int) throws {
    let bench = try DiffCommandTests.pair()
    let kind = Self.kinds[index]
    try Data(kind.bytes).write(to: bench.folder.appendingPathComponent("file"))
    // An empty zstd frame contains no archive; only its first bytes are those of a diff file.
    guard kind.name != "a zstd-compressed file" else {
      #expect(FileKind(of: bench.path("file")) == .zstd)
      return
    }
    let sentence = "this is \(kind.name), where a diff file or a changeset was expected"
    let shown = try bench.buckia(["show", "file"])
    #expect(shown.status == 1)
    #expect(shown.diagnostics == "buckia: file: \(sentence)\n")
    let verified = try bench.buckia(["verify", "file", "--json"]).json["files"] as? [[String: Any]]
    #expect((verified?.first?["reason"] as? String)?.hasSuffix(sentence) == true)
    let applied = try bench.buckia(["apply", "old.db", "file", "--json"])
    #expect(applied.status == 1)
    #expect(((try applied.json["diffs"] as? [[String: Any]])?.first?["reason"] as? String)?.contains(sentence) == true)
  }

  @Test("A file that is no database is reported with its actual kind")
  func databases() throws {
    let bench = try DiffCommandTests.pair()
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "x.bdiff"]).status == 0)
    try Data(Self.kinds[6].bytes + Self.kinds[6].bytes + Array(repeating: 0x61, count: 1_000))
      .write(to: bench.folder.appendingPathComponent("letter"))
    for (file, name) in [("x.bdiff", "a diff file"), ("letter", "a text file")] {
      for command in [["log", file], ["doctor", file], ["diff", file, "new.db"], ["diff", "old.db", file]] {
        let outcome = try bench.buckia(command)
        #expect(outcome.status == 1)
        #expect(outcome.diagnostics == "buckia: \(file): this is \(name), where an SQLite database was expected\n")
      }
    }
  }

  @Test("Diff files, changesets and damaged ones are distinguished from other files")
  func ours() throws {
    let bench = try DiffCommandTests.pair()
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "x.bdiff"]).status == 0)
    #expect(FileKind(of: bench.path("x.bdiff")) == .diffFile)
    try bench.sql("t.db", "CREATE TABLE t(a, b, c, PRIMARY KEY (c, a))")
    for isPatchset in [false, true] {
      try bench.record(
        "t.db", "DELETE FROM t; INSERT INTO t VALUES (\(isPatchset ? 4 : 1), 2, 3)", to: "raw", asPatchset: isPatchset)
      #expect(FileKind(of: bench.path("raw")) == .changeset)
    }
    var bytes = try Data(contentsOf: bench.folder.appendingPathComponent("x.bdiff"))
    bytes[bytes.count / 2] ^= 0xff
    try bytes.write(to: bench.folder.appendingPathComponent("damaged.bdiff"))
    let outcome = try bench.buckia(["show", "damaged.bdiff"])
    #expect(!outcome.diagnostics.contains("where a diff file"), "\(outcome.diagnostics)")
  }

  @Test("Two databases without a common table are compared only if requested, and exit with 2 otherwise")
  func unrelated() throws {
    let bench = try Workbench()
    try bench.sql("notes.db", "CREATE TABLE notes(id INTEGER PRIMARY KEY); INSERT INTO notes VALUES (1)")
    try bench.sql("music.db", "CREATE TABLE tracks(id INTEGER PRIMARY KEY, t); INSERT INTO tracks VALUES (1, 'x')")
    try bench.sql("other.db", "CREATE TABLE notes(line TEXT, page INT); INSERT INTO notes VALUES ('x', 1)")
    try bench.sql("empty.db", "PRAGMA user_version = 1")
    try Transcript(
      """
      $ buckia diff notes.db music.db -o x.bdiff
      ? 2
      2> buckia: these are hardly two states of one database: notes.db has the table "notes", and music.db has the table "tracks"; --force compares them anyway
      $ ls
      empty.db
      music.db
      notes.db
      other.db
      $ buckia diff notes.db music.db -o x.bdiff --force --quiet
      $ buckia diff empty.db notes.db -o first.bdiff --quiet
      $ buckia diff notes.db empty.db -o last.bdiff --quiet
      $ buckia diff notes.db other.db -o y.bdiff --quiet
      ? 2
      2> …
      """
    ).play(on: bench)
    let document = try bench.buckia(["diff", "notes.db", "music.db", "--json"])
    #expect(document.status == 2)
    #expect((try document.json["error"] as? [String: Any])?["code"] as? String == "nothing-in-common")
  }

  @Test("A database with only the ledger's tables, and one common column, are enough")
  func related() throws {
    let bench = try Workbench()
    try bench.buckia(["init", "fresh.db"])
    try bench.sql("a.db", "CREATE TABLE Notes(ID INTEGER PRIMARY KEY, a); INSERT INTO Notes VALUES (1, 2)")
    try bench.sql("b.db", "CREATE TABLE notes(id INTEGER PRIMARY KEY, b); INSERT INTO notes VALUES (1, 2)")
    for (old, new) in [("fresh.db", "a.db"), ("a.db", "b.db")] {
      #expect(try bench.buckia(["diff", old, new, "-o", "\(old).bdiff"]).status == 0)
    }
  }

  @Test(
    "A misspelt command is answered with the intended one",
    arguments: [
      ("dif", "diff"), ("aply", "apply"), ("conflict", "conflicts"), ("verfiy", "verify"), ("docotr", "doctor"),
      ("conf", "conflicts"), ("DIFF", "diff"),
    ])
  func commands(typed: String, meant: String) throws {
    let outcome = try Workbench().buckia([typed, "a", "b"])
    #expect(outcome.status == 64)
    #expect(
      outcome.diagnostics.contains("There is no command '\(typed)'. Did you mean '\(meant)'?"), "\(outcome.diagnostics)"
    )
  }

  @Test("A misspelt subcommand, too; a command like no other is answered with the list")
  func otherCommands() throws {
    let bench = try Workbench()
    #expect(try bench.buckia(["changeset", "invrt", "x"]).diagnostics.contains("Did you mean 'invert'?"))
    let none = try bench.buckia(["frobnicate"])
    #expect(none.status == 64 && none.diagnostics.contains("These are: init, snapshot, diff"), "\(none.diagnostics)")
    #expect(try bench.buckia(["help", "diff"]).status == 0)
    #expect(try bench.buckia(["help", "changeset", "sort"]).status == 0)
  }
}
