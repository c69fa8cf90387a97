import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

/// What changed in one table.
package struct TableDifference: Sendable {
  /// The newer definition of the table, with the columns of the changeset in their order.
  package let definition: TableDefinition
  /// Rows in the newer database only.
  package let inserted: Int
  /// Rows in both, with other values.
  package let updated: Int
  /// Rows in the older database only.
  package let deleted: Int
  /// How it was found.
  package let method: DiffMethod
  /// True if the table is missing in the older database.
  package let isNew: Bool
  /// Columns that are missing in the older database.
  package let newColumns: [String]
  /// Columns that have another name in the older database.
  package let renames: [ColumnRename]

  /// The same with other numbers.
  fileprivate func counting(inserted: Int, updated: Int, deleted: Int) -> TableDifference {
    TableDifference(
      definition: definition, inserted: inserted, updated: updated, deleted: deleted, method: method, isNew: isNew,
      newColumns: newColumns, renames: renames)
  }
}

/// The difference of two databases: the changes from the older to the newer one.
package struct DatabaseDifference {
  /// The changes, table by table; inside a table deletes, then updates, then inserts, each by key.
  package let changeset: TemporaryBuffer
  /// The tables with changes, in the order of the changeset, and those with a new definition but no rows.
  package let tables: [TableDifference]
  /// What does not travel.
  package let skipped: [SkippedItem]
  /// Tables that took `rows` because `pages` could not compare them, and why.
  package let fallbacks: [SkippedItem]

  /// The newer database's schema as SQL; nil if the schemas are equal, or it cannot travel.
  package var author: AuthorSchema?

  /// True if there is nothing to ship.
  package var isEmpty: Bool { tables.isEmpty && author == nil }

  // MARK: Beside an earlier difference from the same snapshot, which was sent

  /// The number of changed rows.
  package var changeCount: Int { tables.reduce(0) { $0 + $1.inserted + $1.updated + $1.deleted } }

  /// The difference for receivers that may have applied an earlier one: rows that the earlier one has deleted and that
  /// exist again are INSERTs.
  ///
  /// - Parameter earlier: The changes of the earlier one.
  /// - Throws: `ChangesetError`, `ByteStreamError`.
  package func reinserting(rowsDeletedBy earlier: TemporaryBuffer) throws -> DatabaseDifference {
    let changes = changeset.makeEmpty()
    let counts = try Changesets.reinsert(changeset, deletedBy: earlier, into: changes)
    guard !counts.isEmpty else { return self }
    let tables = tables.map { table in
      let count = counts[table.definition.name] ?? 0
      return table.counting(inserted: table.inserted + count, updated: table.updated - count, deleted: table.deleted)
    }
    return DatabaseDifference(
      changeset: changes, tables: tables, skipped: skipped, fallbacks: fallbacks, author: author)
  }

  /// The difference for receivers that have applied an earlier one: only later changes.
  ///
  /// - Parameters:
  ///   - earlier: The changes of the earlier one.
  ///   - newer: The present database.
  /// - Returns: nil if the two cannot be told apart: a table has got other columns in between.
  /// - Throws: `ChangesetError` when the earlier one is damaged; `ByteStreamError`; `SQLiteError`.
  package func leavingOut(_ earlier: TemporaryBuffer, in newer: RowSource) throws -> DatabaseDifference? {
    if earlier.isEmpty { return self }
    let joined = changeset.makeEmpty()
    do {
      let back = changeset.makeEmpty()
      try Changesets.invert(earlier, into: back)
      try Changesets.concatenate([back, changeset], into: joined)
    } catch is ChangesetError {
      return nil
    }
    let summary = try ChangesetSummary.of(joined)
    let changes = changeset.makeEmpty()
    try Changesets.sort(joined, summary, into: changes)
    let schema = try SchemaReader(newer.connection)
    var left = tables.filter { table in table.isNew || !table.newColumns.isEmpty || !table.renames.isEmpty }
      .filter { table in !summary.tables.contains { TableName($0.table.name) == TableName(table.definition.name) } }
      .map { $0.counting(inserted: 0, updated: 0, deleted: 0) }
    var changed: [TableDifference] = []
    for table in summary.tables {
      let name = TableName(table.table.name)
      if let known = tables.first(where: { TableName($0.definition.name) == name }) {
        changed.append(known.counting(inserted: table.inserted, updated: table.updated, deleted: table.deleted))
        continue
      }
      // Everything that was sent of the table has been taken back since.
      guard let entry = schema.entry(named: name) else { return nil }
      let definition = try schema.definition(of: entry)
      guard definition.changesetColumns.count == table.table.columnCount else { return nil }
      changed.append(
        TableDifference(
          definition: definition, inserted: table.inserted, updated: table.updated, deleted: table.deleted,
          method: .rows, isNew: false, newColumns: [], renames: []))
    }
    left = changed + left
    return DatabaseDifference(
      changeset: changes, tables: left, skipped: skipped, fallbacks: fallbacks, author: author)
  }

  /// The difference without some of its deletions.
  ///
  /// - Parameter runs: Runs of changes, in the order of the changeset, each with true if it is left out.
  /// - Throws: `ChangesetError`, `ByteStreamError`.
  package func leavingOut(deletions runs: [(count: Int64, isLeftOut: Bool)]) throws -> DatabaseDifference {
    let changes = changeset.makeEmpty()
    var run = runs.startIndex
    var left = runs.first?.count ?? 0
    var dropped: [TableName: Int] = [:]
    try Changesets.copy(changeset, into: changes) { _, reader, _ in
      while left == 0, run < runs.endIndex - 1 {
        run += 1
        left = runs[run].count
      }
      left -= 1
      if runs[run].isLeftOut, let table = reader.table { dropped[TableName(table.name), default: 0] += 1 }
      return !runs[run].isLeftOut
    }
    let tables = tables.compactMap { table -> TableDifference? in
      let count = dropped[TableName(table.definition.name)] ?? 0
      let isLeft = table.inserted + table.updated + table.deleted > count || table.isNew || !table.newColumns.isEmpty
      return isLeft
        ? table.counting(inserted: table.inserted, updated: table.updated, deleted: table.deleted - count) : nil
    }
    return DatabaseDifference(
      changeset: changes, tables: tables, skipped: skipped, fallbacks: fallbacks, author: author)
  }
}

extension DatabaseDifference {
  /// A difference that consists of known changes of local rows.
  ///
  /// - Parameters:
  ///   - changes: The sorted changes.
  ///   - schema: The schema of the database.
  /// - Throws: `ReplicationError` when a table is missing or has other columns than the changes; `SQLiteError`,
  ///   `ChangesetError`.
  package init(_ changes: TemporaryBuffer, in schema: SchemaReader) throws {
    let tables = try ChangesetSummary.of(changes).tables.map { changed in
      let name = changed.table.name
      guard let definition = try schema.table(named: TableName(name)),
        definition.changesetColumns.count == changed.table.columnCount
      else {
        throw ReplicationError(.columnsDiffer, "table \"\(name)\" has changed its columns since", table: name)
      }
      return TableDifference(
        definition: definition, inserted: changed.inserted, updated: changed.updated, deleted: changed.deleted,
        method: .rows, isNew: false, newColumns: [], renames: [])
    }
    self.init(changeset: changes, tables: tables, skipped: [], fallbacks: [], author: nil)
  }
}
