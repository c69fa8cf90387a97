import Buckia
import Foundation
import TestSupport

/// The databases and folders that the samples work with: what two people had, what one of them has now, and the other's copy.
struct SampleFiles {
  let folder: TemporaryFolder
  /// What both had.
  let before: String
  /// The sender's database.
  let now: String
  /// The receiver's database.
  let mine: String
  let inbound: String
  let outbox: String

  /// Makes them.
  ///
  /// - Parameters:
  ///   - theirs: What the sender changes; nil for the usual: one new note, and one note and one tag with other values.
  ///   - ours: What the receiver changes.
  init(theirs: String? = nil, ours: String = "") throws {
    folder = try TemporaryFolder()
    before = try TestDatabases.run(
      """
      CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT, edited INTEGER, owner INTEGER, draft TEXT);
      CREATE TABLE tags(name TEXT PRIMARY KEY NOT NULL, colour TEXT);
      INSERT INTO notes VALUES (1, 'Boat', 10, 7, NULL), (2, 'Radio', 10, 8, NULL);
      INSERT INTO tags VALUES ('sea', 'blue');
      """, on: folder.file("before.sqlite"))
    now = try folder.copy("before.sqlite", to: "now.sqlite")
    mine = try folder.copy("before.sqlite", to: "mine.sqlite")
    inbound = folder.file("inbound")
    outbox = folder.file("outbox")
    try folder.makeFolder("inbound")
    try folder.makeFolder("outbox")
    let usual = """
      UPDATE notes SET title = 'Ship', edited = 20 WHERE id = 1;
      INSERT INTO notes VALUES (3, 'Harbour', 20, 7, 'unfinished');
      UPDATE tags SET colour = 'green';
      """
    try TestDatabases.run(theirs ?? usual, on: now)
    try TestDatabases.run(ours, on: mine)
  }

  var database: DatabaseManager { DatabaseManager(mine) }

  /// Puts the sender's changes into the receiver's inbound folder.
  @discardableResult
  func deliver() throws -> DiffReport {
    try DatabaseManager(now).createDatabaseDiff(since: before, output: .folder(inbound))
  }

  /// A file in the inbound folder that cannot be applied.
  func deliverDamage() throws {
    let report = try deliver()
    guard let path = report.path else { throw CocoaError(.fileNoSuchFile) }
    var bytes = try fileBytes(path)
    bytes[bytes.count / 2] ^= 0xff
    try Data(bytes).write(to: URL(fileURLWithPath: path))
  }

  /// The titles of the receiver's notes.
  func titles() throws -> [String] { try TestDatabases.texts("SELECT title FROM notes ORDER BY id", on: mine) }
  /// The colours of the receiver's tags.
  func colours() throws -> [String] { try TestDatabases.texts("SELECT colour FROM tags ORDER BY name", on: mine) }
}
