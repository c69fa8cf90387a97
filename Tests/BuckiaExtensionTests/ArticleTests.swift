import Foundation
import Testing

/// The examples in the article about the extension must work as shown.
@Suite("The article LoadableExtension")
struct ArticleTests {
  private static let article = URL(fileURLWithPath: #filePath)
    .appendingPathComponent("../../../Sources/Buckia/Buckia.docc/LoadableExtension.md").standardizedFileURL

  private static func blocks(_ language: String) throws -> [[String]] {
    var blocks: [[String]] = []
    var isInside = false
    for line in try String(contentsOf: article, encoding: .utf8).components(separatedBy: "\n") {
      if line.hasPrefix("```") {
        isInside = line == "```\(language)"
        if isInside { blocks.append([]) }
      } else if isInside {
        blocks[blocks.count - 1].append(line)
      }
    }
    return blocks
  }

  private func bench() throws -> ExtensionBench {
    let bench = try ExtensionBench()
    let edits = "UPDATE notes SET title = 'Boat' WHERE id = 1; INSERT INTO notes VALUES (3, 'Harbour')"
    try bench.exchange(
      "CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT); INSERT INTO notes VALUES (1, 'Ship'), (2, 'Radio')",
      theirs: edits)
    _ = try bench.folder.copy("base.sqlite", to: "theirs.sqlite")
    try bench.make("theirs.sqlite", edits)
    try bench.make("mine.sqlite", "UPDATE notes SET title = 'Yacht' WHERE id = 1")
    return bench
  }

  @Test(
    "The session in the shell runs as shown",
    .enabled(if: HostProgram.shell.isThere, "\(HostProgram.shell.requirement)"))
  func session() throws {
    let prompt = "sqlite> "
    let blocks = try Self.blocks("console")
    #expect(!blocks.isEmpty)
    for block in blocks {
      let command = try #require(block.first)
      #expect(command == "$ sqlite3 mine.sqlite")
      let input = block.filter { $0.hasPrefix(prompt) }.map { String($0.dropFirst(prompt.count)) }
      let output = block.dropFirst().filter { !$0.hasPrefix(prompt) }
      let found = try bench().run(
        #require(HostProgram.shell.path), ["-batch", "mine.sqlite"], input: input.joined(separator: "\n") + "\n")
      #expect(found == Array(output))
    }
  }

  @Test(
    "The lines of Python run",
    .enabled(if: HostProgram.python.isThere, "\(HostProgram.python.requirement)"))
  func python() throws {
    let code = try #require(try Self.blocks("python").first)
    let program = ["import json, sqlite3"] + code + ["print(json.loads(report)['diffs'][0]['state'])"]
    #expect(
      try bench().run(#require(HostProgram.python.path), ["-c", program.joined(separator: "\n")]) == ["applied"])
  }

  @Test("Every function and option is named")
  func functions() throws {
    let text = try String(contentsOf: Self.article, encoding: .utf8)
    let names = try ExtensionBench().sql(
      [
        "SELECT name FROM pragma_function_list WHERE name LIKE 'buckia%' UNION SELECT name FROM pragma_module_list "
          + "WHERE name LIKE 'buckia%'"
      ], on: ":memory:")
    #expect(names.count == 10)
    for name in names { #expect(text.contains("`\(name)(") || text.contains("`FROM \(name)"), "\(name)") }
  }
}
