import Foundation
import Testing

/// A terminal session as text, which a test replays.
///
/// ```
/// $ sql notes.db CREATE TABLE notes(id INTEGER PRIMARY KEY)
/// $ buckia log notes.db
/// The ledger is empty: …
/// $ buckia log
/// ? 64
/// 2> Error: …
/// ```
/// A command is followed by its exit code if it is not 0 (`?`), its diagnostics (`2>`) and its output. `…` inside a
/// line stands for any text, a line of `…` alone for any lines. Besides `buckia` there are `sql DB STATEMENTS`,
/// `mkdir`, `cp`, `rm`, `ls` and `cat`.
struct Transcript {
  private struct Step {
    var command: String
    var status: Int32 = 0
    var output: [String] = []
    var diagnostics: [String] = []
  }

  private let steps: [Step]

  init(_ text: String) {
    var steps: [Step] = []
    for line in text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
      if line.hasPrefix("$ ") {
        steps.append(Step(command: String(line.dropFirst(2))))
      } else if steps.isEmpty {
        continue
      } else if line.hasPrefix("? ") {
        steps[steps.count - 1].status = Int32(line.dropFirst(2)) ?? -1
      } else if line.hasPrefix("2> ") {
        steps[steps.count - 1].diagnostics.append(String(line.dropFirst(3)))
      } else {
        steps[steps.count - 1].output.append(line)
      }
    }
    self.steps = steps
  }

  /// Replays the session and records an issue for each step with another result.
  func play(on bench: Workbench, sourceLocation: SourceLocation = #_sourceLocation) throws {
    for step in steps {
      let outcome = try run(step.command, on: bench)
      let actual = "$ \(step.command)\n? \(outcome.status)\n\(outcome.diagnostics)\(outcome.output)"
      #expect(outcome.status == step.status, "\(actual)", sourceLocation: sourceLocation)
      #expect(matches(outcome.output, step.output), "\(actual)", sourceLocation: sourceLocation)
      #expect(matches(outcome.diagnostics, step.diagnostics), "\(actual)", sourceLocation: sourceLocation)
    }
  }

  private func run(_ command: String, on bench: Workbench) throws -> Workbench.Outcome {
    let words = Self.words(of: command)
    let manager = FileManager.default
    switch words[0] {
    case "buckia": return try bench.buckia(Array(words.dropFirst()))
    case "sql":
      let rows = try bench.sql(words[1], command.split(separator: " ", maxSplits: 2).last.map(String.init) ?? "")
      return .init(status: 0, output: rows.map { $0 + "\n" }.joined(), diagnostics: "")
    case "mkdir": try manager.createDirectory(atPath: bench.path(words[1]), withIntermediateDirectories: true)
    case "cp": try manager.copyItem(atPath: bench.path(words[1]), toPath: bench.path(words[2]))
    case "rm": try manager.removeItem(atPath: bench.path(words[1]))
    case "cat":
      return .init(
        status: 0, output: try String(contentsOfFile: bench.path(words[1]), encoding: .utf8), diagnostics: "")
    case "ls":
      let names = try bench.names(in: words.count > 1 ? words[1] : ".")
      return .init(status: 0, output: names.map { $0 + "\n" }.joined(), diagnostics: "")
    default: Issue.record("the transcript uses an unknown command: \(command)")
    }
    return .init(status: 0, output: "", diagnostics: "")
  }

  /// Splits at spaces outside single quotes.
  private static func words(of command: String) -> [String] {
    var words: [String] = [""]
    var isQuoted = false
    for character in command {
      switch character {
      case "'": isQuoted.toggle()
      case " " where !isQuoted: words.append("")
      default: words[words.count - 1].append(character)
      }
    }
    return words.filter { !$0.isEmpty }
  }

  private func matches(_ text: String, _ pattern: [String]) -> Bool {
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    if lines.last == "" { lines.removeLast() }
    var pattern = pattern
    while pattern.last == "" && lines.last != "" { pattern.removeLast() }
    return matches(lines[...], pattern[...], isWildcard: { $0 == "…" }, equal: matchesLine)
  }

  private func matchesLine(_ line: String, _ pattern: String) -> Bool {
    matches(Array(line)[...], Array(pattern)[...], isWildcard: { $0 == "…" }, equal: ==)
  }

  /// True if a sequence fits a pattern in which a wildcard stands for any number of elements.
  private func matches<Element>(
    _ elements: ArraySlice<Element>, _ pattern: ArraySlice<Element>, isWildcard: (Element) -> Bool,
    equal: (Element, Element) -> Bool
  ) -> Bool {
    guard let first = pattern.first else { return elements.isEmpty }
    let rest = pattern.dropFirst()
    if isWildcard(first) {
      return (elements.startIndex...elements.endIndex).contains {
        matches(elements[$0...], rest, isWildcard: isWildcard, equal: equal)
      }
    }
    guard let head = elements.first, equal(head, first) else { return false }
    return matches(elements.dropFirst(), rest, isWildcard: isWildcard, equal: equal)
  }
}
