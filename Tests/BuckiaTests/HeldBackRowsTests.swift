import Buckia
import BuckiaFormat
import SQLiteChangesets
import TestSupport
import Testing

/// Private rows that a contact's change would bring into a share, directly or through other rows.
@Suite struct HeldBackRowsTests {
  private static let schema = """
    CREATE TABLE album(id TEXT PRIMARY KEY, title, topic);
    CREATE TABLE photo(id TEXT PRIMARY KEY, album TEXT DEFAULT 'shared' REFERENCES album(id) ON DELETE SET DEFAULT, title);
    CREATE TABLE face(id TEXT PRIMARY KEY, photo TEXT REFERENCES photo(id), title);
    CREATE TABLE tag(album TEXT REFERENCES album(id), topic);
    CREATE TABLE mark(id TEXT, photo TEXT REFERENCES photo(id), PRIMARY KEY (id, photo));
    """
  private static let albums = ShareScope(name: "albums") {
    SharedTable("album").where("topic = 7")
    SharedTable("photo").children(of: "album")
    SharedTable("face").children(of: "photo")
  }
  private static let tagged = ShareScope(name: "tagged") {
    SharedTable("album").where("id IN (SELECT album FROM tag WHERE topic = 7)")
    SharedTable("tag").where("topic = 7")
  }
  private static let photos = ShareScope(name: "photos") {
    SharedTable("photo").where("album IS NULL")
    SharedTable("tag")
    SharedTable("mark")
    SharedTable("album").where("false")
  }

  private let folder: TemporaryFolder
  private let anna: HostileContact
  private let ben: HostileContact
  private let mallory: HostileContact

  init() throws {
    folder = try TemporaryFolder()
    anna = try HostileContact(
      "anna", in: folder,
      Self.schema + """
        INSERT INTO album VALUES ('shared', 'shared', 7), ('own', 'private', 1);
        INSERT INTO photo VALUES ('p', 'own', 'private');
        INSERT INTO face VALUES ('f', 'p', 'private');
        """)
    ben = try HostileContact("ben", in: folder, Self.schema)
    mallory = try HostileContact("mallory", in: folder, Self.schema)
    for other in [ben, mallory] { try anna.meet(other) }
  }

  /// Anna's private rows that `other` has after she has shared with them.
  private func leaks(_ scope: ShareScope, to other: HostileContact) throws -> [String] {
    try anna.share(scope, with: other)
    try other.receive(.takeIncoming)
    return try other.rows(
      """
      SELECT 'album ' || id FROM album WHERE title = 'private' UNION ALL SELECT 'photo ' || id FROM photo WHERE title = 'private'
      UNION ALL SELECT 'face ' || id FROM face WHERE title = 'private' ORDER BY 1
      """)
  }

  private func send(_ changes: ChangesetWriter, in scope: ShareScope, from sender: HostileContact) throws {
    try sender.share(scope, with: anna, changes: changes) { $0.annotations = nil }
    #expect(try anna.receive(.takeIncoming).map(\.state) == [.applied])
  }

  private static let movedPhoto = ChangesetWriter(
    "photo", key: [1, 0, 0], [(.update, old: [.text("p"), .text("own"), nil], new: [nil, .text("shared"), nil])])

  @Test func `a private row that a contact moves to a shared parent stays private, and so do its children`() throws {
    try anna.share(Self.albums, with: mallory)
    try mallory.receive()
    try send(Self.movedPhoto, in: Self.albums, from: mallory)
    #expect(try leaks(Self.albums, to: mallory) == [])
    #expect(try leaks(Self.albums, to: ben) == [])
    // Rows that were inserted here are sent.
    try anna.run("INSERT INTO photo VALUES ('q', 'shared', 'private'); INSERT INTO face VALUES ('g', 'q', 'private')")
    #expect(try leaks(Self.albums, to: mallory) == ["face g", "photo q"])
  }

  @Test func `a third person's change does not bring a private row to a recipient`() throws {
    try anna.share(Self.albums, with: ben)
    try anna.share(Self.tagged, with: mallory)
    try mallory.receive()
    try send(Self.movedPhoto, in: Self.albums, from: mallory)
    #expect(try leaks(Self.albums, to: ben) == [])
  }

  private static let replacedPhoto = ChangesetWriter(
    "photo", key: [1, 0, 0], [(.insert, old: [], new: [.text("p"), .text("shared"), .text("other")])])

