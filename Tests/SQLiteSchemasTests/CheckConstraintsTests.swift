import SQLiteSchemas
import Testing

@Suite struct CheckConstraintsTests {
  static let examples: [(sql: String, count: Int)] = [
    ("", 0), ("CREATE TABLE t(a)", 0), ("CREATE TABLE t(a CHECK (a > 1))", 1),
    ("CREATE TABLE t(a check(a>1), CHECK(b))", 2),
    ("CREATE TABLE t(a CONSTRAINT c CHECK (a IN (1, (2))), b)", 1), ("CREATE TABLE t(\"check\" TEXT, `check` INT)", 0),
    ("CREATE TABLE t(a DEFAULT 'CHECK (1)')", 0), ("CREATE TABLE t(a /* CHECK (1) */ -- CHECK (2)\n)", 0),
    ("CREATE TABLE t(a CHECK (a <> ')'))", 1), ("CREATE TABLE t(a CHECK /* why */ (a <> 'it''s ('))", 1),
    ("CREATE TABLE t(a CHECK (", 1), ("CHECK", 0), ("CHECK (", 1), ("'", 0), ("/*", 0), ("--", 0), ("'a''", 0),
    ("((((", 0),
  ]

  @Test("All CHECK clauses are found, and nothing else", arguments: examples)
  func count(_ example: (sql: String, count: Int)) {
    #expect(CreateTableParts.checks(in: example.sql).count == example.count)
  }

  @Test("White space, comments and the case of keywords make no difference, quoted text does")
  func comparison() {
    func checks(_ sql: String) -> [[String]] { CreateTableParts.checks(in: sql) }
    let plain = checks("CREATE TABLE t(a CHECK (a > 1 AND b <> 'X'))")
    #expect(plain == checks("create table T (a check( A>1 /* so */ and b<>'X' ) -- end\n, c)"))
    #expect(plain != checks("CREATE TABLE t(a CHECK (a > 1 AND b <> 'x'))"))
    #expect(plain != checks("CREATE TABLE t(a CHECK (a > 2 AND b <> 'X'))"))
    #expect(plain != checks("CREATE TABLE t(a CHECK (a > 1) CHECK (b <> 'X'))"))
  }

  @Test("A constraint is found by its name")
  func named() {
    let sql = "CREATE TABLE t(a CONSTRAINT n NOT NULL CONSTRAINT \"c c\" CHECK (a > (1)), CONSTRAINT d CHECK (a < 9))"
    #expect(CreateTableParts.check(named: "c c", in: sql) == "a > (1)")
    #expect(CreateTableParts.check(named: "d", in: sql) == "a < 9")
    #expect(CreateTableParts.check(named: "n", in: sql) == nil)
    #expect(CreateTableParts.check(named: "d", in: "CREATE TABLE t(a CONSTRAINT d CHECK (a") == nil)
  }

  @Test("Any text can be parsed")
  func hostile() {
    let whole = "CREATE TABLE t(a CHECK (a <> 'it''s') /* c */ -- d\n, \"e\"\"f\" CHECK (`g` > [h]))"
    for end in whole.indices {
      _ = CreateTableParts.checks(in: String(whole[..<end]))
      _ = CreateTableParts.checks(in: String(whole[end...]))
    }
    #expect(CreateTableParts.checks(in: "CHECK (" + String(repeating: "(", count: 10_000)).count == 1)
  }
}
