import Buckia
import Foundation
import SQLiteConnections
import TestSupport
import Testing

/// Recorded changes, their undo and redo, and what diffs and clocks make of them.
@Suite struct ChangeRecorderTests {
  private struct Stop: Error {}

  private static let schema = """
    CREATE TABLE album(id INTEGER PRIMARY KEY, title TEXT UNIQUE, count INTEGER DEFAULT 0);
    CREATE TABLE photo(
      id TEXT PRIMARY KEY, album INTEGER REFERENCES album(id) ON DELETE CASCADE, title TEXT, size REAL);
    CREATE TABLE tag(photo TEXT, name TEXT, PRIMARY KEY (photo, name)) WITHOUT ROWID;
    CREATE TABLE log(text TEXT);
    CREATE TABLE derived(id INTEGER PRIMARY KEY, text TEXT, upper TEXT AS (upper(text)));
    CREATE TRIGGER counts AFTER INSERT ON photo BEGIN UPDATE album SET count = count + 1 WHERE id = NEW.album; END;
    """

  private let folder: TemporaryFolder
  private let path: String
  private let database: DatabaseManager

  init() throws {
    folder = try TemporaryFolder()
    path = try TestDatabases.run(Self.schema, on: folder.file("db.sqlite"))
    database = DatabaseManager(path, home: BuckiaHome(path: folder.file("home")))
  }

  @discardableResult
  private func record(_ sql: String, _ note: String? = nil) throws -> RecordedChange? {
    let connection = try SQLiteConnection(opening: path, as: .readWrite)
    try connection.execute("PRAGMA foreign_keys = ON")
    return try DatabaseManager.borrowing(connection.pointer, home: database.home) { lent in
      try lent.recorder.record(note) { _ in try connection.execute(sql) }.change
    }
  }

  private static func counts(of change: RecordedChange) -> [Int] { [change.inserted, change.updated, change.deleted] }

  private var content: [String: [String]] {
    get throws { try TestDatabases.content(of: path).filter { !$0.key.hasPrefix("buckia_") } }
  }

