import SQLiteConnections

/// Which diffs were applied in the last call at whose end a snapshot is made anew.
///
/// They are noted with the rows, in one transaction. Should the process die before the snapshot is made, they tell what is
/// missing in it. They are in `buckia_settings`, under the snapshot's id.
package enum SnapshotRuns {
  private static func name(_ snapshot: String) -> String { "snapshot-\(snapshot)" }

  /// Notes that diffs were applied.
  ///
  /// - Parameters:
  ///   - snapshot: The snapshot's id.
  ///   - entries: Their ledger entries.
  package static func note(
    _ entries: ClosedRange<Int64>, for snapshot: String, on connection: borrowing SQLiteConnection
  ) throws {
    try LedgerSettings.set(
      name(snapshot), to: "\(entries.lowerBound)-\(entries.upperBound)", on: connection)
  }

  /// The ledger entries of the diffs that were applied in the last call; nil for none.
  package static func entries(
    for snapshot: String, on connection: borrowing SQLiteConnection
  ) throws -> ClosedRange<Int64>? {
    guard try Ledger.exists(on: connection) else { return nil }
    let value = try connection.text("SELECT value FROM main.buckia_settings WHERE name = ?1", binding: [name(snapshot)])
    let numbers = (value ?? "").split(separator: "-").compactMap { Int64($0) }
    guard numbers.count == 2, numbers[0] <= numbers[1] else { return nil }
    return numbers[0]...numbers[1]
  }

  /// The diffs among some ledger entries that have written rows, in order. What was taken back or merged here is no diff of others.
  package static func diffs(
    among entries: ClosedRange<Int64>, on connection: borrowing SQLiteConnection
  ) throws -> [(entry: Int64, file: String)] {
    let query = try connection.prepare(
      """
      SELECT entry, file FROM main.buckia_ledger
      WHERE entry BETWEEN ?1 AND ?2 AND state IN ('applied', 'held') AND sender NOT IN ('own', 'merge')
        AND inserted + updated + deleted > 0
      ORDER BY entry
      """)
    try query.bind(entries.lowerBound, at: 0)
    try query.bind(entries.upperBound, at: 1)
    var found: [(entry: Int64, file: String)] = []
    while try query.step() { found.append((query.integer(at: 0), query.text(at: 1) ?? "")) }
    return found
  }
}
