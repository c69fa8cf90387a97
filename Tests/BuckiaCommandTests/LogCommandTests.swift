import Foundation
import Testing

@Suite("buckia log")
struct LogCommandTests {
  private let bench: Workbench

  init() throws {
    bench = try Workbench()
    try bench.sql("anna.db", "CREATE TABLE note(id TEXT PRIMARY KEY, title TEXT); INSERT INTO note VALUES ('a', 'one')")
    try bench.sql("ben.db", "PRAGMA user_version = 1")
  }

  /// Lets Anna change her note and share it.
  ///
  /// - Returns: The id of the file, which is in the folder `inbound`.
  private func share(_ title: String) throws -> String {
    try bench.sql("anna.db", "UPDATE note SET title = '\(title)'")
    let sent = try bench.buckia(
      ["share", "anna.db", "--to", "ben", "--table", "note", "--unencrypted", "-o", "inbound", "--json"])
    return try #require(try sent.json["id"] as? String, "\(sent.diagnostics)")
  }

  private func entries() throws -> [[String: Any]] {
    try #require(try bench.buckia(["log", "ben.db", "--json"]).json["entries"] as? [[String: Any]])
  }

  @Test func `log names the missing predecessor of a waiting file`() throws {
    _ = try share("first")
    #expect(try bench.buckia(["apply", "ben.db", "inbound"]).status == 0)
    let lost = try share("second")
    try FileManager.default.moveItem(atPath: bench.path("inbound/\(lost).bdiff"), toPath: bench.path("lost.bdiff"))
    let waiting = try share("third")
    #expect(try bench.buckia(["apply", "ben.db", "inbound"]).status == 2)
    let reason = "it builds on \(lost), number 2 of its stream, which has not arrived"
    let last = try #require(try entries().last)
    #expect(last["id"] as? String == waiting)
    #expect(last["state"] as? String == "waiting")
    #expect((last["reason"] as? String)?.hasPrefix(reason) == true, "\(last)")
    let words = try bench.buckia(["log", "ben.db"]).output.split(whereSeparator: \.isWhitespace)
    let text = words.joined(separator: " ")
    #expect(text.contains("\(waiting) waiting: \(reason)"), "\(text)")
    // Once the predecessor has arrived, nothing waits any more.
    try FileManager.default.moveItem(atPath: bench.path("lost.bdiff"), toPath: bench.path("inbound/\(lost).bdiff"))
    #expect(try bench.buckia(["apply", "ben.db", "inbound"]).status == 0)
    #expect(try entries().map { $0["state"] as? String } == ["applied", "applied", "applied"])
    #expect(try entries().allSatisfy { $0["reason"] is NSNull })
    #expect(try bench.sql("ben.db", "SELECT title FROM note") == ["third"])
  }
}
