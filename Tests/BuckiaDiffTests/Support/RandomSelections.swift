import BuckiaDiff
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas
import TestSupport

/// Random selections of rows and columns for the tables of a database, and a copy of it that contains nothing else.
struct RandomSelections {
  /// The selection for each table.
  private(set) var chosen: [TableName: RowSelection] = [:]
  /// The copy, made with DELETE and ALTER TABLE.
  let filtered: String
  /// The selections as text, for the report of a failure.
  private(set) var story = ""

  /// - Parameters:
  ///   - database: The database.
  ///   - filtered: The path of the copy.
  init(of database: String, copiedTo filtered: String, in folder: TemporaryFolder, _ random: inout SeededGenerator)
    throws
  {
    self.filtered = try folder.copy(database, to: filtered)
    let connection = try SQLiteConnection(opening: self.filtered, as: .readWrite)
    try connection.execute("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF")
    for table in try TestDatabases.tables(of: database) where !random.oneIn(4) {
      let names = try TestDatabases.texts("SELECT name FROM pragma_table_info(?1)", binding: [table], on: connection)
      var selection = RowSelection()
      if random.oneIn(2) {
        let column = "\"\(random.pick(names))\""
        let parameter = Self.parameter(&random)
        let condition = Self.condition(on: column, &random)
        try connection.execute(
          "DELETE FROM \"\(table)\" WHERE NOT coalesce((\(condition.replacing(":value", with: parameter.sql))\n), 0)")
        selection.condition = condition
        selection.parameters = condition.contains(":value") ? ["value": parameter.value] : [:]
      }
      for name in names where random.oneIn(4) {
        // SQLite does not drop columns that a key, a constraint or a generated column needs.
        do { try connection.execute("ALTER TABLE \"\(table)\" DROP COLUMN \"\(name)\"") } catch { continue }
        selection.omittedColumns.append(name)
      }
      chosen[TableName(table)] = selection
      story +=
        "\(table): where \(selection.condition ?? "all") \(selection.parameters), without \(selection.omittedColumns)\n"
    }
  }

  private static func parameter(_ random: inout SeededGenerator) -> (sql: String, value: ChangesetValue) {
    let choices: [(String, ChangesetValue)] = [
      ("1", 1), ("2", 2), ("2.5", 2.5), ("'a'", "a"), ("'b'", "b"), ("x'61'", .blob([0x61])), ("NULL", .null),
    ]
    return choices[Int.random(in: 0..<choices.count, using: &random)]
  }

  private static func condition(on column: String, _ random: inout SeededGenerator) -> String {
    random.pick([
      "\(column) = :value", "\(column) IS NOT :value", "\(column) > :value OR \(column) IS NULL", column, "1 -- all",
      "length(\(column)) % 2", "typeof(\(column)) IN ('integer', 'text')", "0", "\(column) IN (SELECT :value)",
    ])
  }
}
