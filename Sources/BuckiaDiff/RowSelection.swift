import BuckiaBytes
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Which rows and columns of a table take part in a comparison.
///
/// A row that stops meeting the condition is a DELETE, one that begins to meet it an INSERT. The definition that travels has
/// only the columns that are not left out.
///
/// ```swift
/// var options = DiffOptions()
/// options.selections["notes"] = RowSelection(where: "owner = :me", ["me": 7], omitting: ["draft"])
/// ```
public struct RowSelection: Equatable, Sendable {
  /// An SQL expression over the columns of the table; nil for all rows. It becomes part of a query as it is, so it must come
  /// from someone who may run any query, and it must give the same answer for a row each time.
  public var condition: String?
  /// The values of the condition's parameters (`:name`, `@name`, `$name`), by name without the first character.
  public var parameters: [String: ChangesetValue]
  /// The columns that are left out. Those of the primary key cannot be.
  public var omittedColumns: [String]

  /// Columns that travel with another value than they have, the same for each row. Those of the primary key cannot.
  public var rewrittenColumns: [String: ChangesetValue]

  /// Makes a selection.
  public init(
    where condition: String? = nil, _ parameters: [String: ChangesetValue] = [:],
    omitting omittedColumns: [String] = [],
    rewriting rewrittenColumns: [String: ChangesetValue] = [:]
  ) {
    self.rewrittenColumns = rewrittenColumns
    self.condition = condition
    self.parameters = parameters
    self.omittedColumns = omittedColumns
  }
}

extension RowSelection {
  func omits(_ column: String) -> Bool { omittedColumns.contains { ASCIIName.matches($0, column) } }

  /// A table without the columns that are left out.
  ///
  /// - Throws: `ReplicationError` with `invalidSelection` for a column of the key.
  package func applied(to table: TableDefinition) throws(ReplicationError) -> TableDefinition {
    var chosen = table
    for column in omittedColumns {
      chosen.removeColumn(named: column)
      chosen.generated.removeAll { ASCIIName.matches($0.name, column) }
      guard chosen.column(named: column) == nil else {
        throw ReplicationError(
          .invalidSelection,
          "column \"\(table.name).\(column)\" cannot be left out: it is part of the primary key", table: table.name,
          column: column)
      }
    }
    guard !chosen.columns.isEmpty, table.module == nil || omittedColumns.isEmpty else {
      let why = table.module == nil ? "it has no others" : "it is a virtual table"
      throw ReplicationError(
        .invalidSelection, "the columns of table \"\(table.name)\" cannot be left out: \(why)", table: table.name)
    }
    return chosen
  }

  /// Makes sure that each column which is left out is in one of the tables.
  ///
  /// - Throws: `ReplicationError` with `invalidSelection`.
  package static func requireColumns(of selections: [RowSelection?], in tables: [TableDefinition?])
    throws(ReplicationError)
  {
    let tables = tables.compactMap { $0 }
    let known = tables.flatMap { $0.columns.map(\.name) + $0.generated.map(\.name) }
    let omitted = selections.flatMap { $0?.omittedColumns ?? [] }
    guard let column = omitted.first(where: { name in !known.contains { ASCIIName.matches($0, name) } }) else { return }
    let table = tables.first?.name ?? ""
    throw ReplicationError(
      .invalidSelection, "there is no column \"\(table).\(column)\" to leave out", table: table, column: column)
  }

  /// The condition as a term of a WHERE clause. The line break ends a comment that the condition may end with.
  var conditionSQL: String? { condition.map { "(\($0)\n)" } }

  /// Makes sure that the condition is one SQL expression over a table, and that each of its parameters has a value.
  ///
  /// - Parameter allowingOthers: Whether there may be values for parameters that it does not have.
  /// - Throws: `ReplicationError` with `invalidSelection`, `SQLiteError` when the database fails.
  package func validate(
    for table: TableName, on connection: borrowing SQLiteConnection, of database: String,
    allowingOthers: Bool = false
  ) throws {
    guard let condition, let term = conditionSQL else { return }
    func invalid(_ why: String) -> ReplicationError {
      ReplicationError(
        .invalidSelection,
        "the condition for table \"\(table)\" of \(database) cannot be used: \(why) (in: \(condition))",
        table: table.text)
    }
    let source = "FROM main.\(table.quoted)"
    do {
      try connection.withoutDoubleQuotedText {
        let query = try connection.prepare("SELECT 1 \(source) WHERE \(term)")
        // What closes the parenthesis of the first query, and opens another, does not fit here.
        _ = try connection.prepare("SELECT CASE WHEN \(condition)\nTHEN 1 END \(source)")
        let names = (0..<query.parameterCount).map { query.parameterName(at: $0) ?? "?" }
        if let name = names.first(where: { $0.hasPrefix("?") || parameters[String($0.dropFirst())] == nil }) {
          throw invalid(name.hasPrefix("?") ? "its parameters need names" : "its parameter \(name) has no value")
        }
        let known = Set(names.map { String($0.dropFirst()) })
        if !allowingOthers, let name = parameters.keys.sorted().first(where: { !known.contains($0) }) {
          throw invalid("it has no parameter \"\(name)\"")
        }
      }
    } catch let error as SQLiteError where error.primaryCode == 1 {
      throw invalid(error.message)
    }
  }

  /// Binds the values of the parameters to a query with the condition, which has been validated.
  package func bindParameters(to query: borrowing SQLiteStatement) throws(SQLiteError) {
    for index in 0..<query.parameterCount {
      let name = query.parameterName(at: index) ?? ""
      try query.bind(parameters[String(name.dropFirst())] ?? .null, at: index)
    }
  }
}
