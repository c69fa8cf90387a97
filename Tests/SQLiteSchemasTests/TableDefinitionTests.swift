import SQLiteConnections
import SQLiteSchemas
import TestSupport
import Testing

@Suite struct TableDefinitionTests {
  /// Declared types, and the types as written; empty for the name of the affinity.
  static let types: [(declared: String, safe: String)] = [
    ("", ""), ("INTEGER", "INTEGER"), ("varchar(20)", "varchar(20)"), ("DECIMAL(10,5)", "DECIMAL(10,5)"),
    ("DECIMAL( 10 , 5 )", "DECIMAL( 10 , 5 )"), ("UNSIGNED BIG INT", "UNSIGNED BIG INT"), ("тип", "тип"),
    ("a_1", "a_1"),
    ("TEXT NOT NULL", "TEXT"), ("INT CHECK (1)", "INTEGER"), ("INT PRIMARY KEY", "INTEGER"), ("INT, b", "INTEGER"),
    ("INT) --", "INTEGER"), ("TEXT COLLATE x", "TEXT"), ("TEXT DEFAULT 1", "TEXT"), ("INT REFERENCES p", "INTEGER"),
    ("x GENERATED ALWAYS AS (1)", "NUMERIC"), ("\"INT\"", "INTEGER"), ("[REAL]", "REAL"), ("T('x')", "NUMERIC"),
    ("T(1,2,3)", "NUMERIC"), ("T()", "NUMERIC"), ("T(1e3)", "NUMERIC"), ("T(1)(2)", "NUMERIC"), (")", "NUMERIC"),
    ("1INT", "INTEGER"), ("a;b", "NUMERIC"), ("a--b", "NUMERIC"), ("a/*b", "NUMERIC"), ("a\nb", "NUMERIC"),
    ("BLOB\u{0}", "BLOB"), (String(repeating: "x", count: 257), "NUMERIC"), ("T(9999999999999999999)", "NUMERIC"),
  ]

  @Test("A declared type is kept only if it is a plain type name", arguments: types)
  func safeType(_ example: (declared: String, safe: String)) throws {
    let column = ColumnDefinition(name: "c", declaredType: example.declared)
    #expect(column.safeType == example.safe)
    #expect(Affinity(declaredType: column.safeType) == column.affinity)
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    let table = TableDefinition(name: "t", columns: [column, ColumnDefinition(name: "d")])
    try connection.execute(table.createStatement(siblings: []))
    let shape = "SELECT count(*) FROM pragma_table_info('t') WHERE NOT \"notnull\" AND dflt_value IS NULL AND NOT pk"
    #expect(try connection.integer(shape) == 2)
    #expect(try connection.text("SELECT type FROM pragma_table_info('t')") == example.safe)
    #expect(try connection.integer("SELECT count(*) FROM sqlite_schema") == 1)
  }

  /// https://sqlite.org/lang_keywords.html
  static let keywords = """
    ABORT ACTION ADD AFTER ALL ALTER ALWAYS ANALYZE AND AS ASC ATTACH AUTOINCREMENT BEFORE BEGIN BETWEEN BY CASCADE CASE
    CAST CHECK COLLATE COLUMN COMMIT CONFLICT CONSTRAINT CREATE CROSS CURRENT CURRENT_DATE CURRENT_TIME
    CURRENT_TIMESTAMP DATABASE DEFAULT DEFERRABLE DEFERRED DELETE DESC DETACH DISTINCT DO DROP EACH ELSE END ESCAPE
    EXCEPT EXCLUDE EXCLUSIVE EXISTS EXPLAIN FAIL FILTER FIRST FOLLOWING FOR FOREIGN FROM FULL GENERATED GLOB GROUP
    GROUPS HAVING IF IGNORE IMMEDIATE IN INDEX INDEXED INITIALLY INNER INSERT INSTEAD INTERSECT INTO IS ISNULL JOIN KEY
    LAST LEFT LIKE LIMIT MATCH MATERIALIZED NATURAL NO NOT NOTHING NOTNULL NULL NULLS OF OFFSET ON OR ORDER OTHERS OUTER
    OVER PARTITION PLAN PRAGMA PRECEDING PRIMARY QUERY RAISE RANGE RECURSIVE REFERENCES REGEXP REINDEX RELEASE RENAME
    REPLACE RESTRICT RETURNING RIGHT ROLLBACK ROW ROWS SAVEPOINT SELECT SET TABLE TEMP TEMPORARY THEN TIES TO
    TRANSACTION TRIGGER UNBOUNDED UNION UNIQUE UPDATE USING VACUUM VALUES VIEW VIRTUAL WHEN WHERE WINDOW WITH WITHOUT
    """.split(whereSeparator: { $0 == " " || $0 == "\n" }).map(String.init)

