import Foundation
import Testing

@Suite("buckia blame")
struct BlameCommandTests {
  private let bench: Workbench

  /// Anna has notes, which she shares with Ben, who knows and trusts her.
  init() throws {
    bench = try Workbench()
    let schema = "CREATE TABLE note(id TEXT PRIMARY KEY, title TEXT, body TEXT)"
    try bench.sql("anna.db", "\(schema); INSERT INTO note VALUES ('a', 'one', 'x'), ('b', 'two', 'y')")
    try bench.sql("ben.db", schema)
    for name in ["Anna", "Ben"] {
      #expect(try run(name, "identity", "new", "--name", name).status == 0)
      let card = try run(name, "identity", "show").output
      try card.write(toFile: bench.path("\(name).card"), atomically: true, encoding: .utf8)
    }
    #expect(try run("Ben", "contact", "add", "Anna.card").status == 0)
    #expect(try bench.trust("Anna", options: ["--home", bench.path("home of Ben")]).status == 0)
    #expect(try run("Ben", "init", "ben.db", "--clocks").status == 0)
  }

  /// Runs a command as one of the two people, each with a separate home.
  private func run(_ person: String, _ arguments: String...) throws -> Workbench.Outcome {
    try bench.buckia(arguments + ["--home", bench.path("home of \(person)")])
  }

  /// Lets Anna share her changes, and Ben apply them.
  ///
  /// - Returns: The id of the diff.
  private func share() throws -> String {
    let sent = try run("Anna", "share", "anna.db", "--to", "Ben.card", "--table", "note", "-o", "inbound", "--json")
    #expect(sent.status == 0, "\(sent.diagnostics)")
    let applied = try run("Ben", "apply", "ben.db", "inbound", "--on-conflict", "latest")
    #expect(applied.status == 0, "\(applied.output)\(applied.diagnostics)")
    return try #require(try sent.json["id"] as? String)
  }

  /// The text about a row's origin, with line breaks replaced by spaces.
  private func text(of key: String) throws -> String {
    let outcome = try run("Ben", "blame", "ben.db", "note", "--key", "id=\(key)")
    #expect(outcome.status == 0, "\(outcome.diagnostics)")
    return outcome.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
  }

  @Test func `blame names the diff that set each column last, and its signer`() throws {
    let first = try share()
    try bench.sql("anna.db", "UPDATE note SET title = 'uno' WHERE id = 'a'")
    let second = try share()
    let json = try run("Ben", "blame", "ben.db", "note", "--key", "id=a", "--json").json
    #expect(json["table"] as? String == "note")
    #expect(json["exists"] as? Bool == true)
    let inserted = try #require(json["source"] as? [String: Any])
    #expect(inserted["diff"] as? String == first)
    #expect(inserted["sender"] as? String == "Anna")
    #expect(inserted["appliedAt"] as? String != nil)
    let columns = try #require(json["columns"] as? [[String: Any]])
    #expect(columns.map { $0["name"] as? String } == ["id", "title", "body"])
    let sources = columns.dropFirst().compactMap { $0["source"] as? [String: Any] }
    #expect(sources.map { $0["diff"] as? String } == [second, first])
    #expect(sources.map { $0["sender"] as? String } == ["Anna", "Anna"])
    let text = try text(of: "a")
    #expect(text.contains("Inserted by \(first) (Anna)."), "\(text)")
    #expect(text.contains("\(first) Anna ") && text.contains("\(second) Anna "), "\(text)")
  }

  @Test func `blame of a deleted row names who deleted it`() throws {
    _ = try share()
    // Ben keeps the tombstone until everyone to whom he has sent the row has acknowledged the deletion.
    let relayed = try run(
      "Ben", "share", "ben.db", "--to", "cara", "--table", "note", "--unencrypted", "-o", "for cara")
    #expect(relayed.status == 0, "\(relayed.diagnostics)")
    try bench.sql("anna.db", "DELETE FROM note WHERE id = 'b'")
    let deletion = try share()
    let json = try run("Ben", "blame", "ben.db", "note", "--key", "id=b", "--json").json
    #expect(json["exists"] as? Bool == false)
    #expect((json["source"] as? [String: Any])?["diff"] as? String == deletion)
    #expect(try text(of: "b") == "The row is not there: \(deletion) (Anna) has deleted it.")
    #expect(try text(of: "z") == "There is no such row, and no diff has ever deleted one.")
  }

  @Test func `blame without a clock is an error`() throws {
    let outcome = try run("Anna", "blame", "anna.db", "note", "--key", "id=a", "--json")
    #expect(outcome.status == 1 && outcome.diagnostics.contains("has no clock"), "\(outcome.diagnostics)")
    #expect((try outcome.json["error"] as? [String: Any])?["code"] as? String == "no-clock")
  }
}
