import Foundation
import Testing

@Suite("The command line as a whole")
struct UsageTests {
  @Test("The version names the libraries in use")
  func version() throws {
    let outcome = try Workbench().buckia(["--version"])
    #expect(outcome.status == 0)
    #expect(outcome.output.contains(/^buckia \d+\.\d+\.\d+ \(SQLite 3\.\d+\.\d+, zstd 1\.\d+\.\d+\)\n$/))
  }

  @Test(
    "Every command has help with an example",
    arguments: [
      ["init"], ["diff"], ["apply"], ["show"], ["verify"], ["log"], ["conflicts"], ["resolve"], ["doctor"], ["status"],
      ["ksuid", "new"],
      ["ksuid", "show"], ["encrypt"], ["decrypt"], ["share"],
      ["changeset", "invert"], ["changeset", "concat"], ["changeset", "sort"], ["changeset", "rebase"], ["bench"],
      ["undo"], ["blame"], ["merge"], ["sync"], ["git", "install"], ["git", "uninstall"], ["git", "textconv"],
      ["identity", "new"], ["identity", "show"], ["identity", "rotate"], ["identity", "passphrase"],
      ["contact", "add"], ["contact", "list"],
      ["contact", "trust"], ["contact", "rename"], ["contact", "remove"], ["invite"], ["accept"], ["serve"],
      ["backup"], ["history"], ["restore"], ["prune"],
    ])
  func help(command: [String]) throws {
    let outcome = try Workbench().buckia(command + ["--help"])
    #expect(outcome.status == 0)
    #expect(outcome.output.contains("Example:\n  buckia \(command.joined(separator: " "))"))
    // A line too wide for the help is wrapped, and cannot be copied.
    let examples =
      outcome.output.components(separatedBy: "Example:\n").last?.components(separatedBy: "\n\n").first ?? ""
    for line in examples.split(separator: "\n") { #expect(line.hasPrefix("  "), "\(examples)") }
    #expect(outcome.output.contains("--json"))
    #expect(outcome.output.contains("--quiet"))
    #expect(outcome.output.contains("--home"))
    #expect(outcome.diagnostics.isEmpty)
  }

  @Test("The help of git has an example, and that of its merge driver has the command that git runs")
  func gitHelp() throws {
    let git = try Workbench().buckia(["git", "--help"])
    #expect(git.status == 0 && git.output.contains("Example:\n  buckia git install"), "\(git.output)")
    let driver = try Workbench().buckia(["git", "merge", "--help"])
    #expect(driver.status == 0 && driver.output.contains("'buckia git merge %O %A %B %P'"), "\(driver.output)")
  }

  @Test(
    "Unknown arguments exit with 64, and are reported on standard error",
    arguments: [
      ["frobnicate"], ["diff"], ["diff", "one"], ["diff", "a", "b", "--method", "bytes"], ["apply", "db"],
      ["apply", "db", "f", "--on-conflict", "newest"], ["apply", "db", "f", "--schema", "nothing"],
      ["apply", "db", "f", "--memory", "0"], ["apply", "db", "f", "--memory", "2X"],
      ["apply", "db", "f", "--keep", "--remove"], ["apply", "db", "-", "--passphrase-file", "-"],
      ["ksuid", "new", "-n", "0"], ["ksuid", "show", "nonsense"], ["conflicts", "db", "--last", "0"],
      ["show", "a", "--force"], ["conflicts", "db", "--html", "b", "--rules"],
      ["diff", "a", "b", "--tables", "x,y", "--where", "z=id = 1"],
      ["diff", "a", "b", "--tables", "x,y", "--exclude", "z.id"], ["bench", "--rows", "19"],
      ["bench", "db", "--rows", "0"],
    ])
  func usage(arguments: [String]) throws {
    let outcome = try Workbench().buckia(arguments)
    #expect(outcome.status == 64)
    #expect(outcome.output.isEmpty)
    #expect(!outcome.diagnostics.isEmpty)
  }

  @Test("With --json a usage error is a document on standard output, too")
  func usageAsJSON() throws {
    let outcome = try Workbench().buckia(["diff", "one", "--json"])
    #expect(outcome.status == 64)
    let error = try #require(try outcome.json["error"] as? [String: Any])
    #expect(error["code"] as? String == "usage")
    #expect((error["message"] as? String)?.contains("new") == true)
    #expect(!outcome.diagnostics.isEmpty)
  }

  @Test("An unknown value lists the valid ones")
  func listsValues() throws {
    let outcome = try Workbench().buckia(["apply", "db", "f", "--on-conflict", "newest"])
    #expect(outcome.diagnostics.contains("'keep-local', 'take-incoming', 'abort' or 'latest'"))
  }
}
