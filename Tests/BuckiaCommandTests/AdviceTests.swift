import ArgumentParser
import Foundation
import Testing
@testable import Buckia
@testable import BuckiaCommand

@Suite("Advice about the command line")
struct AdviceTests {
  @Test("A warning about an option names the option; other warnings are the library's sentences")
  func warnings() {
    let advice: [Warning.Code: String] = [
      .noPrimaryKey: ", and `diff --keyless content` compares by what is in them",
      .triggers: " with `apply --triggers on`",
      .attachmentsNotUnpacked: "; `tar --zstd -xf` does it",
      .undoNotKept: "; `init --undo-size` keeps more",
      .firstSnapshot: "; `buckia snapshot` makes the first one, of a copy from before",
      .sentBefore: "; `diff --again` does it",
      .stateDiffers: "; `share --resync` does that at the sender",
      .stateAltered: "; `share --resync` does that at the sender",
      .noOldValues: "; `diff` makes files that have them",
      .rowsWithoutParent: "; `resolve --set` and `resolve --delete` do it where the row is a recorded conflict",
    ]
    for code in Warning.Code.allCases {
      let warning = Warning(code, "1", "2", "3", "4", "5")
      #expect(warning.shown == warning.description + (advice[code] ?? ""))
    }
  }

  @Test("Skipped parts of a raw changeset come with the advice to leave out --raw")
  func raw() {
    let codes = SkipReason.Code.allCases.filter { SkipReason($0).shown.contains("leave out --raw") }
    #expect(codes == [.newTableNeedsDefinition, .columnsNeedDefinition, .omittedColumnsNeedDefinition])
  }

  @Test("Commands and options named in messages and documents exist")
  func advisedCommands() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let manager = FileManager.default
    var files = ["README.md"]
    for folder in ["Sources", "Schemas"] {
      let names = manager.enumerator(atPath: root.appendingPathComponent(folder).path)?.allObjects ?? []
      files += names.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") || $0.hasSuffix(".md") }
        .map { "\(folder)/\($0)" }
    }
    var found = 0
    for file in files {
      let text = try String(contentsOf: root.appendingPathComponent(file), encoding: .utf8)
      for span in text.matches(of: /`((?:buckia )?[a-z]+(?: [^`\n]*)?)`/) {
        var words = span.1.split(separator: " ").map(String.init)
        let isNamed = words[0] == "buckia"
        if isNamed { words.removeFirst() }
        var commands = RootCommand.configuration.subcommands
        var command: (any ParsableCommand.Type)?
        while let word = words.first, let next = commands.first(where: { $0.configuration.commandName == word }) {
          command = next
          commands = next.configuration.subcommands
          words.removeFirst()
        }
        let options = words.filter { $0.hasPrefix("--") }.map { $0.prefix { $0.isLetter || $0 == "-" } }
        guard isNamed || command != nil && !options.isEmpty else { continue }
        guard let command else {
          // `buckia pages 1` is the start of a backup object.
          if let word = words.first, word != "pages", word.allSatisfy(\.isLetter) {
            Issue.record("\(file): \(span.0) names no command")
          }
          continue
        }
        let help = RootCommand.helpMessage(for: command)
        for option in options where option.count > 2 {
          found += 1
          #expect(help.contains(option), "\(file): \(span.0)")
        }
      }
    }
    #expect(found > 50)
  }

  @Test("A missing database and an existing output file are reported with advice")
  func errors() throws {
    try Transcript(
      """
      $ buckia log none.db
      ? 1
      2> buckia: none.db: there is no such database; check the path; `buckia init` makes a new one
      $ mkdir folder
      $ buckia log folder
      ? 1
      2> buckia: folder: this is a folder, where a database was expected
      $ sql a.db CREATE TABLE a(x)
      $ buckia merge a.db a.db none.db -o out.db
      ? 1
      2> buckia: none.db: there is no such database to merge; check the path
      $ buckia diff none.db a.db
      ? 1
      2> buckia: none.db: there is no such older database; check the path; the first one is a snapshot that is made while others have the same rows
      """
    ).play(on: Workbench())
  }

  @Test("Without a terminal, a question names the option that answers it, without the program's usage")
  func question() throws {
    let bench = try Workbench()
    try bench.buckia(["init", "a.db"])
    let refused = try bench.buckia(["init", "a.db", "--remove"])
    #expect(refused.status == 64)
    #expect(refused.diagnostics.hasPrefix("buckia: There is no terminal to ask on; --yes does it without a question."))
    #expect(!refused.diagnostics.contains("Usage:"))
    let document = try bench.buckia(["init", "a.db", "--remove", "--json"])
    #expect((try document.json["error"] as? [String: Any])?["code"] as? String == "usage")
  }

  @Test("JSON documents have the codes of warnings beside their sentences")
  func document() throws {
    let bench = try Workbench()
    try bench.buckia(["init", "a.db"])
    try Transcript("$ sql a.db CREATE TABLE a(x)").play(on: bench)
    let document = try bench.buckia(["doctor", "a.db", "--json"]).json
    let codes = try #require(document["warningCodes"] as? [[String: Any]])
    #expect(codes.map { $0["code"] as? String } == ["noPrimaryKey"])
    #expect(codes.map { $0["arguments"] as? [String] } == [["a"]])
    let warnings = try #require(document["warnings"] as? [String])
    #expect(warnings.count == 1 && warnings[0].hasSuffix("`diff --keyless content` compares by what is in them"))
  }
}