  @Test func `changes have numbers, notes and counts`() throws {
    let first = try #require(
      try record("INSERT INTO album(title) VALUES ('Sea'), ('Wood'); DELETE FROM album WHERE title = 'Wood'", "New"))
    let second = try #require(try record("INSERT INTO photo VALUES ('a', 1, 'Pier', 2.5)"))
    #expect(first.number < second.number)
    #expect(first.note == "New" && second.note == nil)
    #expect(Self.counts(of: first) == [1, 0, 0])
    // The trigger's change is a part of it.
    #expect(Self.counts(of: second) == [1, 1, 0])
    #expect(try database.recorder.changes() == [first, second])
    #expect(try database.recorder.changes(since: first.number) == [second])
    #expect(try database.recorder.dependencies(of: second) == [first])
    #expect(try record("UPDATE album SET title = title") == nil)
    #expect(try database.log().map(\.file) == ["change: New", "change"])
  }

  @Test func `an error rolls back the change and its record`() throws {
    try record("INSERT INTO album(title) VALUES ('Sea')")
    #expect(throws: Stop.self) {
      try database.recorder.record { handle in
        try SQLiteConnection.borrowing(handle) { try $0.execute("DELETE FROM album") }
        throw Stop()
      }
    }
    #expect(try TestDatabases.texts("SELECT title FROM album", on: path) == ["Sea"])
    #expect(try database.recorder.changes().count == 1)
  }

  @Test func `a record inside a transaction of the app is rolled back with it`() throws {
    let connection = try SQLiteConnection(opening: path, as: .readWrite)
    try connection.execute("BEGIN")
    try DatabaseManager.borrowing(connection.pointer, home: database.home) { lent in
      try lent.recorder.record("Sea") { _ in try connection.execute("INSERT INTO album(title) VALUES ('Sea')") }
      #expect(try lent.recorder.changes().map(\.note) == ["Sea"])
    }
    try connection.execute("ROLLBACK")
    #expect(try database.recorder.changes().isEmpty)
    #expect(try TestDatabases.texts("SELECT title FROM album", on: path).isEmpty)
  }

  @Test func `a new change ends redo`() throws {
    try record("INSERT INTO album(title) VALUES ('Sea')")
    try record("UPDATE album SET title = 'Lake'")
    #expect(try database.recorder.redo() == nil)
    try database.recorder.undo()
    #expect(try TestDatabases.texts("SELECT title FROM album", on: path) == ["Sea"])
    try record("UPDATE album SET title = 'Pond'")
    #expect(try database.recorder.redo() == nil)
    try database.recorder.undo()
    try database.recorder.undo()
    #expect(try TestDatabases.texts("SELECT title FROM album", on: path).isEmpty)
    #expect(try database.recorder.undo() == nil)
    for title in ["Sea", "Pond"] {
      #expect(try database.recorder.redo()?.undone.count == 1)
      #expect(try TestDatabases.texts("SELECT title FROM album", on: path) == [title])
    }
    #expect(try database.recorder.redo() == nil)
  }

  @Test(arguments: Seeds.shards)
  func `undo and redo go through all states, and the diff of all changes is the difference`(shard: Int) throws {
    try Seeds.tryEach(16, shard: shard, "ChangeRecorderTests") { try ChangeRecorderTests().testHistory($0) }
  }

  private func testHistory(_ seed: UInt64) throws {
    let replay = Comment(rawValue: Seeds.replay(seed, "ChangeRecorderTests"))
    var random = SeededGenerator(seed: seed)
    func number(_ limit: Int) -> Int { Int.random(in: 1...limit, using: &random) }
    func edit() -> String {
      switch number(7) {
      case 1: "INSERT OR REPLACE INTO album(id, title) VALUES (\(number(4)), 'title \(number(9))')"
      case 2:
        "INSERT OR REPLACE INTO photo SELECT 'p\(number(6))', id, 'x\(number(9))', \(number(9)) / 4.0 FROM album LIMIT 1"
      case 3: "UPDATE photo SET title = \(number(3) == 1 ? "NULL" : "'y\(number(99))'") WHERE id = 'p\(number(6))'"
      case 4: "DELETE FROM album WHERE id = \(number(4))"
      case 5: "INSERT OR IGNORE INTO tag VALUES ('p\(number(6))', 't\(number(3))')"
      case 6: "UPDATE OR IGNORE tag SET name = 't\(number(3))' WHERE photo = 'p\(number(6))'"
      default: "UPDATE OR IGNORE album SET id = \(number(4)) WHERE id = \(number(4))"
      }
    }
    _ = try folder.copy("db.sqlite", to: "first.sqlite")
    var states = [try content]
    for _ in 0..<12 {
      if try record((0..<number(4)).map { _ in edit() }.joined(separator: ";")) != nil { states.append(try content) }
    }
    let diff = try database.recorder.createDiff(output: .folder(folder.file("outbox")))
    let copy = DatabaseManager(folder.file("first.sqlite"), home: BuckiaHome(path: folder.file("other home")))
    _ = try copy.processInboundChanges([folder.file("outbox")])
    let last = try TestDatabases.content(of: copy.path).filter { !$0.key.hasPrefix("buckia_") }
    #expect(last == states.last, replay)
    #expect((diff.id == nil) == (states.last == states.first), replay)
    for state in states.dropLast().reversed() {
      #expect(try database.recorder.undo()?.undone.map(\.conflicts) == [0], replay)
      #expect(try content == state, replay)
    }
    for state in states.dropFirst() {
      #expect(try database.recorder.redo()?.undone.map(\.conflicts) == [0], replay)
      #expect(try content == state, replay)
    }
  }

  @Test func `changes that were made elsewhere are found and told apart`() throws {
    let copy = folder.file("copy.sqlite")
    try record("INSERT INTO album(title) VALUES ('Sea')")
    #expect(try database.recorder.catchUp(with: copy) == nil)
    try record("INSERT INTO album(title) VALUES ('Wood')")
    try TestDatabases.run(
      """
      UPDATE album SET title = 'Lake' WHERE title = 'Sea'; INSERT INTO log VALUES ('by hand');
      INSERT INTO derived(text) VALUES ('a')
      """, on: path)
    try record("UPDATE album SET count = 7")
    let found = try #require(try database.recorder.catchUp(with: copy))
    #expect(found.isFound)
    #expect(Self.counts(of: found) == [2, 1, 0])
    #expect(try database.recorder.catchUp(with: copy) == nil)
    // Undoing it leaves the recorded changes.
    try database.undo([.diff(found.id.description)])
    #expect(try TestDatabases.texts("SELECT title, count FROM album", on: path) == ["Sea|7", "Wood|7"])
    #expect(try TestDatabases.texts("SELECT text FROM log UNION ALL SELECT text FROM derived", on: path).isEmpty)
    #expect(try database.recorder.catchUp(with: copy) == nil)
  }

  @Test func `changes that are no longer kept are an error, and nothing is left out`() throws {
    try record("INSERT INTO album(title) VALUES ('Sea')")
    try database.setUndoRetention(bytes: 0)
    try record("INSERT INTO album(title) VALUES ('Wood')")
    #expect(try database.recorder.changes().count == 2)
    #expect { try database.recorder.changeset() } throws: { ($0 as? BuckiaError)?.code == .notKept }
    #expect { try database.recorder.undo() } throws: { ($0 as? BuckiaError)?.code == .notKept }
  }

  // MARK: With others

  @Test(arguments: [false, true])
  func `the policy latest compares when a recorded change was made`(isRecorded: Bool) throws {
    let anna = try NotesPerson("anna", in: folder)
    let ben = try NotesPerson("ben", in: folder)
    try anna.run("INSERT INTO note VALUES ('a', 'first')")
    try anna.share(with: [ben])
    try ben.receive()
    let edit = "UPDATE note SET title = 'earlier'"
    if isRecorded {
      try DatabaseManager(anna.path, home: database.home).recorder.record { handle in
        try SQLiteConnection.borrowing(handle) { try $0.execute(edit) }
      }
    } else {
      try anna.run(edit)
    }
    try ben.run("UPDATE note SET title = 'later'")
    try ben.share(with: [anna])
    try anna.share(with: [ben])
    try anna.receive()
    try ben.receive()
    #expect(try anna.notes() == [isRecorded ? "a|later" : "a|earlier"])
    #expect(try ben.notes() == anna.notes())
  }

  @Test func `the undo of a shared insertion reaches the recipients`() throws {
    let anna = try NotesPerson("anna", in: folder)
    let ben = try NotesPerson("ben", in: folder)
    let recorder = DatabaseManager(anna.path, home: database.home).recorder
    try recorder.record { handle in
      try SQLiteConnection.borrowing(handle) { try $0.execute("INSERT INTO note VALUES ('a', 'first')") }
    }
    try anna.share(with: [ben])
    try ben.receive()
    #expect(try ben.notes() == ["a|first"])
    try recorder.undo()
    try anna.share(with: [ben])
    try ben.receive()
    #expect(try ben.notes().isEmpty)
    try ben.share(with: [anna])
    try anna.receive()
    try recorder.redo()
    try anna.share(with: [ben])
    try ben.receive()
    #expect(try ben.notes() == ["a|first"])
  }
}
