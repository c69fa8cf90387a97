import BuckiaByteStreams
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Which deletions of a share are of rows that have only left its scope: the database still has them.
package struct DepartedRows {
  /// Neighbouring changes that are of departed rows, or not, in the order of the changeset.
  package private(set) var runs: [(count: Int64, isDeparted: Bool)] = []
  /// How many rows of each table have departed.
  package private(set) var counts: [TableName: Int] = [:]

  /// Whether there are any.
  package var isEmpty: Bool { counts.isEmpty }

  /// Looks up the rows that a changeset deletes.
  ///
  /// - Parameters:
  ///   - changeset: The changes from what was shared to what is.
  ///   - definitions: Its tables.
  ///   - schema: The schema of the database.
  /// - Throws: `SQLiteError`, `ChangesetError`, `ByteStreamError`.
  package init(
    in changeset: TemporaryBuffer, of definitions: [TableDefinition], _ schema: SchemaReader,
    on connection: borrowing SQLiteConnection
  ) throws {
    let connection = SQLiteConnection(sharing: connection)
    let tables = Dictionary(definitions.map { (TableName($0.name), $0) }) { first, _ in first }
    try Changesets.forEachChange(of: changeset) { change, reader, bytes in
      var isDeparted = false
      // A row that only its content tells apart may have changed as well as left.
      if change.operation == .delete, let name = reader.table.map({ TableName($0.name) }), let table = tables[name],
        !table.isKeyedByRowID, schema.entry(named: name) != nil
      {
        let columns = table.changesetColumns
        let terms = table.keyIndexes.enumerated().map { place, column in
          let column = SQLText.identifier(columns[column])
          return "\(column) = ?\(place + 1) AND \(column) IS ?\(place + 1) COLLATE BINARY"
        }
        let prepared = try connection.cached(
          "SELECT 1 FROM main.\(name.quoted) WHERE \(terms.joined(separator: " AND "))")
        defer { prepared.statement.clearBindings() }
        for (index, column) in table.keyIndexes.enumerated() {
          try prepared.statement.bind(reader.old[column], in: bytes, at: index)
        }
        isDeparted = try prepared.statement.step()
        prepared.statement.reset()
        if isDeparted { counts[name, default: 0] += 1 }
      }
      if let last = runs.indices.last, runs[last].isDeparted == isDeparted {
        runs[last].count += 1
      } else {
        runs.append((1, isDeparted))
      }
    }
  }
}
