import Foundation
import Testing

@Suite("buckia invite and accept")
struct InviteCommandTests {
  private let bench: Workbench

  init() throws {
    bench = try Workbench()
    try bench.sql(
      "anna.db",
      """
      CREATE TABLE topic(id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE note(id INTEGER PRIMARY KEY, topic INTEGER REFERENCES topic(id), text TEXT, draft TEXT);
      INSERT INTO topic VALUES (1,'house'),(2,'garden');
      INSERT INTO note VALUES (1,1,'roof','x'),(2,1,'door','y'),(3,2,'tree','z');
      """)
    try bench.sql("ben.db", "PRAGMA user_version = 1")
    try #"{"format":1,"name":"house","tables":[{"table":"note","where":"topic = 1","omit":["draft"]}]}"#.write(
      toFile: bench.path("scope.json"), atomically: true, encoding: .utf8)
    for person in ["anna", "ben"] { #expect(try run(person, ["identity", "new", "--name", person]).status == 0) }
  }

  /// Runs a command as one of several people, each with a separate home.
  @discardableResult
  private func run(_ person: String, _ arguments: [String], input: String = "") throws -> Workbench.Outcome {
    try bench.buckia(arguments + ["--home", bench.path("home-\(person)")], input: Data(input.utf8))
  }

  @Test func `an invitation is sent, its answer returns, and then rows are shared`() throws {
    let invited = try run(
      "anna", ["invite", "anna.db", "--scope", "scope.json", "--to", "ben", "-o", "ben.invitation"])
    #expect(invited.status == 0, "\(invited.diagnostics)")
    #expect(invited.output.contains("note: rows where topic = 1, without draft"))
    #expect(invited.output.contains("topic: rows that the others refer to"))
    #expect(invited.output.contains("Send it to ben alone"))
    #expect(invited.output.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(invited.output)")
    let attributes = try FileManager.default.attributesOfItem(atPath: bench.path("ben.invitation"))
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    #expect(try run("anna", ["invite", "anna.db", "--scope", "scope.json", "-o", "ben.invitation"]).status == 64)

    let asked = try run("ben", ["accept", "ben.db", "ben.invitation"])
    #expect(asked.status == 64 && asked.diagnostics.contains("accept with --yes"), "\(asked.diagnostics)")
    let accepted = try run("ben", ["accept", "ben.db", "ben.invitation", "--yes", "-o", "in"])
    #expect(accepted.status == 0, "\(accepted.diagnostics)")
    #expect(accepted.output.contains("Invitation from anna to ben"))
    #expect(accepted.output.contains("note: rows where topic = 1, without draft"))
    #expect(accepted.output.contains("anna is a trusted contact now"))
    #expect(accepted.output.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(accepted.output)")
    let again = try run("ben", ["accept", "ben.db", "ben.invitation", "--yes", "--json"])
    #expect(again.status == 0)
    #expect(try again.json["outcome"] as? String == "known")

    let applied = try run("anna", ["apply", "anna.db", "in", "--trust", "known"])
    #expect(applied.status == 0, "\(applied.diagnostics)\(applied.output)")
    #expect(applied.output.contains("trusted because they had its secret"))
    #expect(applied.output.contains("buckia share anna.db --to ben"))
    #expect(try run("anna", ["contact", "list"]).output.contains("by an invitation"))
    let share = ["share", "anna.db", "--to", "ben", "-o", "in"]
    #expect(try run("anna", share).status == 0)
    // By the name of the scope, it is the same share.
    #expect(try run("anna", share + ["--scope", "scope.json"]).output.hasPrefix("No changes"))
    #expect(try run("ben", ["apply", "ben.db", "in", "--trust", "known"]).status == 0)
    #expect(try bench.sql("ben.db", "SELECT * FROM note") == ["1|1|roof", "2|1|door"])
  }

