import Foundation
import TestSupport
import Testing

@Suite("buckia completions")
struct CompletionsCommandTests {
  @Test(
    "bash completes commands, options and the values of options",
    .enabled(if: FileManager.default.fileExists(atPath: "/bin/bash")))
  func bash() throws {
    let bench = try Workbench()
    let script = bench.folder.appendingPathComponent("script").path
    try Data(bench.buckia(["completions", "bash"]).output.utf8).write(to: URL(fileURLWithPath: script))
    func completed(_ words: String...) throws -> Set<String> {
      let quoted = words.map { "'\($0)'" }.joined(separator: " ")
      let shell = try ProgramRun(
        "/bin/bash",
        [
          "-c",
          """
          source \(script); COMP_WORDS=(\(quoted)); COMP_CWORD=\(words.count - 1); COMP_LINE="\(words.joined(separator: " "))"
          COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
          complete -p buckia | grep -q -- '-F _buckia' || exit 1
          _buckia buckia '\(words.last ?? "")' '\(words.dropLast().last ?? "")'; printf '%s\\n' "${COMPREPLY[@]}"
          """,
        ])
      #expect(shell.hasSucceeded, "\(shell.text)")
      return Set(shell.output.split(whereSeparator: \.isWhitespace).map(String.init))
    }
    #expect(try completed("buckia", "sh") == ["share", "show"])
    #expect(try completed("buckia", "diff", "--meth") == ["--method"])
    #expect(try completed("buckia", "apply", "--on-conflict", "ta") == ["take-incoming"])
  }

  @Test("Supported shells have a script; others are refused", arguments: ["bash", "zsh", "fish"])
  func shells(name: String) throws {
    let bench = try Workbench()
    let outcome = try bench.buckia(["completions", "--home", bench.folder.path, name])
    #expect(outcome.status == 0)
    #expect(outcome.output.contains("buckia"))
    let refused = try bench.buckia(["completions", "tcsh"])
    #expect(refused.status == 64)
    #expect(refused.diagnostics.contains("there are completions for bash, zsh and fish"))
  }
}
