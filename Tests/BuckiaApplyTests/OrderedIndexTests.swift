@testable import BuckiaApply
import SQLiteConnections
import Testing

/// Indexes whose triggers read their own table, so that the result depends on the order of the rows.
@Suite struct OrderedIndexTests {
  private static let folders = "CREATE TABLE folder(id INTEGER PRIMARY KEY, parent INTEGER, name TEXT);"
  /// The author inserts the parent last.
  private static let edits = """
    INSERT INTO folder VALUES (1, 2, 'child'); INSERT INTO folder VALUES (2, NULL, 'old');
    UPDATE folder SET name = 'parent' WHERE id = 2
    """

  /// A full-text index that a trigger fills with the result of a SELECT.
  private static func index(_ content: String = "", filledBy selection: String) -> String {
    """
    CREATE VIRTUAL TABLE words USING fts5(name\(content));
    CREATE TRIGGER i AFTER INSERT ON folder BEGIN INSERT INTO words(rowid, name) \(selection); END;
    """
  }

  private static let withParent =
    "SELECT new.id, CASE WHEN new.parent ISNULL THEN new.name ELSE new.name || ' ' || (SELECT name FROM folder WHERE id = new.parent) END"
  private static let view = """
    CREATE VIEW shown AS
      SELECT c.id AS id, CASE WHEN p.name ISNULL THEN c.name ELSE c.name || ' ' || p.name END AS name
      FROM folder AS c LEFT JOIN folder AS p ON p.id = c.parent;
    """

  struct Example: CustomTestStringConvertible {
    let name: String
    let index: String
    /// Parts of the only warning; nil when there must be none.
    let warning: [String]?
    let answers: [String]?
    var testDescription: String { name }
  }

  static let examples = [
    Example(
      name: "the parent's name, kept nowhere else", index: index(filledBy: withParent),
      warning: ["fts5", "\"words\"", "\"folder\"", "may differ", "another order", "rebuild it"], answers: nil),
    Example(
      name: "the parent's name, over the table alone",
      index: index(", content=folder, content_rowid=id", filledBy: withParent),
      warning: ["\"words\"", "rebuilt from \"folder\""], answers: ["child: 1", "parent: 2"]),
    Example(
      name: "the parent's name, over a view that shows it",
      index: view + index(", content=shown, content_rowid=id", filledBy: withParent), warning: nil,
      answers: ["child: 1", "parent: 1 2"]),
    Example(
      name: "the row of a view that shows the parent's name, too",
      index: view + index(filledBy: "SELECT id, name FROM shown WHERE id = new.id"),
      warning: ["\"words\"", "may differ", "rebuild it"], answers: nil),
    Example(
      name: "its own row", index: index(filledBy: "SELECT id, name FROM folder WHERE folder.id = new.rowid"),
      warning: nil, answers: ["child: 1", "parent: 2"]),
    Example(
      name: "its own row in a view",
      index: "CREATE VIEW plain AS SELECT id, name FROM folder;"
        + index(filledBy: "SELECT id, name FROM plain WHERE id = new.id"), warning: nil,
      answers: ["child: 1", "parent: 2"]),
  ]

  @Test("An index is rebuilt or named if its triggers read other rows of their table", arguments: examples)
  func order(_ example: Example) throws {
    let author = try IndexScenario(base: Self.folders, tables: ["folder"]).author(Self.edits)
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute(Self.folders + example.index)
    let result = try IndexScenario.apply(author.changes, to: receiver)
    #expect(result.counts.inserted == 2)
    #expect(result.warnings.count == (example.warning == nil ? 0 : 1), "\(result.warnings)")
    for part in example.warning ?? [] {
      #expect(result.warnings.first?.description.contains(part) == true, "\(part): \(result.warnings)")
    }
    if let answers = example.answers { #expect(try IndexScenario.answers(of: receiver)["words"] == answers) }
    try IndexScenario.expectNothingLeft(on: receiver)
  }

  @Test("A single row has no order, so there is no warning")
  func singleRow() throws {
    let base = Self.folders + "INSERT INTO folder VALUES (2, NULL, 'parent');"
    let author = try IndexScenario(base: base, tables: ["folder"]).author("INSERT INTO folder VALUES (1, 2, 'child')")
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute(base + Self.index(filledBy: Self.withParent))
    #expect(try IndexScenario.apply(author.changes, to: receiver).warnings == [])
    #expect(try IndexScenario.answers(of: receiver)["words"] == ["child: 1", "parent: 1"])
  }

  @Test("A function that writes to an index runs for each row if it is registered")
  func functions() throws {
    let base = """
      CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT); CREATE VIRTUAL TABLE spans USING rtree(id, low, high);
      """
    let triggers = """
      CREATE TRIGGER i AFTER INSERT ON notes BEGIN
        DELETE FROM spans WHERE id = new.id; SELECT realign('spans', new.id);
      END;
      """
    let author = try IndexScenario(base: base, tables: ["notes"])
      .author("INSERT INTO notes VALUES (1, 'one'), (2, 'two'), (3, 'three')")
    let receiver = try SQLiteConnection(opening: ":memory:", as: .create)
    try receiver.execute("\(base) \(triggers)")
    var calls: [Int64] = []
    var functions = SQLiteFunctions(on: receiver)
    try functions.add("realign", argumentCount: 2, isDeterministic: false) {
      calls.append($0.integer(at: 1))
      return .null
    }
    let result = try IndexScenario.apply(author.changes, to: receiver)
    #expect(result.warnings == [])
    #expect(calls.sorted() == [1, 2, 3])
  }
}
