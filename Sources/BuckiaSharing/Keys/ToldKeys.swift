import BuckiaLedger
import SQLiteConnections
import SQLiteSchemas

/// The keys of the rows that shares have told others of, as their shadows have them: also those of rows that are gone here, until the
/// shares have told of that.
final class ToldKeys {
  private struct Shadow {
    let name: String
    let column: String
    let greatest: Int64

    var lookup: String { "SELECT 1 FROM \(name) WHERE \(column) = ?1" }
  }

  private let connection: SQLiteConnection
  private var shadows: [TableName: [Shadow]] = [:]

  init(on connection: borrowing SQLiteConnection) { self.connection = SQLiteConnection(sharing: connection) }

  /// Whether others may call a row by an integer key because they got it from here.
  ///
  /// - Throws: `SQLiteError`.
  func contain(_ key: Int64, of table: KeyedTable) throws -> Bool {
    for shadow in try shadows(of: table) where key <= shadow.greatest {
      if try table.withRow(forKey: key, { try table.finds(shadow.lookup, $0, $1, on: connection) }) { return true }
    }
    return false
  }

  /// True if others have got rows of a table.
  ///
  /// - Throws: `SQLiteError`.
  func exist(of table: KeyedTable) throws -> Bool { try !shadows(of: table).isEmpty }

  /// The greatest of a table below a limit; nil for none.
  ///
  /// - Throws: `SQLiteError`.
  func greatest(below limit: Int64, of table: KeyedTable) throws -> Int64? {
    try shadows(of: table).compactMap { shadow in
      guard shadow.greatest >= limit else { return shadow.greatest }
      return try connection.cachedInteger(
        "SELECT max(\(shadow.column)) FROM \(shadow.name) WHERE \(shadow.column) < \(limit)")
    }.max()
  }

  /// The shadows that have rows of a table.
  private func shadows(of table: KeyedTable) throws -> [Shadow] {
    if let known = shadows[table.name] { return known }
    var found: [Shadow] = []
    if table.local.primaryKey.count == 1 {
      let column = table.local.columns[table.local.primaryKey[0]].name
      let name = SQLText.identifier(column)
      for entry in try ShadowEntry.all(ofRowsIn: table.name, on: connection) {
        // The key may have been renamed since.
        guard try entry.hasColumn(column, on: connection) else { continue }
        let shadow = "main.\(entry.name.quoted)"
        if let greatest = try connection.cachedInteger("SELECT max(\(name)) FROM \(shadow)") {
          found.append(Shadow(name: shadow, column: name, greatest: greatest))
        }
      }
    }
    shadows[table.name] = found
    return found
  }
}
