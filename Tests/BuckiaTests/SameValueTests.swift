import Buckia
import TestSupport
import Testing

/// Two people add a row with the same UNIQUE value, and other rows that refer to it.
@Suite struct SameValueTests {
  private static let schema = """
    CREATE TABLE folder(id INTEGER PRIMARY KEY, name TEXT UNIQUE);
    CREATE TABLE note(id INTEGER PRIMARY KEY, folder INTEGER REFERENCES folder ON DELETE SET NULL, title);
    CREATE TABLE label(note INTEGER REFERENCES note, folder INTEGER REFERENCES folder, PRIMARY KEY (note, folder));
    """
  private static let everything = ShareScope(name: "everything") {
    SharedTable("folder")
    SharedTable("note")
    SharedTable("label")
  }

  @Test func `a folder that two people have added under latest stays at both, with the notes of both`() throws {
    let folder = try TemporaryFolder()
    let anna = try HostileContact(
      "anna", in: folder,
      Self.schema
        + "INSERT INTO folder VALUES (1, 'work'); INSERT INTO note VALUES (1, 1, 'of anna'); INSERT INTO label VALUES (1, 1)"
    )
    let ben = try HostileContact(
      "ben", in: folder,
      Self.schema
        + """
        INSERT INTO folder VALUES (1, 'play'), (2, 'work'); INSERT INTO note VALUES (1, 2, 'of ben');
        INSERT INTO label VALUES (1, 1), (1, 2)
        """)
    try anna.meet(ben)
    for person in [anna, ben] { try DatabaseManager(person.path).keepClocks() }
    for _ in 0..<5 {
      try anna.share(Self.everything, with: ben)
      try ben.share(Self.everything, with: anna)
      try anna.receive(.latest)
      try ben.receive(.latest)
    }
    for person in [anna, ben] {
      #expect(try person.rows("SELECT * FROM pragma_foreign_key_check") == [])
      #expect(try person.rows("SELECT name FROM folder ORDER BY name") == ["play", "work"])
      #expect(
        try person.rows("SELECT title, name FROM note JOIN folder ON folder.id = folder ORDER BY title")
          == ["of anna|work", "of ben|work"])
      #expect(
        try person.rows(
          "SELECT title, name FROM label JOIN note ON note.id = note JOIN folder ON folder.id = label.folder ORDER BY 1, 2"
        )
          == ["of anna|work", "of ben|play", "of ben|work"])
    }
  }
}
