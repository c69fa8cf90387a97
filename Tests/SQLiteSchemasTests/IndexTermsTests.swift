import SQLiteSchemas
import Testing

@Suite("The terms of an index")
struct IndexTermsTests {
  @Test(
    "A CREATE INDEX is parsed into the text of its terms and its condition",
    arguments: [
      ("CREATE INDEX i ON t(a)", ["a"], nil),
      ("CREATE UNIQUE INDEX i ON t(a, \"b,c\" COLLATE NOCASE DESC)", ["a", "\"b,c\" COLLATE NOCASE"], nil),
      (
        "CREATE UNIQUE INDEX \"on\" ON [t(]( lower(a || ',') ASC , coalesce(b, (c)) ) WHERE a > (1) AND b IN (1,2)",
        ["lower(a || ',')", "coalesce(b, (c))"], "a > (1) AND b IN (1,2)"
      ),
      ("CREATE INDEX i ON t(\"asc\")", ["\"asc\""], nil),
    ] as [(String, [String], String?)])
  func terms(_ sql: String, _ terms: [String], _ condition: String?) throws {
    let found = try #require(IndexTerms(sql))
    #expect(found.terms == terms)
    #expect(found.condition == condition)
  }

  @Test(
    "Other text is not an index",
    arguments: ["", "CREATE INDEX i ON t", "CREATE INDEX i ON t(a", "CREATE INDEX i ON t(a) x"])
  func others(_ sql: String) { #expect(IndexTerms(sql) == nil) }
}
