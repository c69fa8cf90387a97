import Foundation
import TestSupport
import Testing

/// The shell blocks of the documents are pasted into a shell, one after the other, in an empty folder.
@Suite("Shell blocks of the documents")
struct ShellSamples {
  /// A block of shell commands, and the output that the document shows below it.
  private struct Block {
    var commands: [String] = []
    var output: [String]?
  }

  @Test(
    "Every block runs, and prints what stands below it",
    .enabled(if: ProgramRun.path(of: "sqlite3") != nil, "the sqlite3 shell is missing"),
    arguments: ["README.md", "Sources/Buckia/Buckia.docc/Tutorial.md"])
  func run(document: String) throws {
    let folder = try TemporaryFolder()
    let programs = folder.file("programs")
    let work = folder.file("work")
    for path in [programs, work] {
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }
    try FileManager.default.createSymbolicLink(
      atPath: "\(programs)/buckia", withDestinationPath: BuiltProduct.path(of: "buckia"))
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    let environment = [
      "PATH": "\(programs):\(path)", "HOME": folder.path, "BUCKIA_HOME": folder.file("home of the reader"),
    ]
    let blocks = try blocks(of: document)
    #expect(!blocks.isEmpty)
    for block in blocks {
      let script = block.commands.joined(separator: "\n")
      let run = try ProgramRun("/bin/sh", ["-eu", "-c", script], environment: environment, in: work)
      #expect(run.hasSucceeded, "\(document): \(script)\n\(run.text)")
      guard let output = block.output else { continue }
      let lines = run.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
      #expect(matches(lines, output), "\(document): \(script)\n\(run.text)")
    }
  }

  /// The blocks in the language `sh`, with a block in the language `text` below them.
  private func blocks(of document: String) throws -> [Block] {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let text = try String(contentsOf: root.appendingPathComponent(document), encoding: .utf8)
    var blocks: [Block] = []
    var language: String?
    for line in text.components(separatedBy: "\n") {
      if line.hasPrefix("```") {
        language = language == nil ? String(line.dropFirst(3)) : nil
        if language == "sh" { blocks.append(Block()) }
        if language == "text", !blocks.isEmpty { blocks[blocks.count - 1].output = [] }
      } else if language == "sh" {
        blocks[blocks.count - 1].commands.append(line)
      } else if language == "text", !blocks.isEmpty {
        blocks[blocks.count - 1].output?.append(line)
      }
    }
    return blocks
  }

  /// Compares lines with a pattern in which `…` stands for any text of a line.
  private func matches(_ lines: [String], _ pattern: [String]) -> Bool {
    guard lines.count == pattern.count else { return false }
    return zip(lines, pattern).allSatisfy { line, expected in
      var rest = Substring(line)
      let parts = expected.components(separatedBy: "…")
      guard rest.hasPrefix(parts[0]) else { return false }
      rest = rest.dropFirst(parts[0].count)
      for part in parts.dropFirst() where !part.isEmpty {
        guard let range = rest.range(of: part) else { return false }
        rest = rest[range.upperBound...]
      }
      return rest.isEmpty || parts.count > 1 && parts.last == ""
    }
  }
}
