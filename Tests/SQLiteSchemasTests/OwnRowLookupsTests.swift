import SQLiteSchemas
import Testing

@Suite struct OwnRowLookupsTests {
  private static let notes = OwnRowLookups(
    of: ["notes", "shown"], keys: [[["id", "rowid", "_rowid_", "oid"]], [["shelf"], ["place"]]])

  static let ownRows = [
    "SELECT new.id, new.title",
    "INSERT INTO words(rowid, title) SELECT id, title FROM notes WHERE id = new.id",
    "INSERT OR REPLACE INTO words SELECT id, title FROM main.\"Notes\" AS n WHERE (n.ROWID == NEW.id) AND title NOT NULL",
    "INSERT INTO words SELECT * FROM shown WHERE new.rowid IS rowid LIMIT 1",
    "INSERT INTO words VALUES (new.id, (SELECT title FROM notes WHERE id = new.id), (SELECT 1 FROM notes n WHERE n.id = new.id))",
    "INSERT INTO words SELECT a.title || b.title FROM notes a JOIN notes b ON a.id = new.id AND b.id = old.id",
    "SELECT title FROM notes WHERE place = new.place AND shelf = new.shelf",
    "SELECT t.name FROM tags t JOIN notes ON notes.id = new.id WHERE t.note = notes.id",
    "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM notes WHERE id = new.id)",
    "DELETE FROM notes",
    "SELECT name FROM tags WHERE name = 'notes'",
  ]

  @Test("A trigger that looks up its own row reads no other", arguments: ownRows)
  func own(_ sql: String) {
    #expect(!Self.notes.readsOthers(sql))
  }

  static let otherRows = [
    "SELECT count(*) FROM notes",
    "SELECT title FROM notes WHERE id = new.parent",
    "SELECT title FROM notes WHERE parent = new.id",
    "SELECT title FROM notes WHERE id = new.id OR parent = new.id",
    "SELECT title FROM notes WHERE NOT id = new.id",
    "SELECT title FROM notes WHERE id IS NOT new.id",
    "SELECT title FROM notes WHERE id = new.id + 1",
    "SELECT title FROM notes WHERE 1 + new.id = id",
    "SELECT id = new.id FROM notes",
    "SELECT title FROM notes WHERE new.id = old.id",
    "SELECT title FROM notes WHERE shelf = new.shelf",
    "SELECT a.title || b.title FROM notes a, notes b WHERE a.id = new.id AND b.id = a.parent",
    "SELECT n.title FROM notes n LEFT JOIN tags t ON n.id = new.id",
    "SELECT n.title FROM tags t JOIN notes n ON n.tag = t.id WHERE t.id = new.id",
    "UPDATE words SET title = (SELECT group_concat(title) FROM notes) WHERE rowid = new.id",
    "DELETE FROM words WHERE rowid IN notes",
    "UPDATE words SET title = n.title FROM notes n WHERE words.rowid = new.id",
    "SELECT title FROM shown",
  ]

  @Test(
    "A view that shows one row at a time is distinguished from others",
    arguments: [
      ("CREATE VIEW shown AS SELECT id, title FROM notes", true),
      ("CREATE VIEW v AS SELECT n.id, t.name FROM notes n JOIN tags t ON t.note = n.id", true),
      ("CREATE VIEW v AS SELECT id FROM tags", true), ("CREATE VIEW v AS SELECT count, id FROM main.notes", true),
      ("CREATE VIEW v AS SELECT c.id, p.title FROM notes c LEFT JOIN notes p ON p.id = c.parent", false),
      ("CREATE VIEW v AS SELECT id, (SELECT title FROM shown WHERE id = n.parent) FROM notes n", false),
      ("CREATE VIEW v AS SELECT max(id) AS id, group_concat(title) FROM notes", false),
      ("CREATE VIEW v AS SELECT id, row_number() OVER (ORDER BY title) FROM notes", false),
      ("CREATE VIEW v AS SELECT shelf AS id FROM notes GROUP BY shelf", false),
    ])
  func views(_ sql: String, isSingle: Bool) {
    #expect(Self.notes.showsSingleRows(sql) == isSingle)
  }

  @Test("A trigger that may read other rows of its table is detected", arguments: otherRows)
  func others(_ sql: String) {
    #expect(Self.notes.readsOthers(sql))
  }
}
