import Buckia
import BuckiaFormat
import BuckiaApply
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas
import Testing
import TestSupport

/// R-trees and full-text tables in real diff files, from one person's database to another's.
@Suite struct VirtualTableShippingTests {
  private static let schema = """
    CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT);
    CREATE VIRTUAL TABLE words USING fts5(title, body UNINDEXED);
    CREATE VIRTUAL TABLE places USING rtree(id, x0, x1, +name);
    INSERT INTO words(rowid, title, body) VALUES (1, 'red fox', 'x'), (2, 'night', x'00');
    INSERT INTO places VALUES (1, 0.1, 0.2, 'kitchen'), (2, 5, 6, NULL);
    """

  private static func sound(_ exchange: Exchange) throws -> Bool {
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    try connection.execute("INSERT INTO words(words) VALUES ('integrity-check')")
    return try connection.text("SELECT rtreecheck('main', 'places')") == "ok"
  }

  @Test("Changes of R-trees and full-text tables arrive, and searches find them")
  func shipped() throws {
    let exchange = try Exchange(Self.schema)
    let report = try exchange.send(
      """
      UPDATE words SET body = 'y' WHERE rowid = 1; INSERT INTO words(title) VALUES ('new bell'); DELETE FROM places WHERE id = 2;
      UPDATE places SET x0 = 0.05, name = 7 WHERE id = 1; INSERT INTO places VALUES (9, 1, 1, 'harbour');
      CREATE VIRTUAL TABLE more USING fts5(a, tokenize = 'porter ascii'); INSERT INTO more VALUES ('bells ringing');
      """)
    #expect(report.tables.map(\.name) == ["words", "places", "more"])
    #expect(report.skipped == [])
    #expect(report.comparedByRows == [])
    let applied = try exchange.apply()
    #expect(applied.diffs.map(\.state) == [.applied])
    #expect(applied.diffs.first?.warnings == [])
    #expect(applied.diffs.first?.schemaChanges == ["create virtual table more (fts5, 1 column)"])
    #expect(try exchange.rows("SELECT rowid FROM words('bell')") == ["3"])
    #expect(try exchange.rows("SELECT typeof(body) FROM words ORDER BY rowid").count == 3)
    #expect(try exchange.rows("SELECT id FROM places WHERE x1 < 3 ORDER BY id") == ["1", "9"])
    #expect(try exchange.rows("SELECT name FROM places WHERE id = 1") == ["7"])
    #expect(try exchange.rows("SELECT rowid FROM more('ring')") == ["1"])
    #expect(try Self.sound(exchange))
  }

  @Test("Many files are applied in one call, with a virtual table that the first one creates")
  func manyFiles() throws {
    let exchange = try Exchange(Self.schema)
    let made = "CREATE VIRTUAL TABLE more USING fts5(a);"
    for number in 0..<12 {
      try exchange.send(
        """
        \(made) INSERT INTO more(rowid, a) VALUES (\(number), 'word \(number)');
        INSERT INTO words(rowid, title) VALUES (\(100 + number), 'word \(number)');
        INSERT INTO places VALUES (\(100 + number), \(number), \(number + 1), 'p');
        INSERT INTO notes VALUES (\(number), 'n'); UPDATE words SET title = 'fox \(number)' WHERE rowid = 1;
        """)
    }
    let report = try exchange.apply()
    #expect(report.diffs.allSatisfy { $0.state == .applied })
    // The first UPDATE of the row is applied. Each later one meets another row than its author saw.
    #expect(report.diffs.map(\.conflicts).reduce(0, +) == 11)
    #expect(try exchange.rows("SELECT count(*) FROM more('word')") == ["12"])
    #expect(try exchange.rows("SELECT count(*) FROM words('word')") == ["12"])
    #expect(try exchange.rows("SELECT count(*) FROM places") == ["14"])
    #expect(try Self.sound(exchange))
  }

