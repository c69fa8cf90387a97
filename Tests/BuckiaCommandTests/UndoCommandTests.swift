import Foundation
import Testing

@Suite("buckia undo")
struct UndoCommandTests {
  /// A database to which a diff of two rows has been applied.
  private func bench() throws -> (Workbench, id: String) {
    let bench = try Workbench()
    try bench.sql("old.db", "CREATE TABLE t(id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 'one')")
    for name in ["new.db", "ben.db"] {
      try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path(name))
    }
    try bench.sql("new.db", "INSERT INTO t VALUES (2, 'two'); UPDATE t SET v = 'ONE' WHERE id = 1")
    let sent = try bench.buckia(["diff", "old.db", "new.db", "-o", "inbound", "--json"])
    #expect(try bench.buckia(["apply", "ben.db", "inbound"]).status == 0)
    return (bench, try #require(try sent.json["id"] as? String))
  }

  private func rows(_ bench: Workbench) throws -> [String] { try bench.sql("ben.db", "SELECT * FROM t") }

  @Test("A diff is undone by its id, and the undo itself by the id that the report prints")
  func thereAndBack() throws {
    let (bench, id) = try bench()
    let tried = try bench.buckia(["undo", "ben.db", id, "--dry-run"])
    #expect(tried.status == 0 && tried.output.contains("would be undone"), "\(tried.output)\(tried.diagnostics)")
    #expect(try rows(bench) == ["1|ONE", "2|two"])
    let report = try bench.buckia(["undo", "ben.db", id, "--json"])
    let undone = try #require(try report.json["undone"] as? [[String: Any]]).first
    #expect(undone?["diff"] as? String == id)
    #expect(["inserted", "updated", "deleted", "conflicts"].map { undone?[$0] as? Int } == [0, 1, 1, 0])
    #expect(try rows(bench) == ["1|one"])
    let log = try bench.buckia(["log", "ben.db"]).output
    let undo = try #require(undone?["id"] as? String)
    #expect(log.contains("undone by") && log.contains(undo), "\(log)")
    let again = try bench.buckia(["undo", "ben.db", undo])
    #expect(again.status == 0, "\(again.output)\(again.diagnostics)")
    #expect(try rows(bench) == ["1|ONE", "2|two"])
  }

  @Test("A diff that cannot be undone is an error with the reason")
  func errors() throws {
    let (bench, id) = try bench()
    let unknown = try bench.buckia(["undo", "ben.db", "nothing"])
    #expect(unknown.status == 1 && unknown.diagnostics.contains("no diff with the id"), "\(unknown.diagnostics)")
    #expect(try bench.buckia(["undo", "ben.db"]).status == 64)
    #expect(try bench.buckia(["init", "ben.db", "--undo-days", "0"]).status == 0)
    let gone = try bench.buckia(["undo", "ben.db", id])
    #expect(gone.status == 1 && gone.diagnostics.contains("is no longer on record"), "\(gone.diagnostics)")
    let sender = try bench.buckia(["undo", "ben.db", "--sender", "unsigned"])
    #expect(sender.status == 1 && sender.output.contains("\(id) was not undone"), "\(sender.output)")
    #expect(try rows(bench) == ["1|ONE", "2|two"])
  }

  @Test("A row that has been changed since is a conflict, and the report names the command that shows it")
  func conflict() throws {
    let (bench, id) = try bench()
    try bench.sql("ben.db", "UPDATE t SET v = 'mine' WHERE id = 2")
    let report = try bench.buckia(["undo", "ben.db", id])
    #expect(report.status == 0 && report.output.contains("buckia conflicts ben.db"), "\(report.output)")
    #expect(try rows(bench) == ["1|one", "2|mine"])
  }

  @Test("A sender without files is refused, and the start of a key as printed by log is enough")
  func unknownSender() throws {
    let bench = try ServedDatabases.apart()
    let home = ["--home", bench.path("home of anna")]
    #expect(try bench.buckia(["identity", "new", "--name", "Anna"] + home).status == 0)
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "signed", "--sign"] + home).status == 0)
    #expect(try bench.buckia(["apply", "ben.db", "signed"]).status == 0)
    let typo = try bench.buckia(["undo", "ben.db", "--sender", "Anan"])
    #expect(typo.status == 1 && typo.diagnostics.contains("\"Anan\" is no contact"), "\(typo.diagnostics)")
    let entries = try bench.buckia(["log", "ben.db", "--json"]).json["entries"] as? [[String: Any]]
    let key = try #require(entries?.first?["senderKey"] as? String)
    let undone = try bench.buckia(["undo", "ben.db", "--sender", "key \(key.prefix(12))…"])
    #expect(undone.status == 0 && undone.output.hasPrefix("undone"), "\(undone.output)")
    let log = try bench.buckia(["log", "ben.db"]).output
    #expect(log.contains("undoes "), "\(log)")
  }

  @Test("apply says that a diff larger than --undo-size cannot be undone")
  func tooLarge() throws {
    let bench = try ServedDatabases.apart()
    try bench.sql("new.db", "INSERT INTO notes VALUES (9, 'large', 1, randomblob(2000000))")
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "large"]).status == 0)
    #expect(try bench.buckia(["init", "ben.db", "--undo-size", "1"]).status == 0)
    let applied = try bench.buckia(["apply", "ben.db", "large"])
    let said = applied.output.split { $0.isWhitespace }.joined(separator: " ")
    #expect(said.contains("it cannot be undone") && said.contains("`init --undo-size` keeps more"), "\(said)")
  }
}
