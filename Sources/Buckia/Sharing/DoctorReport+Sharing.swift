import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import BuckiaSharing
import SQLiteConnections

extension DoctorReport {
  /// Names the columns that seem to refer to rows of other tables by an integer key, though nothing declares it: if a row that arrives has
  /// to get another key, because its own one is taken, such columns would go on referring to the old one.
  ///
  /// - Parameters:
  ///   - tables: The tables that replicate.
  ///   - connection: The database, whose shares may declare references.
  /// - Throws: `SQLiteError`; `ReplicationError` when the ledger is damaged.
  mutating func lookForHiddenReferences(of tables: [TableDefinition], on connection: borrowing SQLiteConnection) throws
  {
    let declared = try ShareEntry.all(on: connection).flatMap { try ShareScope(json: $0.scope).references }
    for parent in tables where parent.hasIntegerKey {
      for child in tables {
        for (place, column) in child.columns.enumerated()
        where column.seemsToRefer(to: parent.name) && child.affinity(at: place) == .integer {
          let isDeclared =
            child.foreignKeys.contains { $0.columns.contains { ASCIIName.matches($0, column.name) } }
            || declared.contains {
              $0.table == TableName(child.name) && $0.columns.contains { ASCIIName.matches($0, column.name) }
            }
          // A table's own name says what its column holds, as a `price` has a price.
          let isOwn =
            child.name == parent.name
            && (child.primaryKey.contains(place) || ASCIIName.matches(column.name, parent.name))
          if !isDeclared, !isOwn { warnings.append(Remark(.hiddenReference, child.name, column.name, parent.name)) }
        }
      }
    }
  }

  /// Names the shared tables in which a new row can get the key of a deleted one.
  ///
  /// - Parameters:
  ///   - tables: The tables that replicate.
  ///   - connection: The database.
  /// - Throws: `SQLiteError`.
  mutating func lookForReusedKeys(of tables: [TableDefinition], on connection: borrowing SQLiteConnection) throws {
    let shared = try Set(
      ShareEntry.all(on: connection).flatMap { try ShadowEntry.all(of: $0.number, on: connection) }.map(\.table))
    for table in tables where table.givesOutKeys && !table.isAutoIncrement && shared.contains(TableName(table.name)) {
      warnings.append(Remark(.reusedKeys, table.name))
    }
  }

  /// Names the tables of which shares leave out columns by name, so that a new column is shared.
  ///
  /// - Throws: `SQLiteError`; `ReplicationError` when the ledger is damaged.
  mutating func lookForOmittedColumns(on connection: borrowing SQLiteConnection) throws {
    for scope in try ShareEntry.all(on: connection).map({ try ShareScope(json: $0.scope) }) {
      for table in scope.tables where !table.omittedColumns.isEmpty {
        let remark = Remark(.laterColumns, table.name.text)
        if !warnings.contains(remark) { warnings.append(remark) }
      }
    }
  }

  /// Names the tables for which the sums of what streams have are not those of the rows that are noted.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` when the ledger is damaged.
  mutating func lookAtStates(_ connection: borrowing SQLiteConnection) throws {
    for state in try StateAudit.altered(on: connection) {
      warnings.append(Remark(.stateAltered, state.table.text, state.shortStream))
    }
  }
}

extension TableDefinition {
  /// Whether the key is one integer, which each copy of a database gives out by itself.
  fileprivate var hasIntegerKey: Bool { primaryKey.count == 1 && affinity(at: primaryKey[0]) == .integer }
}

extension ColumnDefinition {
  /// Whether it is named as columns are that refer to a table: `photo_id`, `photoid` or `id_photo`, for `photo` or `photos`, or as the
  /// table itself.
  fileprivate func seemsToRefer(to table: String) -> Bool {
    let column = ASCIIName.folded(name)
    let parent = ASCIIName.folded(table)
    let names = parent.hasSuffix("s") ? [parent, String(parent.dropLast())] : [parent]
    return parent.utf8.count > 1 && column == parent
      || names.contains { $0.utf8.count > 1 && [$0 + "_id", $0 + "id", "id_" + $0].contains(column) }
  }
}
