import Foundation
import SQLiteConnections
import Testing

/// Files with values of many megabytes, which are shown and verified without being held in memory as a whole.
@Suite("buckia show and verify with large values")
struct LargeValueTests {
  /// A changeset that changes a blob and a text of 9 MB each, close to their ends.
  private static func pair() throws -> Workbench {
    let bench = try Workbench()
    let table = "CREATE TABLE t(id INTEGER PRIMARY KEY, b, x TEXT)"
    try bench.sql(
      "old.db",
      "\(table); INSERT INTO t VALUES (1, zeroblob(9000000), replace(hex(zeroblob(2250000)), '0', 'é') || 'old')")
    try bench.sql(
      "new.db",
      """
      \(table); INSERT INTO t VALUES (1, CAST(zeroblob(8999999) || x'01' AS BLOB),
        replace(hex(zeroblob(2250000)), '0', 'é') || 'new');
      INSERT INTO t VALUES (2, NULL, 'short')
      """)
    #expect(try bench.buckia(["diff", "old.db", "new.db", "--raw", "-o", "c.changeset"]).status == 0)
    return bench
  }

  @Test("Large values are shown in part, around the difference, with their size")
  func shown() throws {
    let bench = try Self.pair()
    for options in [[], ["--full"]] {
      let shown = try bench.buckia(["show", "c.changeset"] + options)
      #expect(shown.status == 0)
      #expect(shown.output.utf8.count < 4_000)
      #expect(shown.output.contains("x'…0000000000000000' (9.00 MB)"))
      #expect(shown.output.contains("x'…0000000000000001' (9.00 MB)"))
      #expect(shown.output.contains("éold' (9.00 MB)") && shown.output.contains("énew' (9.00 MB)"))
      #expect(shown.output.contains("'short'"))
    }
  }

  @Test("--json prints large values whole")
  func json() throws {
    let document = try Self.pair().buckia(["show", "c.changeset", "--json"]).json
    let changes = try #require(document["changes"] as? [[String: Any]])
    #expect(changes.count == 2)
    let update = try #require(changes.first { $0["op"] as? String == "update" })
    let old = try #require(update["old"] as? [String: Any])
    let new = try #require(update["new"] as? [String: Any])
    #expect((update["key"] as? [String: Any])?["column 1"] as? Int == 1)
    let text = String(repeating: "é", count: 4_500_000)
    #expect(old["column 3"] as? String == text + "old")
    #expect(new["column 3"] as? String == text + "new")
    let zeros = String(repeating: "0", count: 17_999_999)
    #expect((old["column 2"] as? [String: Any])?["blob"] as? String == zeros + "0")
    #expect((new["column 2"] as? [String: Any])?["blob"] as? String == zeros + "1")
  }

  @Test("Large values are verified to the last byte")
  func verified() throws {
    let bench = try Self.pair()
    #expect(try bench.buckia(["verify", "c.changeset"]).status == 0)
    let path = bench.path("c.changeset")
    let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    try bytes.dropLast(2_000_000).write(to: URL(fileURLWithPath: path))
    let outcome = try bench.buckia(["verify", "c.changeset"])
    #expect(outcome.status == 1 && outcome.output.contains("ends too early"))
  }
}
