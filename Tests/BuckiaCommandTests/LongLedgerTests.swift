import Foundation
import SQLiteConnections
import Testing

/// A ledger with many entries, which is never held in memory as a whole.
@Suite("buckia log of a long ledger")
struct LongLedgerTests {
  private static let count = 2_345

  /// Entries that are not in the order of their times, with a refused file between them.
  private static func bench() throws -> Workbench {
    let bench = try Workbench()
    #expect(try bench.buckia(["init", "long.db"]).status == 0)
    try bench.sql(
      "long.db",
      """
      WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
      INSERT INTO buckia_ledger(entry, sender, digest, raw, state, file, recorded_at, inserted)
        SELECT i, '', CAST(printf('%032d', i) AS BLOB), 1, 'applied', printf('file %05d', \(count) - i),
          1700000000000 + (\(count) - i) * 1000, i FROM n;
      INSERT INTO buckia_refused(digest, sender, state, reason, file, first_at, last_at)
        VALUES (x'00', '', 'rejected', 'it is damaged', 'the refused one', 0, 1700000000500)
      """)
    return bench
  }

  @Test("--json and --full have all entries, oldest first")
  func all() throws {
    let bench = try Self.bench()
    var expected = (0..<Self.count).map { String(format: "file %05d", $0) }
    expected.insert("the refused one", at: 1)
    let entries = try #require(try bench.buckia(["log", "long.db", "--json"]).json["entries"] as? [[String: Any]])
    #expect(entries.map { $0["file"] as? String } == expected)
    #expect(entries[1]["reason"] as? String == "it is damaged")
    #expect(entries[2]["inserted"] as? Int == Self.count - 1)
    let text = try bench.buckia(["log", "long.db", "--full"]).output
    var rest = text[...]
    for name in expected {
      guard let found = rest.firstRange(of: name) else {
        Issue.record("\(name) is missing, or not in its place")
        break
      }
      rest = rest[found.upperBound...]
    }
  }

  @Test("The text shows the newest entries, and how many older ones there are")
  func newest() throws {
    let text = try Self.bench().buckia(["log", "long.db"]).output
    #expect(text.contains("… and 2,306 more older files (--full shows all)"))
    #expect(text.contains("file 02344") && text.contains("file 02305") && !text.contains("file 02304"))
  }

  @Test("An empty ledger is an empty list")
  func empty() throws {
    let bench = try Workbench()
    #expect(try bench.buckia(["init", "new.db"]).status == 0)
    #expect(try bench.buckia(["log", "new.db", "--json"]).output == "{\"version\": 1, \"entries\": []}\n")
    #expect(try bench.buckia(["log", "new.db", "--full"]).output.contains("The ledger is empty"))
  }
}
