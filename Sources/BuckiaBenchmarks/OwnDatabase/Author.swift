import SQLiteConnections
import SQLiteSchemas

/// Whoever changes the newer copy, while a session of SQLite's records it.
final class Author {
  private static let original = "original"
  private let connection: SQLiteConnection
  private var session: SQLiteSession?

  /// Opens the copy to change and the original, which has the rows to insert.
  init(changing database: String, with original: String) throws(SQLiteError) {
    connection = try Self.connection(to: database)
    try connection.attach(original, as: Self.original)
    session = try SQLiteSession(on: connection)
  }

  // The connection must outlive the session.
  deinit { session = nil }

  /// A connection on which only what is said happens: no triggers, no foreign-key actions.
  static func connection(to database: String) throws(SQLiteError) -> SQLiteConnection {
    let connection = try SQLiteConnection(opening: database, as: .readWrite)
    try connection.execute("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF")
    try connection.enableTriggers(false)
    return connection
  }

  /// Everything that was recorded.
  func recorded() throws(SQLiteError) -> [UInt8] { try session?.changeset() ?? [] }

  /// Changes the rows of one table. On failure nothing of it has changed.
  ///
  /// - Returns: How many rows changed: what a constraint refuses does not, nor does an UPDATE that changes nothing.
  func change(_ chosen: ChosenRows) throws(SQLiteError) -> ChangeCounts {
    let table = SQLText.identifier(chosen.table.name)
    try session?.attach(chosen.table.name)
    let transaction = try SQLiteTransaction(on: connection)
    let columns = chosen.table.columns.map { SQLText.identifier($0.name) }.joined(separator: ", ")
    let insert = try connection.prepare(
      """
      INSERT OR IGNORE INTO main.\(table)(\(columns)) SELECT \(columns) FROM \(Self.original).\(table) WHERE \(chosen.condition)
      """)
    let delete = try connection.prepare("DELETE FROM main.\(table) WHERE \(chosen.condition)")
    let changed = chosen.column.map(SQLText.identifier)
    let update = try connection.prepare(
      changed.map {
        "UPDATE OR IGNORE main.\(table) SET \($0) = ?1 WHERE \($0) IS NOT ?1 AND \(Self.numbered(chosen))"
      } ?? "SELECT 1")
    var counts = ChangeCounts()
    for (index, row) in chosen.rows.enumerated() {
      switch row.fate {
      case .inserted:
        try insert.bind(row.key, from: 0)
        try insert.run()
        counts.inserted += connection.changes
      case .deleted:
        try delete.bind(row.key, from: 0)
        try delete.run()
        counts.deleted += connection.changes
      case .updated:
        // The value of the row that was chosen next; around the end, of the first.
        guard let value = chosen.rows[(index + 1) % chosen.rows.count].value else { continue }
        try update.bind([value] + row.key, from: 0)
        try update.run()
        counts.updated += connection.changes
      }
    }
    try transaction.commit()
    return counts
  }

  /// The condition that finds a row, with its parameters counted from 2.
  private static func numbered(_ chosen: ChosenRows) -> String {
    chosen.table.primaryKey.enumerated()
      .map { "\(SQLText.identifier(chosen.table.columns[$1].name)) = ?\($0 + 2)" }.joined(separator: " AND ")
  }
}

/// How many rows changed in which way.
public struct ChangeCounts: Equatable, Sendable {
  /// Rows that are new.
  public internal(set) var inserted = 0
  /// Rows with other values.
  public internal(set) var updated = 0
  /// Rows that are gone.
  public internal(set) var deleted = 0

  /// All of them.
  public var total: Int { inserted + updated + deleted }
}
