import Foundation
import Testing

@Suite("buckia changeset and show, on raw changesets")
struct ChangesetCommandTests {
  /// A database, two days of changes, and the state before them.
  private func twoDays() throws -> Workbench {
    let bench = try Workbench()
    try bench.sql(
      "notes.db",
      "CREATE TABLE notes(id INTEGER PRIMARY KEY, text, weight); INSERT INTO notes VALUES(1, 'a', 1), (2, 'b', 2), (3, 'c', 3)"
    )
    try FileManager.default.copyItem(atPath: bench.path("notes.db"), toPath: bench.path("before.db"))
    try bench.record(
      "notes.db",
      "INSERT INTO notes VALUES(9, 'i', x'00ff'); UPDATE notes SET text = 'B' WHERE id = 2; DELETE FROM notes WHERE id = 3",
      to: "monday.changeset")
    try bench.record(
      "notes.db", "UPDATE notes SET text = 'I' WHERE id = 9; DELETE FROM notes WHERE id = 1", to: "tuesday.changeset")
    return bench
  }

  @Test("show lists what a raw changeset does")
  func show() throws {
    try Transcript(
      """
      $ buckia changeset sort monday.changeset -o sorted.changeset
      sorted.changeset  … bytes in …

        table  inserted  updated  deleted
        notes         1        1        1
      $ buckia show sorted.changeset
      file  sorted.changeset (… bytes)
      kind  raw changeset: nothing says who made it, and its columns have no names

        table  inserted  updated  deleted
        notes         1        1        1

      notes
        - column 1 3
        ~ column 1 2: column 2 'b' → 'B'
        + column 1 9, column 2 'i', column 3 x'00ff'
      $ buckia show sorted.changeset --limit 1
      …
      notes
        - column 1 3
        … and 2 more (--all shows them)
      $ buckia show sorted.changeset --limit 0
      file  sorted.changeset (… bytes)
      …
        notes         1        1        1
      $ buckia show sorted.changeset --quiet
      $ buckia show sorted.changeset --json
      {
        "version": 1,
        "manifest": null,
        "statements": [],
        "changes": [
          {"table":"notes","op":"delete","key":{"column 1":3},"old":{"column 1":3,"column 2":"c","column 3":3},"new":null},
          {"table":"notes","op":"update","key":{"column 1":2},"old":{"column 1":2,"column 2":"b"},"new":{"column 2":"B"}},
          {"table":"notes","op":"insert","key":{"column 1":9},"old":null,"new":{"column 1":9,"column 2":"i","column 3":{"blob":"00ff"}}}
        ]
      }
      """
    ).play(on: twoDays())
  }

