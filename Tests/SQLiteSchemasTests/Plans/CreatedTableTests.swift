@testable import SQLiteSchemas
import SQLiteConnections
import SQLiteSchemas
import Testing

/// Tables created from definitions behave like the author's.
@Suite struct CreatedTableTests {
  static let tables: [String] = [
    "CREATE TABLE t(id INTEGER PRIMARY KEY)",
    "CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, a)",
    "CREATE TABLE t(a ANY, id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, b TEXT) STRICT",
    "CREATE TABLE t(id INTEGER PRIMARY KEY DESC, a)",
    "CREATE TABLE t(k TEXT COLLATE NOCASE PRIMARY KEY, v COLLATE RTRIM)",
    "CREATE TABLE t(a, b, c, d, PRIMARY KEY (c, a)) WITHOUT ROWID",
    "CREATE TABLE t(a INT, b TEXT, PRIMARY KEY (b, a)) STRICT, WITHOUT ROWID",
    "CREATE TABLE t(a, b, c, UNIQUE (a), UNIQUE (c, b))",
    "CREATE TABLE t(id INTEGER PRIMARY KEY, u UNIQUE, n NOT NULL DEFAULT 5, s DEFAULT 'it''s', x DEFAULT x'00ff')",
    "CREATE TABLE t(id INTEGER PRIMARY KEY, d DEFAULT CURRENT_TIMESTAMP, w DEFAULT word, r REAL DEFAULT -1.5e3)",
    "CREATE TABLE t(id INTEGER PRIMARY KEY, a VARCHAR(20), b DECIMAL(10, 5), c UNSIGNED BIG INT, d \"strange type\")",
    "CREATE TABLE t(\"a b\" PRIMARY KEY, \"q\"\"q\", \"ключ\", \"select\")",
    "CREATE TABLE t(a, b)",
    """
    CREATE TABLE p(id INTEGER PRIMARY KEY, k TEXT UNIQUE); CREATE TABLE t(id INTEGER PRIMARY KEY, p REFERENCES p,
      k TEXT REFERENCES p(k) ON UPDATE CASCADE ON DELETE SET NULL, self REFERENCES t ON DELETE CASCADE)
    """,
    """
    CREATE TABLE c(a, b, FOREIGN KEY (a, b) REFERENCES p(x, y) ON DELETE RESTRICT ON UPDATE SET DEFAULT);
    CREATE TABLE p(x, y, PRIMARY KEY (x, y))
    """,
  ]

  @Test("A table created from its definition has that definition", arguments: tables)
  func roundTrip(_ sql: String) throws {
    let definitions = try SchemaPlanTests.definitions(sql)
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    let siblings = Set(definitions.map { TableName($0.name) })
    for table in definitions { try connection.execute(table.createStatement(siblings: siblings)) }
    let schema = try SchemaReader(connection)
    let made = try schema.entries.map { try schema.definition(of: $0) }
    #expect(made == definitions)
    #expect(try connection.integer("SELECT count(*) FROM pragma_foreign_key_check") == 0)
  }

  @Test("Keys, constraints and defaults are enforced")
  func constraints() throws {
    let definitions = try SchemaPlanTests.definitions(
      "CREATE TABLE p(id INTEGER PRIMARY KEY AUTOINCREMENT, u TEXT COLLATE NOCASE UNIQUE, n NOT NULL DEFAULT 5)")
    let child = try SchemaPlanTests.definitions(
      "CREATE TABLE c(id INTEGER PRIMARY KEY, p INT REFERENCES p ON DELETE CASCADE) STRICT")
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    for table in child + definitions { try connection.execute(table.createStatement(siblings: ["p", "c"])) }
    try connection.execute("PRAGMA foreign_keys = ON; INSERT INTO p(u) VALUES ('a')")
    #expect(try connection.integer("SELECT n FROM p") == 5)
    #expect(try connection.integer("SELECT seq FROM sqlite_sequence WHERE name = 'p'") == 1)
    for refused in [
      "INSERT INTO p(u) VALUES ('A')", "INSERT INTO p(u, n) VALUES ('b', NULL)", "INSERT INTO c VALUES (1, 99)",
      "INSERT INTO c VALUES (1, 'x')",
    ] {
      #expect(throws: SQLiteError.self, "\(refused)") { try connection.execute(refused) }
    }
    try connection.execute("INSERT INTO c VALUES (1, 1); DELETE FROM p")
    #expect(try connection.integer("SELECT count(*) FROM c") == 0)
  }

  @Test("A foreign key to a table that is not created along with it is left out")
  func missingParents() throws {
    let table = try SchemaPlanTests.definitions("CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES users)")[0]
    #expect(!table.createStatement(siblings: ["c"]).contains("FOREIGN"))
    #expect(table.createStatement(siblings: ["c", "USERS"]).contains("FOREIGN"))
  }
}
