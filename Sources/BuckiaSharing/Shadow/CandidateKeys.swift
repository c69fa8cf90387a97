import BuckiaApply
import BuckiaDiff
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Lists the keys of the rows of a table that may differ from its shadow, in a TEMP table.
final class CandidateKeys {
  let list: KeyList
  private let connection: SQLiteConnection
  private let names: [String]

  /// The name of the list for a shadow.
  static func name(for shadow: Int64) -> String { "\(SQLiteConnection.temporaryPrefix)candidates_\(shadow)" }

  /// Makes an empty list.
  ///
  /// - Throws: `SQLiteError`.
  init(for shadow: Int64, _ index: KeyIndex, on connection: borrowing SQLiteConnection) throws {
    list = KeyList(name: Self.name(for: shadow), columnCount: index.columns.count)
    self.connection = SQLiteConnection(sharing: connection)
    names = index.columns.map { SQLText.identifier($0) }
    // What is one key in the table has to be one here.
    let columns = zip(list.columns, index.collations).map { "\($0) COLLATE \(SQLText.identifier($1)) NOT NULL" }
    try Self.remove(for: shadow, on: connection)
    try connection.execute(
      """
      CREATE TABLE \(list.sql)(\(columns.joined(separator: ", ")), PRIMARY KEY (\(list.columns.joined(separator: ", ")))) \
      WITHOUT ROWID
      """)
  }

  /// Removes the list for a shadow.
  ///
  /// - Throws: `SQLiteError`.
  static func remove(for shadow: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.execute("DROP TABLE IF EXISTS temp.\(name(for: shadow))")
  }

  /// Adds the keys of rows by their rowids. Rows with NULL in the key are not added.
  ///
  /// - Parameter rowID: The name by which the rowid can be asked for.
  /// - Throws: `SQLiteError`.
  func add(_ rows: KeyIntervals, by rowID: String, of table: TableName) throws {
    let adding = try connection.prepare("\(insertion(of: table)) WHERE \(rowID) BETWEEN ?1 AND ?2")
    for range in rows.ranges {
      try adding.bind(range.lowerBound, at: 0)
      try adding.bind(range.upperBound, at: 1)
      try adding.run()
    }
  }

  /// Adds the keys of a table that are in spans.
  ///
  /// - Throws: `SQLiteError`; `ChangesetError` for a span whose keys are none.
  func add(_ spans: [KeySpan], of table: TableName) throws {
    for span in spans {
      var terms: [String] = []
      var bounds: [[UInt8]] = []
      for (bound, comparison) in [(span.lower, ">="), (span.upper, "<")] {
        guard let bound else { continue }
        let parameters = names.indices.map { "?\(bounds.count * names.count + $0 + 1)" }.joined(separator: ", ")
        terms.append("(\(names.joined(separator: ", "))) \(comparison) (\(parameters))")
        bounds.append(bound)
      }
      let condition = terms.isEmpty ? "" : " WHERE \(terms.joined(separator: " AND "))"
      try run(insertion(of: table) + condition, bounds)
    }
  }

  /// Adds a key.
  ///
  /// - Parameter key: Its values, in the format of changesets.
  /// - Throws: `SQLiteError`; `ChangesetError` where it is none.
  func add(_ key: [UInt8]) throws {
    try run(
      "INSERT OR IGNORE INTO \(list.sql) VALUES (\(names.indices.map { "?\($0 + 1)" }.joined(separator: ", ")))", [key])
  }

  private func insertion(of table: TableName) -> String {
    "INSERT OR IGNORE INTO \(list.sql) SELECT \(names.joined(separator: ", ")) FROM main.\(table.quoted)"
  }

  private func run(_ sql: String, _ keys: [[UInt8]]) throws {
    let prepared = try connection.cached(sql)
    defer { prepared.statement.clearBindings() }
    for (index, key) in keys.enumerated() {
      let bytes = key.span.bytes
      var position = 0
      for column in names.indices {
        try prepared.statement.bind(
          ValueSlice(reading: bytes, at: &position), in: bytes, at: index * names.count + column)
      }
    }
    try prepared.statement.run()
  }
}
