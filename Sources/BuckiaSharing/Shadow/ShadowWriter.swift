import BuckiaApply
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Writes changes to the rows of a shadow, which are as the changes say that they were.
final class ShadowWriter {
  private let name: String
  private let columns: [String]
  private let key: [Int]
  private let connection: SQLiteConnection

  /// - Parameters:
  ///   - name: The table of the shadow.
  ///   - table: The table whose rows it has, as it travels. To be updated or deleted, they need a key without NULL.
  init(_ name: TableName, _ table: TableDefinition, on connection: borrowing SQLiteConnection) {
    self.name = "main.\(name.quoted)"
    columns = table.columns.map { SQLText.identifier($0.name) }
    key = table.keyIndexes
    self.connection = SQLiteConnection(sharing: connection)
  }

  /// Writes one change.
  ///
  /// - Throws: `SQLiteError`.
  func write(_ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan) throws {
    switch change.operation {
    case .insert: try insert(reader.new, bytes)
    case .delete:
      try run("DELETE FROM \(name) WHERE \(condition(from: 0))", key.map { reader.old[$0] }, bytes)
    case .update:
      let changed = reader.new.indices.filter { reader.new[$0].isDefined }
      guard !changed.isEmpty else { return }
      let assignments = changed.enumerated().map { "\(columns[$1]) = ?\($0 + 1)" }.joined(separator: ", ")
      try run(
        "UPDATE \(name) SET \(assignments) WHERE \(condition(from: changed.count))",
        changed.map { reader.new[$0] } + key.map { reader.old[$0] }, bytes)
    }
  }

  /// Writes a row, as a change has it.
  ///
  /// - Throws: `SQLiteError`.
  func insert(_ row: [ValueSlice], _ bytes: RawSpan) throws {
    // The rowid of a row without a key means nothing.
    let values = Array(row.suffix(columns.count))
    let places = values.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
    try run("INSERT INTO \(name)(\(columns.joined(separator: ", "))) VALUES (\(places))", values, bytes)
  }

  /// Chooses the row with a key, whose values are bound from a parameter on, counted from 0. The index of a collating sequence
  /// finds it, and its bytes are what counts.
  private func condition(from start: Int) -> String {
    key.enumerated().map {
      "\(columns[$1]) = ?\(start + $0 + 1) AND \(columns[$1]) IS ?\(start + $0 + 1) COLLATE BINARY"
    }
    .joined(separator: " AND ")
  }

  private func run(_ sql: String, _ values: [ValueSlice], _ bytes: RawSpan) throws {
    let prepared = try connection.cached(sql)
    for (index, value) in values.enumerated() { try prepared.statement.bind(value, in: bytes, at: index) }
    defer { prepared.statement.clearBindings() }
    try prepared.statement.run()
  }
}
