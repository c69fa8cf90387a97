import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The rows and columns of a table that are compared.
///
/// A row that stops meeting the condition is a DELETE, one that begins to meet it an INSERT. The definition that travels has
/// only the columns that are not left out.
///
/// ```swift
/// var options = DiffOptions()
/// options.selections["notes"] = RowSelection(where: "owner = :me", ["me": 7], omitting: ["draft"])
/// ```
public struct RowSelection: Equatable, Sendable {
  /// An SQL expression over the columns of the table; nil for all rows. It becomes a part of a query. It must come from
  /// someone who may run any query, and give the same answer for a row each time.
  public var condition: String?
  /// The values of the condition's parameters (`:name`, `@name`, `$name`), by name without the first character.
  public var parameters: [String: ChangesetValue]
  /// The columns that are left out, which must not be part of the primary key.
  public var omittedColumns: [String]

  /// Columns that are sent with another value, the same for each row. They must not be part of the primary key.
  public var rewrittenColumns: [String: ChangesetValue]

  /// Creates a selection.
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

  /// Requires that each left-out column is in one of the tables.
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

  /// Requires that the condition is one SQL expression over a table, and that each of its parameters has a value.
  ///
  /// - Parameter allowingOthers: True if there may be values for parameters that it does not have.
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
        // A condition that closes the parenthesis of the first query and opens another one fails here.
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

  /// Copies the selected rows of a table, in the sent form, to another table of the database.
  ///
  /// - Parameters:
  ///   - table: The table.
  ///   - target: The other one, which has the columns that travel and no rows.
  /// - Throws: `ReplicationError` with `invalidSelection`; `SQLiteError`.
  package func copyRows(
    of table: TableDefinition, into target: TableName, on connection: borrowing SQLiteConnection
  ) throws {
    let names = try applied(to: table).columns.map(\.name)
    let columns = names.map(SQLText.identifier).joined(separator: ", ")
    let copy = try connection.prepare("INSERT INTO main.\(target.quoted)(\(columns)) \(query(of: names, in: table))")
    try bindParameters(to: copy)
    try copy.run()
  }

  /// Calls `body` with the selected rows of a table, in the sent form.
  ///
  /// - Parameters:
  ///   - table: The table.
  ///   - columns: The columns of the results, each of which travels.
  ///   - body: Gets each row.
  /// - Throws: `ReplicationError` with `invalidSelection`; `SQLiteError`; what `body` throws.
  package func forEachRow(
    of table: TableDefinition, _ columns: [String], on connection: borrowing SQLiteConnection,
    _ body: (borrowing SQLiteStatement) throws -> Void
  ) throws {
    let rows = try connection.prepare(query(of: columns, in: table))
    try bindParameters(to: rows)
    while try rows.step() { try body(rows) }
  }

  /// The query for columns of the selected rows, as they travel.
  private func query(of columns: [String], in table: TableDefinition) throws -> String {
    let chosen = try applied(to: table)
    let literals = try rewrittenLiterals(in: chosen)
    let results = columns.map { name in
      chosen.column(named: name).flatMap { literals[$0] } ?? SQLText.identifier(name)
    }
    let condition = conditionSQL.map { " WHERE \($0)" } ?? ""
    return "SELECT \(results.joined(separator: ", ")) FROM main.\(SQLText.identifier(table.name))\(condition)"
  }

  /// Requires that the columns of a table can be left out and rewritten by the selection.
  ///
  /// - Throws: `ReplicationError` with `invalidSelection`; `SQLiteError`.
  package func requireUse(on table: TableDefinition) throws { _ = try rewrittenLiterals(in: applied(to: table)) }

  /// The values that columns travel with instead of their own, as SQL literals by the place of the column.
  ///
  /// They are in the form that the column would store: a receiver's column converts them in the same way, and sent
  /// values must equal those sent later.
  ///
  /// - Parameter table: The table, without the columns that are left out.
  /// - Throws: `ReplicationError` with `invalidSelection` for a column that is not there or is part of the key, and for a
  ///   value that it cannot have; `SQLiteError`.
  func rewrittenLiterals(in table: TableDefinition) throws -> [Int: String] {
    var literals: [Int: String] = [:]
    for (name, value) in rewrittenColumns.sorted(by: { $0.key < $1.key }) {
      func invalid(_ why: String) -> ReplicationError {
        ReplicationError(
          .invalidSelection, "column \"\(table.name).\(name)\" cannot be rewritten: \(why)", table: table.name,
          column: name)
      }
      guard table.module == nil else { throw invalid("it belongs to a virtual table") }
      guard let place = table.column(named: name) else { throw invalid("there is no such column to send") }
      guard !table.primaryKey.contains(place) else { throw invalid("it is part of the primary key") }
      let column = table.columns[place]
      guard value != .null || !column.isNotNull else { throw invalid("it is NOT NULL") }
      do {
        literals[place] = try Self.literal(of: value, in: column, isStrict: table.isStrict)
      } catch let error as SQLiteError where error.primaryCode == 19 {
        throw invalid(error.message)
      }
    }
    return literals
  }

  /// A value as a column stores it, as an SQL literal. SQLite itself is asked, in an empty database in memory.
  private static func literal(
    of value: ChangesetValue, in column: ColumnDefinition, isStrict: Bool
  ) throws -> String {
    let scratch = try SQLiteConnection(opening: ":memory:", as: .create)
    let plain = ColumnDefinition(name: "value", declaredType: column.declaredType)
    let table = TableDefinition(name: "rewritten", columns: [plain], isStrict: isStrict)
    try scratch.execute(table.createStatement(siblings: []))
    try scratch.execute("INSERT INTO rewritten VALUES (\(value.literal))")
    return try scratch.first(ofCached: "SELECT value FROM rewritten") { ChangesetValue($0, at: 0) }?.literal ?? "NULL"
  }
}

extension ChangesetValue {
  /// The value as an SQL literal that is read as the very same value.
  package var literal: String {
    // A NUL would end the statement.
    if case .text(let text) = self, text.utf8.contains(0) {
      return "CAST(\(ChangesetValue.blob(Array(text.utf8))) AS TEXT)"
    }
    return "\(self)"
  }
}
