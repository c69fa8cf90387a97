import SQLiteConnections
import SQLiteSchemas

/// Permission for the recipients of a share to bring rows into it by their own changes.
package enum WideningChanges {
  private static func setting(_ share: Int64) -> String { "widens-\(share)" }

  /// True if the recipients of a share may always give themselves rows by their own changes.
  ///
  /// - Throws: `SQLiteError`.
  package static func areAllowed(in share: Int64, on connection: borrowing SQLiteConnection) throws -> Bool {
    try LedgerSettings.integer(setting(share), on: connection) == 1
  }

  /// Permits or forbids the changes.
  ///
  /// - Throws: `SQLiteError`.
  package static func allow(_ isAllowed: Bool, in share: Int64, on connection: borrowing SQLiteConnection) throws {
    try LedgerSettings.set(setting(share), to: Int64(isAllowed ? 1 : 0), on: connection)
  }
}

/// The number of rows of a table that the last diff of a share has left out, because they refer to rows that its
/// receivers would not have.
///
/// They are settings: `left-out-N-TABLE` for the share with the number N.
package struct LeftOutEntry: Equatable, Sendable {
  private static let prefix = "left-out-"

  /// The number of the share.
  package let share: Int64
  /// The table.
  package let table: TableName
  /// The number of rows.
  package let count: Int64

  /// Creates an entry.
  package init(share: Int64, table: TableName, count: Int64) {
    self.share = share
    self.table = table
    self.count = count
  }

  /// All of a database, by share and table.
  ///
  /// - Throws: `SQLiteError`.
  package static func all(on connection: borrowing SQLiteConnection) throws -> [LeftOutEntry] {
    var found: [LeftOutEntry] = []
    try connection.forEachRow(
      of: "SELECT substr(name, \(prefix.count + 1)), value FROM main.buckia_settings WHERE name GLOB '\(prefix)*'"
    ) { row in
      let parts = (row.text(at: 0) ?? "").split(separator: "-", maxSplits: 1)
      guard parts.count == 2, let share = Int64(parts[0]) else { return }
      found.append(LeftOutEntry(share: share, table: TableName(String(parts[1])), count: row.integer(at: 1)))
    }
    return found.sorted { ($0.share, $0.table.text) < ($1.share, $1.table.text) }
  }

  /// Replaces the entries of a share.
  ///
  /// - Throws: `SQLiteError`.
  package static func replace(
    of share: Int64, with entries: [LeftOutEntry], on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(cached: "DELETE FROM main.buckia_settings WHERE name GLOB ?1", "\(prefix)\(share)-*")
    for entry in entries {
      try LedgerSettings.set("\(prefix)\(share)-\(entry.table.text)", to: entry.count, on: connection)
    }
  }
}
