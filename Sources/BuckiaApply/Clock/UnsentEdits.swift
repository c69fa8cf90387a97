import BuckiaByteStreams
import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// What was changed here and not been sent, for the policy `latest`; and what has arrived meanwhile and counts as earlier.
///
/// The others have that: the snapshot from which the next diff is made must have it, too, or that diff would not tell them otherwise.
package final class UnsentEdits {
  private let rows: [TableName: UnsentRows]
  private let connection: SQLiteConnection
  private static let overruled = "temp.buckia_overruled"

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
      rows[TableName(table.name)] = try UnsentRows(
        of: table, from: sections, isReversed: true, suffix: index, on: connection)
    }
    self.rows = rows
    self.connection = SQLiteConnection(sharing: connection)
    try connection.execute(
      """
      DROP TABLE IF EXISTS \(Self.overruled);
      CREATE TEMP TABLE buckia_overruled(
        place INTEGER PRIMARY KEY, table_name TEXT NOT NULL, key INTEGER NOT NULL, columns BLOB NOT NULL, "values" BLOB NOT NULL)
      """)
  }

  /// What was not sent of a table; nil for nothing.
  func rows(of table: TableName) -> UnsentRows? { rows[table] }

  /// Keeps the new values of a change that was left out, wholly or in part.
  func overrule(_ change: DecodedChange, of match: TableMatch, isKey: [Bool], _ bytes: RawSpan) throws {
    guard change.operation != .delete else { return }
    var columns = ChangesetWriter()
    var values = ChangesetWriter()
    let names = match.local.changesetColumnsSQL
    // The key stands first.
    let order = isKey.indices.filter { isKey[$0] } + isKey.indices.filter { !isKey[$0] && change.new($0).isDefined }
    for column in order {
      columns.append(text: names[match.columns[column]])
      values.append(isKey[column] ? change.row(column) : change.new(column), of: bytes)
    }
    try connection.run(
      cached: """
        INSERT INTO \(Self.overruled)(table_name, key, columns, "values") VALUES (?1, ?2, ?3, ?4)
        """, match.local.name,
      Int64(change.operation == .insert ? -1 : 1) * Int64(isKey.filter { $0 }.count), columns.bytes, values.bytes)
  }

  /// Writes the values of all changes that were left out into another database, which has what the others know.
  package func writeOverruled(to other: borrowing SQLiteConnection) throws {
    let query = try connection.prepare(
      "SELECT table_name, key, columns, \"values\" FROM \(Self.overruled) ORDER BY place")
    while try query.step() {
      let table = SQLText.identifier(query.text(at: 0) ?? "")
      let isInsertion = query.integer(at: 1) < 0
      let keyCount = Int(abs(query.integer(at: 1)))
      let columns = try ChangesetValue.record(query.blob(at: 2)).compactMap { value -> String? in
        if case .text(let name) = value { name } else { nil }
      }
      let values = try ChangesetValue.record(query.blob(at: 3))
      let parameters = columns.indices.map { "?\($0 + 1)" }
      let assignments = zip(columns, parameters).dropFirst(keyCount).map { "\($0) = \($1)" }
      let condition = zip(columns, parameters).prefix(keyCount).map { "\($0) = \($1)" }
      var statements: [String] = []
      if !assignments.isEmpty {
        statements.append(
          "UPDATE OR IGNORE \(table) SET \(assignments.joined(separator: ", ")) WHERE \(condition.joined(separator: " AND "))"
        )
      }
      if isInsertion {
        statements.append(
          "INSERT OR IGNORE INTO \(table)(\(columns.joined(separator: ", "))) VALUES (\(parameters.joined(separator: ", ")))"
        )
      }
      for sql in statements {
        let statement = try other.prepare(sql)
        for (index, value) in values.enumerated() { try statement.bind(value ?? .null, at: index) }
        try statement.run()
      }
    }
  }

  /// Removes the TEMP tables.
  package func end() throws {
    for index in 0..<rows.count { try connection.execute("DROP TABLE IF EXISTS temp.buckia_unsent_\(index)") }
    try connection.execute("DROP TABLE IF EXISTS \(Self.overruled)")
  }
}