  @Test("concat followed by invert takes a database back")
  func undo() throws {
    let bench = try twoDays()
    try Transcript(
      """
      $ buckia changeset concat monday.changeset tuesday.changeset -o both.changeset
      both.changeset  … bytes in …

        table  inserted  updated  deleted
        notes         1        1        2
      $ buckia changeset invert both.changeset -o undo.changeset
      undo.changeset  … bytes in …

        table  inserted  updated  deleted
        notes         2        1        1

      Note: this undoes what the author of the changes did, not what applying them did
        here: where a conflict was met, the two differ, and a local row that was
        replaced does not come back
      """
    ).play(on: bench)
    try bench.applyWithSQLite("undo.changeset", to: "notes.db")
    #expect(
      try bench.sql("notes.db", "SELECT * FROM notes") == (try bench.sql("before.db", "SELECT * FROM notes")))
  }

  @Test("The JSON document of an inverse has its warning with a code")
  func document() throws {
    let bench = try twoDays()
    let document = try bench.buckia(["changeset", "invert", "monday.changeset", "-o", "undo.changeset", "--json"]).json
    #expect(document["path"] as? String == "undo.changeset")
    let warnings = try #require(document["warningCodes"] as? [[String: Any]])
    #expect(warnings.map { $0["code"] as? String } == ["inverseOfChanges"])
    #expect((document["warnings"] as? [String])?.count == 1)
  }

  @Test("A file without changes is accepted, and leads to no output file")
  func empty() throws {
    let bench = try twoDays()
    try Data().write(to: bench.folder.appendingPathComponent("empty"))
    try Transcript(
      """
      $ buckia show empty
      file  empty (0 bytes)
      kind  raw changeset: nothing says who made it, and its columns have no names
      …
      $ buckia verify empty --quiet
      $ buckia changeset invert empty -o undo
      Nothing remains to be changed, so no file was written.
      $ buckia changeset sort empty -o sorted
      Nothing remains to be changed, so no file was written.
      $ buckia changeset concat empty monday.changeset -o both --quiet
      $ buckia apply notes.db empty --quiet
      $ buckia apply notes.db empty
      …
      already-applied…empty…
      …
      """
    ).play(on: bench)
  }

  @Test("Into a folder, a file is written under an id that the document names")
  func folders() throws {
    let bench = try twoDays()
    try FileManager.default.createDirectory(atPath: bench.path("out"), withIntermediateDirectories: true)
    let document = try bench.buckia(["changeset", "sort", "monday.changeset", "-o", "out", "--json"]).json
    let id = try #require(document["id"] as? String)
    #expect(try bench.names(in: "out") == ["\(id).changeset"])
    #expect(document["path"] as? String == "out/\(id).changeset")
    #expect(try bench.buckia(["show", "out/\(id).changeset"]).status == 0)
  }

  @Test("An existing file is only replaced with --force")
  func force() throws {
    try Transcript(
      """
      $ buckia changeset sort monday.changeset -o tuesday.changeset
      ? 1
      2> buckia: tuesday.changeset: a file of that name is there already; --force replaces it
      $ buckia changeset sort monday.changeset -o tuesday.changeset --force --quiet
      $ buckia show tuesday.changeset --limit 0
      …
        notes         1        1        1
      $ buckia changeset sort monday.changeset -o no/such/file.changeset
      ? 1
      2> buckia: no/such/file.changeset: it cannot be written: No such file or directory; …
      $ buckia changeset sort monday.changeset -o tuesday.changeset/folder
      ? 1
      2> buckia: tuesday.changeset: the folder cannot be made: File exists
      """
    ).play(on: twoDays())
  }

  @Test("Changes that cancel each other out produce no file")
  func nothingLeft() throws {
    try Transcript(
      """
      $ buckia changeset invert monday.changeset -o undo.changeset --quiet
      $ buckia changeset concat monday.changeset undo.changeset -o rest
      Nothing remains to be changed, so no file was written.
      $ buckia changeset concat monday.changeset undo.changeset -o -
      2> Nothing remains to be changed, so no file was written.
      $ ls
      before.db
      monday.changeset
      notes.db
      tuesday.changeset
      undo.changeset
      """
    ).play(on: twoDays())
  }

  @Test("Standard input and output can stand for files")
  func pipes() throws {
    let bench = try twoDays()
    let monday = try Data(contentsOf: bench.folder.appendingPathComponent("monday.changeset"))
    let inverted = try bench.buckia(["changeset", "invert", "-", "-o", "undo.changeset"], input: monday)
    #expect(inverted.status == 0)
    let sorted = try bench.buckia(["changeset", "sort", "-", "-o", "-"], input: monday)
    let twice = try bench.buckia(["changeset", "invert", "undo.changeset", "-o", "-"])
    #expect(twice.output == sorted.output && !twice.output.isEmpty)
    #expect(twice.diagnostics.contains("this undoes what the author of the changes did"))
    #expect(try bench.buckia(["show", "-"], input: monday).output.hasPrefix("file  standard input ("))
    let both = try bench.buckia(["changeset", "sort", "undo.changeset", "-o", "-", "--json"])
    #expect(both.status == 64)
  }

  @Test("A diff file cannot be made from raw changesets, which have no definitions")
  func needsDefinitions() throws {
    try Transcript(
      """
      $ buckia changeset sort monday.changeset -o monday.bdiff
      ? 1
      2> buckia: a diff file needs the definitions of its tables, and a raw changeset has none; …
      """
    ).play(on: twoDays())
  }

  @Test("A patchset cannot be inverted, and applying it says that old values are missing")
  func patchset() throws {
    let bench = try twoDays()
    try bench.record("notes.db", "UPDATE notes SET weight = 5", to: "patch", asPatchset: true)
    let outcome = try bench.buckia(["changeset", "invert", "patch", "-o", "x", "--json"])
    #expect(outcome.status == 1)
    let error = try #require(try outcome.json["error"] as? [String: Any])
    #expect(error["code"] as? String == "needsChangeset")
    #expect(outcome.diagnostics.hasPrefix("buckia: "))
    let applied = try bench.buckia(["apply", "before.db", "patch"])
    #expect(applied.output.contains("2 of its updates and deletes have no old values"))
    #expect(applied.output.contains("`diff` makes files that have them"))
  }

  @Test(
    "A file that is no changeset is refused by name",
    arguments: ["T", "not a changeset at all", "SQLite format 3\u{0}"])
  func garbage(text: String) throws {
    let bench = try Workbench()
    try Data(text.utf8).write(to: bench.folder.appendingPathComponent("file"))
    for command in [["show"], ["changeset", "sort"]] {
      let outcome = try bench.buckia(command + ["file"])
      #expect(outcome.status == 1)
      #expect(outcome.output.isEmpty)
      #expect(outcome.diagnostics.hasPrefix("buckia: file: "), "\(outcome.diagnostics)")
    }
    #expect(try bench.names() == ["file"])
  }

  @Test("Links and folders are not followed")
  func specialFiles() throws {
    let bench = try twoDays()
    try FileManager.default.createSymbolicLink(
      atPath: bench.path("link"), withDestinationPath: bench.path("monday.changeset"))
    for name in ["link", ".", "missing"] {
      let outcome = try bench.buckia(["show", name, "--json"])
      #expect(outcome.status == 1)
      let error = try #require(try outcome.json["error"] as? [String: Any])
      #expect(error["path"] as? String == name)
    }
  }

  @Test("Names from a file are escaped")
  func hostileNames() throws {
    let bench = try Workbench()
    try bench.sql("notes.db", "CREATE TABLE \"a\u{1B}[31m\u{202E}\nb\"(id INTEGER PRIMARY KEY, t)")
    try bench.record(
      "notes.db", "INSERT INTO \"a\u{1B}[31m\u{202E}\nb\" VALUES(1, 'x\u{1B}]0;title\u{7}')", to: "evil.changeset")
    let output = try bench.buckia(["show", "evil.changeset"]).output
    #expect(output.contains(#"a\u{1B}[31m\u{202E}\nb"#))
    #expect(output.contains(#"'x\u{1B}]0;title\u{7}'"#))
    #expect(!output.unicodeScalars.contains("\u{1B}"))
  }

  @Test("An id from the future does not advance the person's clock")
  func idFromTheFuture() throws {
    let bench = try twoDays()
    let greatest = "aWgEPTl1tmebfsQzFP4bxwgy80V.changeset"
    try FileManager.default.copyItem(atPath: bench.path("monday.changeset"), toPath: bench.path(greatest))
    #expect(try bench.buckia(["changeset", "sort", greatest, "-o", "sorted.changeset"]).status == 0)
    let next = try bench.buckia(["ksuid", "new"])
    #expect(next.status == 0)
    // The letter that ids of the 2050s start with.
    #expect(next.output.utf8.lexicographicallyPrecedes("K".utf8), "\(next.output)")
  }
}
