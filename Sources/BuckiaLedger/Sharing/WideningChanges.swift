import SQLiteConnections
import SQLiteSchemas

/// The table `buckia_widening`: received changes through which rows may enter a share.
///
/// A change by a sender who does not have a row must not send it: such rows are held back until a person allows them.
package enum WideningChanges {
  static let definition = """
    CREATE TABLE main.buckia_widening(
      sender TEXT NOT NULL,
      table_name TEXT NOT NULL COLLATE NOCASE,
      key BLOB NOT NULL,
      kind TEXT NOT NULL,
      PRIMARY KEY (table_name, kind, key, sender)
    ) WITHOUT ROWID;
    """

  /// The kind of a change.
  package enum Kind: String, Sendable {
    /// The change is of a row that its sender was not known to have.
    case row
    /// The change has set a reference of a row that its sender has.
    case reference
  }

  /// Records a change.
  ///
  /// - Parameters:
  ///   - key: The values of the row's key, in the format of changesets.
  ///   - sender: The key that has signed the change.
  /// - Throws: `SQLiteError`.
  package static func note(
    _ kind: Kind, _ key: [UInt8], of table: TableName, by sender: String, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "INSERT OR IGNORE INTO main.buckia_widening VALUES (?1, ?2, ?3, ?4)", sender, table.text, key,
      kind.rawValue)
  }

  /// The keys of the changed rows of a table, with the senders.
  ///
  /// - Throws: `SQLiteError`.
  package static func senders(
    _ kind: Kind, of table: TableName, on connection: borrowing SQLiteConnection
  ) throws -> [[UInt8]: Set<String>] {
    var found: [[UInt8]: Set<String>] = [:]
    try connection.forEachRow(
      ofCached: "SELECT key, sender FROM main.buckia_widening WHERE table_name = ?1 AND kind = ?2",
      binding: [table.text, kind.rawValue]
    ) { row in
      found[row.blob(at: 0), default: []].insert(row.text(at: 1) ?? "")
    }
    return found
  }

  // MARK: Saying yes

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