  @Test("A file that is refused after others leaves no changes of its own")
  func refusedBehindOthers() throws {
    let exchange = try Exchange(Self.schema)
    try exchange.send("INSERT INTO words(rowid, title) VALUES (50, 'first')")
    try exchange.send(
      """
      CREATE VIRTUAL TABLE more USING fts5(a); INSERT INTO more VALUES ('x'); UPDATE words SET title = 'z' WHERE rowid = 1;
      INSERT INTO places VALUES (50, 1, 2, 'x');
      """)
    try TestDatabases.run("UPDATE places SET name = 'mine' WHERE id = 1", on: exchange.mine)
    try TestDatabases.run("INSERT INTO places VALUES (50, 3, 4, 'mine')", on: exchange.mine)
    let report = try exchange.apply(ApplyOptions(conflicts: .abort))
    #expect(report.diffs.map(\.state) == [.applied, .rejected])
    #expect(try exchange.rows("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'more%'") == ["0"])
    #expect(try exchange.rows("SELECT rowid FROM words('first')") == ["50"])
    #expect(try exchange.rows("SELECT count(*) FROM words('z')") == ["0"])
    #expect(try Self.sound(exchange))
  }

  @Test("Incoming rows of a full-text table that triggers keep are left out with a warning")
  func keptHere() throws {
    let exchange = try Exchange(Self.schema)
    try exchange.send("INSERT INTO words(rowid, title) VALUES (3, 'astray'); INSERT INTO notes VALUES (7, 'bell')")
    try TestDatabases.run(
      "CREATE TRIGGER i AFTER INSERT ON notes BEGIN INSERT INTO words(rowid, title) VALUES (new.id, new.title); END",
      on: exchange.mine)
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(report.diffs.first?.warnings.map(\.code) == [.rowsKeptByTriggers])
    #expect(try exchange.rows("SELECT rowid FROM words ORDER BY rowid") == ["1", "2", "7"])
  }

  // MARK: Hostile definitions

  private static func words(_ name: String, _ columns: [String] = ["a", "b"], _ index: FullTextIndex = FullTextIndex())
    -> TableDefinition
  {
    TableDefinition(name: name, columns: columns.map { ColumnDefinition(name: $0) }, module: .fullText(index))
  }

  struct Hostile: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let table: TableDefinition
    let reason: String
  }

  static let hostile = [
    Hostile(
      testDescription: "a name that makes tables like ours", table: words("buckia"),
      reason: "names that begin with buckia_"),
    Hostile(
      testDescription: "a name that makes tables like SQLite's", table: words("SQLite"),
      reason: "names that begin with sqlite_"),
    Hostile(
      testDescription: "a column that is there already", table: words("new", ["New", "b"]), reason: "one of that name"),
    Hostile(testDescription: "the column of ranks", table: words("new", ["a", "RANK"]), reason: "one of that name"),
    Hostile(testDescription: "a module's name", table: words("fts5vocab"), reason: "would hide a module"),
    Hostile(
      testDescription: "options that are unknown", table: words("new", ["a", "b"], FullTextIndex(options: nil)),
      reason: "its tokenizer or an option"),
    Hostile(
      testDescription: "another table's insides", table: words("places_node"), reason: "insides of the virtual table"),
    Hostile(testDescription: "an ordinary table here", table: words("notes"), reason: "an ordinary one here"),
    Hostile(testDescription: "another module here", table: words("places"), reason: "of rtree here"),
    Hostile(
      testDescription: "another column", table: words("words", ["title", "bodies"]), reason: "no column \"bodies\""),
  ]

  @Test(
    "A file with a forbidden or different virtual table is refused, and nothing changes",
    arguments: hostile)
  func refused(_ item: Hostile) throws {
    let exchange = try Exchange(Self.schema)
    let before = try exchange.everythingButOurs()
    let changeset = insertion(into: item.table.name, keyFlags: item.table.keyFlags, values: [50, 51, 52])
    try exchange.plant(changeset, definitions: [item.table])
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.rejected])
    #expect(report.diffs.first?.reason?.contains(item.reason) == true, "\(report.diffs.first?.reason ?? "")")
    #expect(try exchange.everythingButOurs() == before)
    #expect(try Self.sound(exchange))
  }
}
