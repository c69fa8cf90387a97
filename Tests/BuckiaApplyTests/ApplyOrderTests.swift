import BuckiaBytes
import BuckiaLedger
import ReplicationTestSupport
import SQLiteChangesets
import SQLiteConnections
import TestSupport
import Testing

@testable import BuckiaApply

/// The order in which the changes of a table are applied, if it is not the order of the file.
@Suite struct ApplyOrderTests {
  /// Records the rows that are written.
  private final class WriteLog: RowEffectObserver {
    let wantsRows = false
    private(set) var writes: [(operation: ChangeOperation, key: Int64)] = []

    func didWrite(_ effect: RowEffect) throws {
      guard case .integer(let key)? = try ChangesetValue.record(effect.key).first ?? nil else { return }
      writes.append((effect.operation, key))
    }

    var mark: Int { writes.count }
    func rewind(to mark: Int) { writes.removeLast(writes.count - mark) }
  }

  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// The author's edits of 10,000 rows.
    let edits: String
    /// Additions to the receiver's table.
    var here = ""
    /// True if deletes and updates are applied in one pass.
    let isOnePass: Bool
  }

  private static let many = "DELETE FROM t WHERE k % 4 = 1; UPDATE t SET v = v + 1 WHERE k % 4 = 3"

  static let cases = [
    Case(testDescription: "many of both", edits: many, isOnePass: true),
    Case(
      testDescription: "many of both, and inserts", edits: "\(many); INSERT INTO t VALUES (10001, 1), (10002, 1)",
      isOnePass: true),
    Case(
      testDescription: "few updates", edits: "DELETE FROM t WHERE k % 4 = 1; UPDATE t SET v = 0 WHERE k % 1000 = 0",
      isOnePass: false),
    Case(
      testDescription: "values that are unique", edits: many, here: "CREATE UNIQUE INDEX u ON t(v, k)", isOnePass: false
    ),
  ]

  @Test("Many deletes and updates are applied in one pass in key order, if order has no effect", arguments: cases)
  func onePass(_ found: Case) throws {
    let table = """
      CREATE TABLE t(k INTEGER PRIMARY KEY, v);
      WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) INSERT INTO t SELECT i, i % 7 FROM n;
      """
    let author = try SQLiteConnection(opening: ":memory:", as: .create)
    try author.execute(table)
    let session = try SQLiteSession(on: author)
    try session.attach()
    try author.execute(found.edits)
    // In the order of diff files: deletes, updates, inserts.
    let changes = try Changesets.sorted(session.changeset())
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute(table + found.here)
    let incoming = try IncomingChanges(
      key: LedgerKey(sender: "", id: nil, digest: [1], isRaw: true), file: "test", definitions: nil,
      changeset: TemporaryBuffer(changes))
    let log = WriteLog()
    var settings = ApplySettings(time: 2_000_000_000_000)
    settings.observer = log
    let transaction = try SQLiteTransaction(on: receiver)
    let result = try Receiver.plan(incoming, on: receiver, settings: settings).apply(in: transaction)
    try transaction.commit()
    #expect(result.counts.conflicts == 0)
    let keys = log.writes.map(\.key)
    if found.isOnePass {
      #expect(keys == keys.sorted())
    } else {
      let firstUpdate = try #require(log.writes.firstIndex { $0.operation == .update })
      #expect(log.writes[firstUpdate...].allSatisfy { $0.operation != .delete })
    }
    let columns = ["k", "v"]
    #expect(
      try Rows.lines(of: "t", columns: columns, on: receiver) == Rows.lines(of: "t", columns: columns, on: author))
  }
}