  @Test func `the line alone is printed to standard output, and read as an argument or standard input`() throws {
    let invited = try run("anna", ["invite", "anna.db", "--scope", "scope.json", "--expires", "2"])
    #expect(invited.output.hasPrefix("buckia-invitation-1:") && invited.output.split(separator: "\n").count == 1)
    #expect(invited.diagnostics.contains("It can be answered once"))
    let line = invited.output.trimmingCharacters(in: .newlines)
    let accepted = try run("ben", ["accept", "ben.db", "\n \(line) ", "--yes", "-o", "-"])
    #expect(accepted.status == 0 && accepted.output.hasPrefix("buckia-acceptance-1:"), "\(accepted.diagnostics)")
    let known = try run("ben", ["accept", "ben.db", "-", "--yes", "--json"], input: invited.output)
    #expect(try known.json["outcome"] as? String == "known")
    let applied = try run("anna", ["apply", "anna.db", "-", "--json"], input: accepted.output)
    #expect(applied.status == 0, "\(applied.diagnostics)")
    let answers = try #require(try applied.json["answers"] as? [[String: Any]])
    #expect(answers.map { $0["state"] as? String } == ["accepted"])
    let again = try run("anna", ["apply", "anna.db", "-"], input: accepted.output)
    #expect(again.status == 0 && again.output.contains("it was taken before"), "\(again.output)")
  }

  @Test func `showing an invitation never shows its secret, and escapes its text`() throws {
    let scope = #"{"format":1,"name":"a\u202eb","tables":[{"table":"topic","where":"name <> '\u001b[2J'"}]}"#
    try scope.write(toFile: bench.path("odd.json"), atomically: true, encoding: .utf8)
    let made = try run(
      "anna", ["invite", "anna.db", "--scope", "odd.json", "--folder", "x\u{202e}y", "-o", "odd.invitation", "--json"])
    #expect(made.status == 0, "\(made.diagnostics)")
    let document = try #require(try made.json["invitation"] as? [String: Any])
    let text = try made.json["text"]
    #expect(document["secret"] == nil && text is NSNull)
    let shown = try run("ben", ["accept", "ben.db", "odd.invitation", "--yes"])
    #expect(shown.status == 0, "\(shown.diagnostics)")
    #expect(shown.output.contains(#"a\u{202E}b"#) && shown.output.contains(#"x\u{202E}y"#))
    #expect(shown.output.contains(#"\u{1B}[2J"#))
    #expect(!shown.output.unicodeScalars.contains("\u{202E}") && !shown.output.unicodeScalars.contains("\u{1B}"))
  }

  @Test func `a forged answer is refused with exit code 1, beside applied files`() throws {
    let folder = bench.path("in")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try "buckia-acceptance-1:e30.e30".write(
      toFile: "\(folder)/0ujtsYcgvSTl8PAuAdqWYSMnLOv.accept", atomically: true, encoding: .utf8)
    let applied = try run("anna", ["apply", "anna.db", "in"])
    #expect(applied.status == 1)
    #expect(applied.output.contains("refused: a part of the answer"))
    #expect(try bench.names(in: "in").count == 1)
  }

  @Test(arguments: [
    (["invite", "anna.db"], "Missing expected argument '--scope"),
    (["invite", "anna.db", "--scope", "scope.json", "--expires", "0"], "1 to 365 days"),
    (["accept", "ben.db", "x", "--json", "-o", "-"], "standard output"),
  ])
  func `wrong arguments are a usage error`(_ arguments: [String], _ message: String) throws {
    let outcome = try run("anna", arguments)
    #expect(outcome.status == 64)
    #expect(outcome.diagnostics.contains(message), "\(outcome.diagnostics)")
  }

  @Test func `without an identity no invitation is created`() throws {
    let outcome = try run("carla", ["invite", "anna.db", "--scope", "scope.json"])
    #expect(outcome.status == 1 && outcome.diagnostics.contains("buckia identity new"), "\(outcome.diagnostics)")
  }
}
