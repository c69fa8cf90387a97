import BuckiaApply
import BuckiaDiff
import SQLiteConnections
import Testing
import ReplicationTestSupport
import TestSupport

/// Rows older than an added column have its default, which SQLite derives from the literal as written: in a TEXT column
/// `1e3` is the text '1e3', and `1E3` the text '1E3'.
@Suite struct AddedColumnDefaultTests {
  static let types = [
    "", "TEXT", "VARCHAR(10)", "CLOB", "INTEGER", "INT", "BIGINT", "REAL", "DOUBLE", "FLOAT", "NUMERIC",
    "DECIMAL(10,5)", "DATE", "BOOLEAN", "BLOB", "ANY", "STRING", "\"odd type\"",
  ]
  static let defaults = [
    "NULL", "5", "+5", "-5", "- 5", "007", "5.0", "5.", ".5", "-1.50", "0.0", "-0.0", "1e3", "1E3", "1e+3", "1.0e3",
    "-1e3", "- 1e3", "+1e3", "(1e3)", "((-1e3))", "1.5e-7", "1e400", "-9e999", "0x1f", "0X1F", "-0x10",
    "0xffffffffffffffff", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "123456789012345678901234567890", "TRUE", "false", "word", "\"two words\"", "\"true\"", "''", "'5'", "' 5 '",
    "'1e3'", "'0x10'", "'it''s'", "'Ω'", "x''", "x'3165'", "X'00FF'",
  ]
  private static let tables = [
    "CREATE TABLE keyed(id INTEGER PRIMARY KEY, v)", "CREATE TABLE other(id TEXT PRIMARY KEY, v)",
    "CREATE TABLE bare(id PRIMARY KEY, v) WITHOUT ROWID", "CREATE TABLE keyless(id, v)",
  ]

  /// Fills tables, adds columns, and changes some of the rows.
  ///
  /// - Returns: The database before and after the row changes.
  private func databases(
    _ tables: [String], type: String, encoding: String = "UTF-8", in folder: TemporaryFolder
  ) throws -> (older: String, newer: String) {
    let older = folder.file("older")
    let names = ["keyed", "other", "bare", "keyless"].filter { name in tables.contains { $0.contains(" \(name)(") } }
    do {
      let connection = try SQLiteConnection(opening: older, as: .create)
      try connection.execute("PRAGMA encoding = '\(encoding)'")
      for table in tables { try connection.execute(table) }
      for name in names {
        try connection.execute("INSERT INTO \(name) VALUES (1, 1), (2, 2), (3, 3), (4, 4)")
        for (number, value) in Self.defaults.enumerated() {
          try connection.execute("SAVEPOINT added; ALTER TABLE \(name) ADD COLUMN c\(number) \(type) DEFAULT \(value)")
          // A STRICT table can have a default of another type than its column's, and refuses to store it.
          do {
            try connection.execute("SAVEPOINT written; UPDATE \(name) SET v = v; ROLLBACK TO written")
          } catch {
            guard tables.contains(where: { $0.hasSuffix("STRICT") }) else { throw error }
            try connection.execute("ROLLBACK TO added")
          }
          try connection.execute("RELEASE added")
        }
      }
    }
    let newer = try folder.copy("older", to: "newer")
    let changes = names.map {
      "UPDATE \($0) SET v = 9 WHERE v = 1; DELETE FROM \($0) WHERE v = 2; INSERT INTO \($0)(id, v) VALUES (5, 5)"
    }
    try TestDatabases.run(changes.joined(separator: ";"), on: newer)
    return (older, newer)
  }

  private func compare(_ older: String, _ newer: String, by method: DiffMethod) throws -> DatabaseDifference {
    try DatabaseComparison.run(older: older, newer: newer, options: DiffOptions(method: method))
  }

  private func expectSame(_ older: String, _ newer: String, _ wanted: DiffMethod, in folder: TemporaryFolder) throws {
    let rows = try compare(older, newer, by: .rows)
    let pages = try compare(older, newer, by: .pages)
    #expect(pages.tables.allSatisfy { $0.method == wanted }, "\(pages.fallbacks.map(\.reason.description))")
    #expect(try rows.changes() == pages.changes())
    let target = try folder.copy("older", to: "target")
    let result = try Shipping.apply(
      pages, to: target, settings: ApplySettings(policies: .abort, time: 2_000_000_000_000))
    #expect(result.counts.conflicts == 0 && result.counts.unchanged == 0)
    #expect(try compare(target, newer, by: .rows).isEmpty)
  }

  @Test("Pages and rows have the same defaults, and the difference applies to the older database", arguments: types)
  func everyDefault(type: String) throws {
    let folder = try TemporaryFolder()
    let (older, newer) = try databases(Self.tables, type: type, in: folder)
    try expectSame(older, newer, .pages, in: folder)
  }

  @Test("In a UTF-16 database, too", arguments: ["", "TEXT", "REAL"])
  func utf16(type: String) throws {
    let folder = try TemporaryFolder()
    let (older, newer) = try databases(Self.tables, type: type, encoding: "UTF-16le", in: folder)
    try expectSame(older, newer, .rows, in: folder)
  }

  @Test("In a STRICT table, too", arguments: ["INT", "INTEGER", "REAL", "TEXT", "BLOB", "ANY"])
  func strict(type: String) throws {
    let folder = try TemporaryFolder()
    let table = "CREATE TABLE keyed(id INTEGER PRIMARY KEY, v INT) STRICT"
    let (older, newer) = try databases([table], type: type, in: folder)
    let added = "SELECT count(*) FROM pragma_table_info('keyed') WHERE name LIKE 'c%'"
    #expect(try TestDatabases.rows(added, on: older) != ["0"])
    try expectSame(older, newer, .pages, in: folder)
  }
}
