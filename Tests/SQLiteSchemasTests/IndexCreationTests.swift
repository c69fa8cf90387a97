import SQLiteConnections
import SQLiteSchemas
import Testing

@Suite struct IndexCreationTests {
  static let statements = [
    "CREATE INDEX plain ON t(a)",
    "CREATE INDEX \"we ird \"\" one\" ON t ( a COLLATE NOCASE DESC,  b )  -- by name\n",
    "CREATE INDEX [in brackets] on \"t\"(lower(a), b /* both */) WHERE b > 3 AND a <> ';'",
    "create index if not exists main.Qualified on t(b)",
    "CREATE INDEX\n  'quoted' ON t(a || 'x')",
    "CREATE INDEX \"ünï\" ON t(a)",
  ]

  @Test("An index that is created again has exactly the same definition, in main", arguments: statements)
  func same(_ statement: String) throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("CREATE TABLE t(a, b); \(statement); CREATE TEMP TABLE t(a, b)")
    let kept = "SELECT quote(name) || quote(tbl_name) || quote(sql) FROM main.sqlite_schema WHERE type = 'index'"
    let before = try #require(try connection.text(kept))
    let name = try #require(try connection.text("SELECT name FROM main.sqlite_schema WHERE type = 'index'"))
    let sql = try #require(try connection.text("SELECT sql FROM main.sqlite_schema WHERE type = 'index'"))
    // A semicolon in text is part of the text.
    let creation = try #require(IndexCreation(sql, of: name))
    _ = try connection.prepare(creation.statement(named: "another \" name"))
    try connection.execute("DROP INDEX \(SQLText.identifier(name)); \(creation.statement)")
    #expect(try connection.text(kept) == before)
    #expect(try connection.integer("SELECT count(*) FROM temp.sqlite_schema WHERE type = 'index'") == 0)
  }

  @Test(
    "Statements not written by SQLite itself are left alone",
    arguments: [
      "CREATE INDEX  i ON t(a)", "create INDEX i ON t(a)", "CREATE UNIQUE INDEX i ON t(a)",
      "CREATE INDEX main.i ON t(a)",
      "CREATE INDEX i ON t(a); DROP TABLE t", "CREATE INDEX j ON t(a)", "CREATE INDEX IF NOT EXISTS i ON t(a)",
      "CREATE INDEX i ON t(?1)", "CREATE INDEX i", "",
    ])
  func foreign(_ sql: String) {
    #expect(IndexCreation(sql, of: "i") == nil)
  }
}
