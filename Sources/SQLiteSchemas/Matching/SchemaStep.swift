import SQLiteChangesets
import SQLiteConnections

/// One step that makes the local schema fit.
package enum SchemaStep: Equatable, Sendable, CustomStringConvertible {
  /// A table is created. `siblings` are the tables created along with it, the only ones its foreign keys may name.
  case createTable(TableDefinition, siblings: Set<TableName>)
  /// A column is added to a table that is there.
  case addColumn(ColumnDefinition, table: TableName)

  /// The table that it makes or changes.
  package var table: TableName {
    switch self {
    case .createTable(let table, _): TableName(table.name)
    case .addColumn(_, let table): table
    }
  }

  /// The statement that carries it out.
  var sql: String {
    switch self {
    case .createTable(let table, let siblings): return table.createStatement(siblings: siblings)
    case .addColumn(let column, let table):
      return "ALTER TABLE main.\(table.quoted) ADD COLUMN \(column.addClause)"
    }
  }

  /// What it does, for people.
  package var description: String {
    switch self {
    case .createTable(let table, _):
      guard let module = table.module else { return "create table \(table.name) (\(table.columnCount))" }
      return "create virtual table \(table.name) (\(module.name), \(table.columnCount))"
    case .addColumn(let column, let table): return "add column \(table).\(column.name)"
    }
  }
}

extension TableDefinition {
  /// The number of its columns, for people.
  var columnCount: String { columns.count == 1 ? "1 column" : "\(columns.count) columns" }
}
