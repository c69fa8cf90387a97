import SQLiteSchemas
import TestSupport
import Testing

/// No parser of this module traps, whatever text it reads.
@Suite struct RandomSQLTests {
  private static let statements = [
    "CREATE TABLE \"a b\"(id INTEGER PRIMARY KEY, v TEXT DEFAULT 'it''s' CHECK (v <> ')') UNIQUE ON CONFLICT IGNORE)",
    "CREATE TEMP TRIGGER IF NOT EXISTS t AFTER UPDATE OF a, [b] ON main.t FOR EACH ROW WHEN (new.a IN (SELECT 1)) "
      + "BEGIN INSERT OR REPLACE INTO f(a) VALUES (x'00', lower(old.a)); DELETE FROM f WHERE a = 1.5e-3; END",
    "CREATE VIRTUAL TABLE f USING fts5(a, b UNINDEXED, content='', tokenize = \"porter unicode61 tokenchars '-'\", "
      + "prefix='2 3', detail=none)",
    "CREATE VIRTUAL TABLE IF NOT EXISTS main.r USING rtree(id, x0, x1, +name TEXT /* note */ -- end\n)",
  ]

  /// Parses a text with every parser.
  ///
  /// - Returns: How many of the parsers accept it.
  private static func parse(_ sql: String) -> Int {
    var accepted = CreateTableParts.checks(in: sql).count
    if CreateTableParts.hasConflictClause(in: sql) { accepted += 1 }
    if SQLReferences(of: sql).raises { accepted += 1 }
    if let trigger = TriggerDefinition(parsing: sql) { accepted += trigger.statements.count }
    if let table = VirtualTableDefinition(parsing: sql) {
      for columns in [table.arguments, ["a", "b"], ["id", "x0", "x1", "name"]] {
        accepted += VirtualModule(table, columns: columns) == nil ? 0 : 1
      }
      accepted += table.arguments.count { !VirtualModule.auxiliaryType(in: $0).isEmpty }
    }
    let column = ColumnDefinition(
      name: sql, declaredType: sql, isNotNull: true, defaultValue: LiteralDefault(parsing: sql), collation: sql)
    let table = TableDefinition(name: sql, columns: [column])
    if table.creationRefusal == nil { accepted += table.createStatement(siblings: []).utf8.count > 0 ? 1 : 0 }
    return accepted
  }

  @Test("Statements with random edits can be parsed", arguments: Seeds.shards)
  func randomEdits(shard: Int) throws {
    let fragments = [
      "'", "\"", "[", "]", "`", "(", ")", ",", ".", ";", "--", "/*", "*/", "=", "+", "x'", "BEGIN", "END", "\0",
    ]
    var accepted = 0
    try Seeds.tryEach(600, shard: shard) { seed in
      var random = SeededGenerator(seed: seed)
      var bytes = Array(random.pick(Self.statements).utf8)
      for _ in 0..<Int.random(in: 0...4, using: &random) {
        let start = Int.random(in: 0...bytes.count, using: &random)
        let end = random.oneIn(3) ? Int.random(in: start...bytes.count, using: &random) : start
        let edit =
          random.oneIn(4) ? [UInt8.random(in: 0...255, using: &random)] : Array(random.pick(fragments).utf8)
        bytes.replaceSubrange(start..<end, with: edit)
      }
      accepted += Self.parse(String(decoding: bytes, as: UTF8.self))
    }
    // Otherwise the edits leave nothing to parse.
    #expect(accepted > 100)
  }

  @Test(
    "Long and deeply nested text can be parsed",
    arguments: ["(", ")", "((,", "CHECK(", "'", "a.", "-- \n", "/*", "BEGIN ", "WHEN(", "x'0", "+a,", "FROM a,"])
  func repeated(_ fragment: String) {
    let text = String(repeating: fragment, count: 20_000)
    #expect(Self.parse(text) <= 1)
    #expect(TriggerDefinition(parsing: "CREATE TRIGGER t AFTER INSERT ON a WHEN \(text)") == nil)
    #expect(VirtualTableDefinition(parsing: "CREATE VIRTUAL TABLE t USING fts5(\(text)")?.module == "fts5")
  }
}
