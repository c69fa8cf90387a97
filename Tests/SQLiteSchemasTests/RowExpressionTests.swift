import SQLiteSchemas
import Testing

/// Expressions that are known to depend on a row alone.
@Suite struct RowExpressionTests {
  private func isLocal(_ expression: String) -> Bool {
    SQLReferences.areRowAlone(in: expression, withoutParameters: "buckia_")
  }

  @Test(arguments: [
    "owner = :me", "a > 1 AND (b < 2 OR NOT (c IS NULL))", "kind IN ('a', 'b')", "x BETWEEN 1 AND 2",
    "length(name) > 3",
    "t.owner = 7", "\"select\" = 1", "name = 'SELECT 1'", "coalesce(a, b) = x'00'", "CASE WHEN a THEN b ELSE c END",
    "a = 1 -- SELECT", "CAST (a AS TEXT) = '1'", "name COLLATE NOCASE = 'a'", "[in] = 1", "a NOT IN (1, 2)",
  ])
  func `these depend on a row alone`(expression: String) { #expect(isLocal(expression)) }

  @Test(arguments: [
    "id IN (SELECT id FROM chosen)", "EXISTS (SELECT 1)", "id IN chosen", "id NOT IN \"chosen\"", "id in main.chosen",
    "made < CURRENT_TIMESTAMP", "made < datetime('now')", "random() > 0", "mine(name)", "\"lower\"(name) = 'a'",
    "[f](1)",
    "name LIKE 'a%'", "t MATCH 'word'", "name REGEXP 'a'", "(VALUES (1))", "count(*) OVER () > 1", "id = :buckia_low",
    "id = @BUCKIA_high", "a = 'open", "id IN/**/chosen",
  ])
  func `these may depend on more`(expression: String) { #expect(!isLocal(expression)) }
}
