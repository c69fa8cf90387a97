import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Looks up whether the rows are there that a row refers to.
final class ParentLookup {
  private let links: [(link: ReferenceLink, query: PreparedStatement)]
  private let table: TableDefinition

  /// - Throws: `SQLiteError` when the schema cannot be read.
  init(of table: TableDefinition, in session: ApplySession) throws {
    self.table = table
    links = try ReferenceLink.all(of: .init(unchanged: table), in: session.schema()).map { link in
      // The parent's column decides how values compare, as in SQLite.
      let terms = link.parentColumns.enumerated().map { index, column in
        "\(SQLText.identifier(link.parent.columns[column].name)) = ?\(index + 1)"
      }
      let parent = "main.\(SQLText.identifier(link.parent.name))"
      let query = "SELECT 1 FROM \(parent) WHERE \(terms.joined(separator: " AND "))"
      return (link, PreparedStatement(try session.connection.prepare(query)))
    }
  }

  /// The first row that a row refers to and that is not there, for people; nil where there is none.
  func missingParent(of row: RowVersions.Row) throws -> String? {
    for (link, query) in links {
      let values = link.childColumns.map { row[$0] }
      guard values.allSatisfy({ $0?.isNull == false }) else { continue }
      let offset = link.parent.isKeyedByRowID ? 1 : 0
      let isItself =
        link.child == TableName(link.parent.name) && link.parentColumns.map { row[$0 + offset] } == values
      if isItself { continue }
      for (index, value) in values.enumerated() { try query.statement.bind(value?.value ?? .null, at: index) }
      defer { query.statement.reset() }
      guard try !query.statement.step() else { continue }
      let names = link.parentColumns.map { link.parent.columns[$0].name }
      return RowName(table: link.parent.name, columns: names, values: values.map { $0?.value }).description
    }
    return nil
  }
}
