import Foundation
import Testing

@Suite("Inbound folders and other folders")
struct InboundFolderTests {
  private func bench() throws -> Workbench {
    let bench = try Workbench()
    try FileManager.default.createDirectory(atPath: bench.path("outbox"), withIntermediateDirectories: true)
    try bench.sql("old.db", "CREATE TABLE t(id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 1)")
    for name in ["new.db", "ben.db"] {
      try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path(name))
    }
    try bench.sql("new.db", "INSERT INTO t VALUES (2, 2)")
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "outbox"]).status == 0)
    return bench
  }

  @Test("apply does not empty the database's own outbox, and reports that; it empties another person's")
  func outbox() throws {
    let bench = try bench()
    for _ in 0..<2 {
      let kept = try bench.buckia(["apply", "new.db", "outbox"])
      #expect(kept.status == 0, "\(kept.output) \(kept.diagnostics)")
      #expect(
        kept.output.contains("Nothing was removed from outbox: it holds files that were made from this"))
      #expect(try bench.names(in: "outbox").count == 1)
    }
    let json = try bench.buckia(["apply", "./new.db", "outbox/", "--json"]).json
    #expect(json["outgoingFolders"] as? [String] == ["outbox/"])
    let taken = try bench.buckia(["apply", "ben.db", "outbox"])
    #expect(taken.output.contains("Removed 1 file from outbox: it was applied."), "\(taken.output)")
    #expect(try bench.names(in: "outbox").isEmpty)
  }

  @Test("With another home the folder is emptied: only the author's home knows which files it made")
  func otherHome() throws {
    let bench = try bench()
    let taken = try bench.buckia(["apply", "new.db", "outbox", "--home", bench.path("other"), "--json"])
    let diffs = try #require(try taken.json["diffs"] as? [[String: Any]])
    #expect(diffs.map { $0["removed"] as? Bool } == [true])
    #expect(try bench.names(in: "outbox").isEmpty)
  }

  @Test("apply -, killed while it reads, leaves nothing behind")
  func killedWhileReading() throws {
    let bench = try bench()
    try FileManager.default.createDirectory(atPath: bench.path("tmp"), withIntermediateDirectories: true)
    let process = Process()
    process.executableURL = try Workbench.binary
    process.arguments = ["apply", "ben.db", "-"]
    process.currentDirectoryURL = bench.folder
    process.environment = ProcessInfo.processInfo.environment
      .merging(["BUCKIA_HOME": bench.path(".home"), "TMPDIR": bench.path("tmp")]) { $1 }
    let input = Pipe()
    process.standardInput = input
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    // More than is kept in memory: once all of it is written, most of it has been read.
    var changes = Data("T".utf8)
    changes.append(Data(count: 8 << 20))
    try input.fileHandleForWriting.write(contentsOf: changes)
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
    #expect(process.terminationReason == .uncaughtSignal)
    #expect(try FileManager.default.contentsOfDirectory(atPath: bench.path("tmp")).isEmpty)
  }

  @Test("Standard input from a file is not copied, and gives the same result as the file by name")
  func redirectedFile() throws {
    let bench = try bench()
    let name = try #require(try bench.names(in: "outbox").first)
    let missing = "TMPDIR=/no/such/folder"
    for line in ["apply ben.db - < outbox/\(name)", "apply ben.db - --remove < outbox/\(name)"] {
      let outcome = try bench.shell("\(missing) \"$BUCKIA\" \(line)")
      #expect(outcome.status == 0, "\(outcome.output) \(outcome.diagnostics)")
    }
    #expect(try bench.names(in: "outbox") == [name], "what came by a descriptor has no name to remove")
    #expect(
      try bench.sql("ben.db", "SELECT count(*) FROM t; SELECT file FROM buckia_ledger") == ["2", "standard-input"])
    // A start without an end: a table header followed by nothing but zeros.
    try Data("T\u{2}\u{1}\u{0}t\u{0}".utf8).write(to: bench.folder.appendingPathComponent("sparse"))
    #expect(truncate(bench.path("sparse"), 1 << 32) == 0)
    let refused = try bench.shell("\"$BUCKIA\" apply ben.db - --json < sparse")
    #expect(refused.status == 1 && refused.output.contains("\"badChangeset\""), "\(refused.output)")
  }

  @Test("Standard input of an unknown kind is not read to its end")
  func endlessInput() throws {
    let bench = try bench()
    let outcome = try bench.shell("yes | \"$BUCKIA\" apply ben.db - --json")
    #expect(outcome.status == 1, "\(outcome.diagnostics)")
    #expect(outcome.output.contains("\"code\": \"notZstd\""), "\(outcome.output)")
  }
}

@Suite("Arguments as typed")
struct TypedArgumentTests {
  @Test(
    "Repeated arguments cannot act on the terminal", arguments: ["\u{1B}[31mred", "two\nlines", "\u{202E}back"])
  func escaped(text: String) throws {
    for arguments in [
      ["apply", "db", "f", "--on-conflict", text], ["apply", "db", "f", "--\(text)"], [text],
      ["ksuid", "show", "--x=\(text)"],
    ] {
      let outcome = try Workbench().buckia(arguments)
      #expect(outcome.status == 64)
      let harmful = outcome.diagnostics.unicodeScalars.filter { $0 == "\u{1B}" || $0 == "\u{202E}" }
      #expect(harmful.isEmpty, "\(outcome.diagnostics)")
      #expect(!outcome.diagnostics.contains("\nlines"), "\(outcome.diagnostics)")
    }
  }

  @Test("A path that is not UTF-8 is reported as such, not as missing")
  func notUTF8() throws {
    let bench = try Workbench()
    let outcome = try bench.shell("\"$BUCKIA\" apply ben.db \"$(printf 'caf\\351.bdiff')\"")
    #expect(outcome.status == 64)
    #expect(outcome.diagnostics.contains(#"The argument 'caf\xE9.bdiff' is not UTF-8"#), "\(outcome.diagnostics)")
  }
}
