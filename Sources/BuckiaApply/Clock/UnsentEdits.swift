import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// What was changed here and not been sent, for the policy `latest`: it counts as later than all that arrives, since
/// the diff that sends it will be.
package final class UnsentEdits {
  private let rows: [TableName: UnsentRows]

  /// Takes what was not sent. It must be called outside of the transactions in which files are applied.
  ///
  /// - Parameters:
  ///   - reversal: A changeset that leads back from the database to what was sent, in the columns of the local tables.
  ///   - definitions: The local tables.
  /// - Throws: `ChangesetError` when the changeset is damaged; `SQLiteError`.
  package init(
    takenBackBy reversal: TemporaryBuffer, _ definitions: [TableDefinition], on connection: borrowing SQLiteConnection
  ) throws {
    let sections = TableSections(try ChangesetSummary.of(reversal), of: reversal)
    var rows: [TableName: UnsentRows] = [:]
    for (index, table) in definitions.enumerated() where table.module == nil {
      rows[TableName(table.name)] = try UnsentRows(of: table, takenBackBy: sections, number: index, on: connection)
    }
    self.rows = rows
  }

  /// What was not sent of a table; nil for nothing.
  func rows(of table: TableName) -> UnsentRows? { rows[table] }

  /// Makes the rows that others have changed meanwhile, too, what these know, in another database: the one from which
  /// the next diff is made.
  package func writeShared(to other: borrowing SQLiteConnection) throws {
    for rows in rows.values { try rows.writeShared(to: other) }
  }
}