  @Test("A table whose column type is a quoted keyword can be created")
  func keywordTypes() throws {
    #expect(Self.keywords.count == 147)
    for keyword in Self.keywords {
      for type in [keyword, "x \(keyword)", "\(keyword.lowercased()) INT"] {
        let connection = try SQLiteConnection(opening: ":memory:", as: .create)
        let table = TableDefinition(
          name: "t", columns: [ColumnDefinition(name: "c", declaredType: type), ColumnDefinition(name: "d")])
        do {
          try connection.execute(table.createStatement(siblings: []))
          let shape = """
            SELECT count(*) FROM pragma_table_xinfo('t')
            WHERE NOT "notnull" AND dflt_value IS NULL AND NOT pk AND hidden = 0
            """
          #expect(try connection.integer(shape) == 2, "\(type)")
        } catch {
          Issue.record("\(type): \(error)")
        }
      }
    }
  }

  @Test("A random combination of SQL fragments as a type changes nothing but the type")
  func randomTypes() throws {
    let pieces = [
      "INT", "TEXT", " ", "(", ")", "1", ",", "'", "\"", "NOT", "NULL", "PRIMARY KEY", "AS", "--", "/*", "DEFAULT", "-",
      "x", ";", "é", "\t", "GENERATED", "HIDDEN", "WITHOUT", "ROWID", "STRICT", "UNIQUE", "[", "]", "`", "+",
    ]
    var random = SeededGenerator(seed: 1)
    func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &random) }
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    for _ in 0..<1_500 {
      let type = (0...below(5)).map { _ in pieces[below(pieces.count)] }.joined(separator: below(2) == 0 ? " " : "")
      let table = TableDefinition(
        name: "t", columns: [ColumnDefinition(name: "c", declaredType: type), ColumnDefinition(name: "d")])
      do {
        try connection.execute(table.createStatement(siblings: []))
      } catch {
        Issue.record("\(type.debugDescription): \(error)")
        continue
      }
      let shape = """
        SELECT count(*) FROM pragma_table_xinfo('t')
        WHERE NOT "notnull" AND dflt_value IS NULL AND NOT pk AND hidden = 0 AND name IN ('c', 'd')
        """
      #expect(try connection.integer(shape) == 2, "\(type.debugDescription)")
      try connection.execute("DROP TABLE t")
    }
  }

  @Test("A table that must not be created gives the reason")
  func refusals() {
    func table(_ change: (inout TableDefinition) -> Void) -> String? {
      var table = TableDefinition(
        name: "t", columns: [ColumnDefinition(name: "a", declaredType: "INT")], primaryKey: [0])
      change(&table)
      return table.creationRefusal
    }
    #expect(table { _ in } == nil)
    #expect(table { $0.name = "sqlite_x" }?.contains("sqlite_") == true)
    #expect(table { $0.columns = [] }?.contains("no columns") == true)
    #expect(table { $0.columns.append(ColumnDefinition(name: "A")) }?.contains("two columns") == true)
    #expect(
      table { $0.columns += [ColumnDefinition(name: "é"), ColumnDefinition(name: "e\u{301}")] } == nil)
    #expect(table { $0.columns[0].name = "RowID" }?.contains("rowid") == true)
    #expect(table { $0.columns[0].name = "" }?.contains("empty") == true)
    #expect(table { $0.columns[0].name = "a\u{0}" }?.contains("NUL") == true)
    #expect(table { $0.columns[0].collation = "german" }?.contains("german") == true)
    #expect(table { $0.columns[0].collation = "nocase" } == nil)
    #expect(
      table {
        $0.isWithoutRowID = true; $0.primaryKey = []
      }?.contains("WITHOUT ROWID") == true)
    #expect(table { $0.isStrict = true } == nil)
    #expect(
      table {
        $0.isStrict = true; $0.columns[0].declaredType = "VARCHAR(3)"
      }?.contains("STRICT") == true)
    #expect(
      table { $0.columns += (0..<2000).map { ColumnDefinition(name: "c\($0)") } }?.contains("2000") == true)
  }

  @Test("Removing a column adjusts the indexes of the other columns")
  func removal() {
    var table = TableDefinition(
      name: "t", columns: ["x", "k", "u", "v"].map { ColumnDefinition(name: $0) }, primaryKey: [1],
      unique: [[2, 3], [0]],
      foreignKeys: [ForeignKey(columns: ["X"], parent: "p"), ForeignKey(columns: ["v"], parent: "p")])
    table.removeColumn(named: "k")
    #expect(table.columns.count == 4)
    table.removeColumn(named: "X")
    #expect(table.columns.map(\.name) == ["k", "u", "v"])
    #expect(table.primaryKey == [0])
    #expect(table.unique == [[1, 2]])
    #expect(table.foreignKeys.map(\.columns) == [["v"]])
    #expect(table.keyFlags == [1, 0, 0])
    table.removeColumn(named: "none")
    #expect(table.columns.count == 3)
  }

  @Test("ANY stores values unchanged in a STRICT table only")
  func anyAffinity() {
    var table = TableDefinition(name: "t", columns: [ColumnDefinition(name: "a", declaredType: "any")])
    #expect(table.affinity(at: 0) == .numeric)
    table.isStrict = true
    #expect(table.affinity(at: 0) == .blob)
  }
}
