import SQLiteConnections
import SQLiteSchemas

/// Changes rows of the newer copy, while a session of SQLite's records the changes.
final class ChangeRecorder {
  private static let original = "original"
  private let connection: SQLiteConnection
  private var session: SQLiteSession?

  /// Opens the copy to change and the original, which has the rows to insert.
  init(changing database: String, with original: String) throws(SQLiteError) {
    connection = try .withoutSideEffects(opening: database)
    try connection.attach(original, as: Self.original)
    session = try SQLiteSession(on: connection)
  }

  // The connection must outlive the session.
  deinit { session = nil }

  /// Everything that was recorded.
  func changeset() throws(SQLiteError) -> [UInt8] { try session?.changeset() ?? [] }

  /// Changes the rows of one table. A failure leaves the table unchanged.
  ///
  /// - Returns: How many rows changed. Changes that a constraint refuses and updates to the same value don't count.
  func change(_ sample: RowSample) throws(SQLiteError) -> ChangeCounts {
    let table = SQLText.identifier(sample.table.name)
    try session?.attach(sample.table.name)
    let transaction = try SQLiteTransaction(on: connection)
    let columns = sample.table.columns.map { SQLText.identifier($0.name) }.joined(separator: ", ")
    let insert = try connection.prepare(
      """
      INSERT OR IGNORE INTO main.\(table)(\(columns)) SELECT \(columns) FROM \(Self.original).\(table) WHERE \(sample.condition)
      """)
    let delete = try connection.prepare("DELETE FROM main.\(table) WHERE \(sample.condition)")
    let changed = sample.column.map(SQLText.identifier)
    let update = try connection.prepare(
      changed.map {
        "UPDATE OR IGNORE main.\(table) SET \($0) = ?1 WHERE \($0) IS NOT ?1 AND \(Self.numbered(sample))"
      } ?? "SELECT 1")
    var counts = ChangeCounts()
    for (index, row) in sample.rows.enumerated() {
      switch row.change {
      case .insert:
        try insert.bind(row.key, from: 0)
        try insert.run()
        counts.inserted += connection.changes
      case .delete:
        try delete.bind(row.key, from: 0)
        try delete.run()
        counts.deleted += connection.changes
      case .update:
        // The new value is that of the next row in the sample; the last row takes that of the first.
        guard let value = sample.rows[(index + 1) % sample.rows.count].value else { continue }
        try update.bind([value] + row.key, from: 0)
        try update.run()
        counts.updated += connection.changes
      }
    }
    try transaction.commit()
    return counts
  }

  /// The condition that finds a row, with its parameters counted from 2.
  private static func numbered(_ sample: RowSample) -> String {
    sample.table.primaryKey.enumerated()
      .map { "\(SQLText.identifier(sample.table.columns[$1].name)) = ?\($0 + 2)" }.joined(separator: " AND ")
  }
}

/// How many rows were inserted, updated and deleted.
package struct ChangeCounts: Equatable, Sendable {
  package internal(set) var inserted = 0
  package internal(set) var updated = 0
  package internal(set) var deleted = 0

  package var total: Int { inserted + updated + deleted }
}
