import Buckia
import SQLiteChangesets
import TestSupport
import Testing

/// Conflicts about rows with large values. A small file can cause thousands of them.
@Suite struct LargeConflictTests {
  private static let table = ChangesetTable(name: "t", keyFlags: [1, 0, 0])

  /// Updates of `n` in some rows, from a value that they do not have.
  private func updates(of rows: some Sequence<Int>) -> [UInt8] {
    var writer = ChangesetWriter()
    writer.beginTable(Self.table)
    for (number, row) in rows.enumerated() {
      writer.beginChange(.update)
      writer.append(integer: Int64(row))
      writer.append(integer: -1)
      writer.appendUndefined()
      writer.appendUndefined()
      writer.append(integer: Int64(number) + 1)
      writer.appendUndefined()
    }
    return writer.bytes
  }

  private static func rows(_ count: Int, bytes: Int) -> String {
    """
    CREATE TABLE t(id INTEGER PRIMARY KEY, n, b);
    WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < \(count))
    INSERT INTO t SELECT i, 0, randomblob(\(bytes)) FROM r
    """
  }

  @Test("A large value is stored once, however many conflicts have it, and each of them has the whole value")
  func storedOnce() throws {
    let exchange = try Exchange(Self.rows(1, bytes: 1 << 20))
    let before = try TestDatabases.size(of: exchange.mine)
    try exchange.plantRaw(updates(of: repeatElement(1, count: 40)))
    #expect(try exchange.apply().diffs.map(\.conflicts) == [40])
    #expect(try TestDatabases.size(of: exchange.mine) - before < 2 << 20)
    let blob = try #require(try exchange.rows("SELECT b FROM t").first)
    let conflicts = try exchange.database.conflicts()
    #expect(conflicts.count == 40)
    for conflict in conflicts {
      guard case .blob(let bytes)? = conflict.local?.last?.value else {
        Issue.record("\(conflict.id) has no blob")
        continue
      }
      #expect("x\(bytes)" == blob)
    }
  }

  @Test(
    "Large values that stay in their rows are copied up to a limit, and overwritten ones always",
    arguments: [
      ConflictPolicy.keepLocal, .takeIncoming,
    ])
  func copiesAreBounded(policy: ConflictPolicy) throws {
    let exchange = try Exchange(Self.rows(70, bytes: 1 << 20))
    let before = try TestDatabases.size(of: exchange.mine)
    var writer = ChangesetWriter()
    writer.beginTable(Self.table)
    for row in 1...70 {
      writer.beginChange(.update)
      writer.append(integer: Int64(row))
      writer.append(integer: 0)
      writer.append(text: "another")
      writer.appendUndefined()
      writer.append(integer: 1)
      writer.append(text: "small")
    }
    try exchange.plantRaw(writer.bytes)
    #expect(try exchange.apply(ApplyOptions(conflicts: ConflictPolicies(policy))).diffs.map(\.conflicts) == [70])
    let copied = try exchange.database.conflicts().count { $0.local?.last?.value != nil }
    #expect(copied == (policy == .keepLocal ? 63 : 70))
    #expect(try TestDatabases.size(of: exchange.mine) - before < 72 << 20)
    guard policy == .keepLocal else { return }
    // A value that the record lacks is stored when the row loses it, and comes back with the local version.
    let row = "SELECT length(b), hex(substr(b, 1, 30)), hex(substr(b, -30)) FROM t WHERE id = 70"
    let whole = try exchange.rows(row)
    for answer in [ConflictAnswer.incoming, .local] {
      #expect(try exchange.database.resolve([70], taking: answer).refused.isEmpty)
      #expect(try (exchange.rows(row) == whole) == (answer == .local))
    }
  }
}
