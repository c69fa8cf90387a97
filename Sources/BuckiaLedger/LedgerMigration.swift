import SQLiteConnections

/// One numbered step from a format of the ledger tables to the next.
///
/// Migrations run forward and in order, in the transaction that raises the format: an interrupted one leaves everything as
/// it was. A released migration never changes; another change of the tables is another migration. A new ledger is made in
/// the newest format at once, because a migration drops tables, which SQLite refuses while the application reads.
enum LedgerMigration {
  /// The statements that lead from format 1 to 2, from 2 to 3, and so on.
  static let statements = [
    LedgerEntries.withoutStateCheck + RefusedFiles.withoutStateCheck
  ]

  /// Statements that put a table under another definition and keep its rows.
  ///
  /// The rows wait in a TEMP table meanwhile. `ALTER TABLE … RENAME` would take fewer statements, but fails where any view
  /// or trigger of the application's schema is broken.
  ///
  /// - Parameters:
  ///   - table: The table's name.
  ///   - columns: Its columns, which stay the same.
  ///   - definition: The statements that make the new table and its indexes.
  static func rebuild(_ table: String, _ columns: String, as definition: String) -> String {
    """
    CREATE TEMP TABLE buckia_migration AS SELECT \(columns) FROM main.\(table);
    DROP TABLE main.\(table);
    \(definition)
    INSERT INTO main.\(table)(\(columns)) SELECT \(columns) FROM temp.buckia_migration;
    DROP TABLE temp.buckia_migration;

    """
  }
}
