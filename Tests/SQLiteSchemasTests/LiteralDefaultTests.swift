import SQLiteConnections
import SQLiteSchemas
import TestSupport
import Testing

@Suite struct LiteralDefaultTests {
  /// Literals, and their canonical spelling.
  static let accepted: [(source: String, sql: String)] = [
    ("0", "0"), ("5", "5"), ("-5", "-5"), ("+5", "5"), ("- 5", "-5"), (" 7 ", "7"), ("(7)", "7"), ("((- 7))", "-7"),
    ("1.5", "1.5"), (".5", ".5"), ("5.", "5."), ("1e10", "1E10"), ("1.e2", "1.E2"), ("-.5E-3", "-.5E-3"),
    ("1e+3", "1E+3"),
    ("9e999", "9E999"), ("-9e999", "-9E999"),
    ("9223372036854775807", "9223372036854775807"), ("-9223372036854775808", "-9223372036854775808"),
    ("9223372036854775808", "9223372036854775808"), ("00012", "00012"), ("-0.0", "-0.0"), ("-0", "-0"),
    ("0x10", "0X10"), ("0XfF", "0XFF"), ("-0x10", "-0X10"), ("0xffffffffffffffff", "0XFFFFFFFFFFFFFFFF"),
    ("0x8000000000000000", "0X8000000000000000"), ("-0x7fffffffffffffff", "-0X7FFFFFFFFFFFFFFF"),
    ("NULL", "NULL"), ("null", "NULL"), ("true", "TRUE"), ("False", "FALSE"), ("(NULL)", "NULL"),
    ("''", "''"), ("'a'", "'a'"), ("'it''s'", "'it''s'"), ("''''", "''''"), ("'\"'", "'\"'"), ("'--'", "'--'"),
    ("'a;b'", "'a;b'"), ("'/* x'", "'/* x'"), ("'line\nbreak'", "'line\nbreak'"), ("'ё 値 👩‍👩‍👧'", "'ё 値 👩‍👩‍👧'"),
    ("'e\u{301}'", "'e\u{301}'"), ("'\u{301}'", "'\u{301}'"), ("('(')", "'('"),
    ("x''", "X''"), ("X'00fF'", "X'00FF'"), ("x'6162'", "X'6162'"),
    ("CURRENT_TIME", "CURRENT_TIME"), ("current_date", "CURRENT_DATE"), ("Current_Timestamp", "CURRENT_TIMESTAMP"),
    ("(CURRENT_TIMESTAMP)", "CURRENT_TIMESTAMP"),
  ]

  @Test("A literal is accepted, and its canonical spelling has the same value in SQLite", arguments: accepted)
  func accept(_ example: (source: String, sql: String)) throws {
    let literal = try #require(LiteralDefault(parsing: example.source))
    #expect(literal.sql == example.sql)
    #expect(LiteralDefault(parsing: literal.sql) == literal)
    #expect(literal.isNull == (literal.sql == "NULL"))
    #expect(literal.isTimeDependent == literal.sql.hasPrefix("CURRENT_"))
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute(
      "CREATE TABLE t(a INTEGER PRIMARY KEY, theirs DEFAULT \(example.source), ours DEFAULT \(literal.sql))")
    try connection.execute("INSERT INTO t(a) VALUES (1)")
    if literal.isTimeDependent {
      #expect(throws: SQLiteError.self) {
        try connection.execute("ALTER TABLE t ADD COLUMN later DEFAULT \(literal.sql)")
      }
      return
    }
    let equal = "SELECT typeof(theirs) = typeof(ours) AND quote(theirs) = quote(ours) FROM t"
    #expect(try connection.integer(equal) == 1)
    // ALTER TABLE accepts constants only. The value that existing rows get may differ: 5. becomes 5 in a column without a
    // type. The engine asks SQLite for it.
    try connection.execute("ALTER TABLE t ADD COLUMN later DEFAULT \(literal.sql)")
  }

  /// Expressions, several literals, fragments, and literals that SQLite refuses.
  static let refused: [String] = [
    "", " ", "()", "(", ")", "(5", "5)", "abc", "\"abc\"", "`abc`", "[abc]", "1 2", "1,2", "1+1", "(1)+(1)", "--1",
    "-+1", "- -1",
    "-", "+", ".", "-.", "e5", "1e", "1e+", "1.2.3", "1_000", "0x", "0xg", "0x10000000000000000", "1x", "٣", "１",
    "-0x8000000000000000", "'", "'a", "a'", "'a'b'", "'a' 'b'", "'a' || 'b'", "'a');DROP TABLE t;--", "'nul\u{0}'",
    "x'", "x'0'", "x'0g'", "X '00'", "x'00'x'00'", "y'00'",
    "random()", "(random())", "datetime('now')", "(SELECT 1)", "CURRENT_TIME()", "CURRENT", "-NULL", "-TRUE", "-'a'",
    "NOT 1", "CAST(1 AS TEXT)", "1 COLLATE NOCASE", "5 NOT NULL", "5 CHECK (1)", "5 REFERENCES t", "5) , (6", "5 -- x",
    "/**/5", "5/**/", "5;", "inf", "nan", "Infinity", "\u{FEFF}5", "5\u{a0}", "NULL NULL",
  ]

  @Test("Anything but a single literal is refused", arguments: refused)
  func refuse(_ source: String) { #expect(LiteralDefault(parsing: source) == nil) }

  @Test("A literal that is longer than the limit is refused")
  func length() {
    let fits = "'" + String(repeating: "a", count: LiteralDefault.byteLimit - 2) + "'"
    #expect(LiteralDefault(parsing: fits) != nil)
    #expect(LiteralDefault(parsing: fits + " ") == nil)
    #expect(LiteralDefault(parsing: String(repeating: "(", count: 5_000)) == nil)
    #expect(
      LiteralDefault(parsing: String(repeating: "(", count: 500) + "1" + String(repeating: ")", count: 500)) != nil)
  }

  @Test("A random combination of SQL fragments is refused, or is a constant in SQLite")
  func random() throws {
    let pieces = [
      "1", "0", "9", ".", "e", "E", "+", "-", "x", "0x", "f", "'", "''", "a", "(", ")", " ", "\n", "\t", "NULL", "TRUE",
      "\"", "--", "/*", ",", ";", "CURRENT_TIME", "é", "\u{301}", "\r\n",
    ]
    var random = SeededGenerator(seed: 2)
    func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &random) }
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    var accepted = 0
    for _ in 0..<4_000 {
      let source = (0...below(5)).map { _ in pieces[below(pieces.count)] }.joined()
      guard let literal = LiteralDefault(parsing: source) else { continue }
      accepted += 1
      try connection.execute("SAVEPOINT s")
      // Both spellings have the same value in SQLite.
      do {
        try connection.execute("CREATE TABLE d(k, ours DEFAULT \(literal.sql), theirs DEFAULT \(source))")
        try connection.execute("INSERT INTO d(k) VALUES (1)")
        let isEqual = try connection.integer("SELECT quote(ours) = quote(theirs) FROM d") == 1
        #expect(isEqual || literal.isTimeDependent, "\(source.debugDescription)")
      } catch {
        Issue.record("\(source.debugDescription) became \(literal.sql): \(error)")
      }
      try connection.execute("ROLLBACK TO s; RELEASE s")
    }
    #expect(accepted > 50)
  }
}