  @Test(arguments: [movedPhoto, replacedPhoto])
  func `a raw changeset does not bring a private row to a recipient`(changes: ChangesetWriter) throws {
    try anna.share(Self.albums, with: ben)
    try folder.write(changes.bytes, to: "raw.changeset")
    let report = try DatabaseManager(anna.path, home: anna.home).processInboundChanges(
      [folder.file("raw.changeset")], options: ApplyOptions(conflicts: .takeIncoming))
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(try anna.rows("SELECT album FROM photo") == ["shared"])
    #expect(try leaks(Self.albums, to: ben) == [])
  }

  @Test func `a row that meets a condition only through a contact's row is not sent`() throws {
    try anna.share(Self.tagged, with: mallory)
    try mallory.receive()
    try send(
      ChangesetWriter("tag", key: [1, 0, 0], [(.insert, old: [], new: [.null, .text("own"), .integer(7)])]),
      in: Self.tagged, from: mallory)
    #expect(try leaks(Self.tagged, to: mallory) == [])
    try anna.run("INSERT INTO album VALUES ('a', 'private', 1); INSERT INTO tag VALUES ('a', 7)")
    #expect(try leaks(Self.tagged, to: mallory) == ["album a"])
  }

  @Test(arguments: [
    ChangesetWriter("tag", key: [1, 0, 0], [(.insert, old: [], new: [.null, .text("own"), .integer(3)])]),
    ChangesetWriter("mark", key: [1, 1], [(.insert, old: [], new: [.null, .text("p")])]),
  ])
  func `a contact's row that is identified by its content brings them no private row`(changes: ChangesetWriter) throws {
    try anna.share(Self.photos, with: mallory)
    try mallory.receive()
    try send(changes, in: Self.photos, from: mallory)
    #expect(try leaks(Self.photos, to: mallory) == [])
    // A row of the same table that was inserted here brings one.
    try anna.run("INSERT INTO album VALUES ('a', 'private', 1); INSERT INTO tag VALUES ('a', 3)")
    #expect(try leaks(Self.photos, to: mallory) == ["album a"])
  }

  @Test func `a private row that a foreign-key action changes because of a contact's deletion is not sent`() throws {
    try anna.run("INSERT INTO album VALUES ('known', 'known', 7)")
    try anna.share(Self.albums, with: mallory)
    try mallory.receive()
    try anna.run("INSERT INTO photo VALUES ('r', 'known', 'private'); UPDATE album SET topic = 1 WHERE id = 'known'")
    try send(
      ChangesetWriter(
        "album", key: [1, 0, 0], [(.delete, old: [.text("known"), .text("known"), .integer(7)], new: [])]),
      in: Self.albums, from: mallory)
    #expect(try leaks(Self.albums, to: mallory) == [])
  }

  @Test func `a row of which a contact knows only some columns is not sent`() throws {
    try anna.run("INSERT INTO album VALUES ('guessed', 'private', 1)")
    let narrow = try HostileContact("narrow", in: folder, "CREATE TABLE album(id TEXT PRIMARY KEY, topic)")
    try anna.meet(narrow)
    let scope = ShareScope(name: "theirs") { SharedTable("album") }
    try narrow.run("INSERT INTO album VALUES ('guessed', 1)")
    try narrow.share(scope, with: anna)
    try anna.receive()
    try anna.share(Self.albums, with: narrow)
    try narrow.run("UPDATE album SET topic = 7")
    try narrow.share(scope, with: anna)
    try anna.receive(.takeIncoming)
    #expect(try anna.rows("SELECT topic FROM album WHERE id = 'guessed'") == ["7"])
    let report = try anna.share(Self.albums, with: narrow)
    #expect(report.leftOut.filter { $0.reason == .heldBack }.flatMap { $0.rows.map(\.key) } == [[.text("guessed")]])
  }

  @Test func `a contact's changes of rows that they have reach other recipients`() throws {
    let everything = ShareScope(name: "everything") {
      SharedTable("album")
      SharedTable("photo")
    }
    try anna.share(everything, with: ben)
    try ben.receive()
    try ben.run("INSERT INTO photo VALUES ('b', 'own', 'of ben'); UPDATE photo SET album = 'shared' WHERE id = 'p'")
    try ben.share(everything, with: anna)
    try anna.receive()
    let report = try anna.share(Self.albums, with: mallory)
    #expect(report.leftOut.isEmpty)
    try mallory.receive()
    #expect(try mallory.rows("SELECT id FROM photo ORDER BY id") == ["p"])
    try ben.run("UPDATE photo SET album = 'shared' WHERE id = 'b'")
    try ben.share(everything, with: anna)
    try anna.receive()
    try anna.share(Self.albums, with: mallory)
    try mallory.receive()
    #expect(try mallory.rows("SELECT id FROM photo ORDER BY id") == ["b", "p"])
  }
}
