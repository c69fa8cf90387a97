import BuckiaBytes
import SQLiteConnections
import SQLiteSchemas
import Testing

@Suite struct NameTests {
  static let names = [
    "plain", "with space", "quo\"te", "\"", "\"\"", "it's", "semi;colon", "--", "/*", "[x]", "`", "ключ", "新しい 表",
    "e\u{301}", "é",
    "\u{301}", "👩‍👩‍👧", "select", "a\nb", "a.b", "%", "\\", "\u{200f}rtl",
  ]

  @Test("SQLite reads a quoted name as the same bytes", arguments: names)
  func identifier(_ name: String) throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("CREATE TABLE \(SQLText.identifier(name))(\(SQLText.identifier(name)) INTEGER)")
    let table = try #require(try connection.text("SELECT name FROM sqlite_schema"))
    #expect(Array(table.utf8) == Array(name.utf8))
    let column = try #require(try connection.text("SELECT name FROM pragma_table_info(?1)", binding: [name]))
    #expect(Array(column.utf8) == Array(name.utf8))
  }

  @Test("SQLite reads quoted text as the same bytes", arguments: names)
  func literal(_ text: String) throws {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    let back = try #require(try connection.text("SELECT \(SQLText.literal(text))"))
    #expect(Array(back.utf8) == Array(text.utf8))
  }

  @Test("Two names match if they are the same to SQLite", arguments: names)
  func matching(_ first: String) throws {
    for second in Self.names + Self.names.map({ $0.uppercased() }) {
      let connection = try SQLiteConnection(opening: ":memory:", as: .create)
      try connection.execute("CREATE TABLE \(SQLText.identifier(first))(a)")
      let isTaken = !(connection.accepts("CREATE TABLE \(SQLText.identifier(second))(a)"))
      #expect(ASCIIName.matches(first, second) == isTaken, "\(first) and \(second)")
      #expect((TableName(first) == TableName(second)) == isTaken)
      if isTaken { #expect(TableName(first).hashValue == TableName(second).hashValue) }
    }
  }

  @Test(
    "Reserved names are refused in any case",
    arguments: ["sqlite_master", "SQLite_stat1", "buckia_ledger", "BUCKIA_x", "pragma_table_info", "", "a\u{0}b"])
  func refusal(_ name: String) { #expect(TableName(name).refusal != nil) }

  @Test(
    "Names that are similar to reserved ones are allowed",
    arguments: ["sqlite", "buckiax", "my_sqlite_table", "ſqlite_x"])
  func allowed(_ name: String) { #expect(TableName(name).refusal == nil) }
}

extension SQLiteConnection {
  /// True if a statement runs without an error.
  borrowing func accepts(_ sql: String) -> Bool {
    do {
      try execute(sql)
      return true
    } catch {
      return false
    }
  }
}
