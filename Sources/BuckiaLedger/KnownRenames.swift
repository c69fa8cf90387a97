import SQLiteConnections
import SQLiteSchemas

/// The table `buckia_rename`: columns that applied diffs have renamed. Columns of later diffs are found by them, too.
package enum KnownRenames {
  static let definition = """
    CREATE TABLE main.buckia_rename(
      table_name TEXT NOT NULL,
      old_name TEXT NOT NULL,
      new_name TEXT NOT NULL,
      PRIMARY KEY (table_name, old_name, new_name)
    ) WITHOUT ROWID;
    """

  /// All renames; none without a ledger.
  package static func all(on connection: borrowing SQLiteConnection) throws -> [ColumnRename] {
    guard try Ledger.exists(on: connection) else { return [] }
    var renames: [ColumnRename] = []
    try connection.forEachRow(of: "SELECT table_name, old_name, new_name FROM main.buckia_rename") { row in
      renames.append(
        ColumnRename(
          table: TableName(row.text(at: 0) ?? ""), from: row.text(at: 1) ?? "", to: row.text(at: 2) ?? ""))
    }
    return renames
  }

  /// Adds renames that are not known yet.
  package static func add(_ renames: [ColumnRename], on connection: borrowing SQLiteConnection) throws {
    for rename in renames {
      try connection.run(
        cached: "INSERT OR IGNORE INTO main.buckia_rename VALUES (?1, ?2, ?3)", rename.table.text, rename.oldName,
        rename.newName)
    }
  }
}
