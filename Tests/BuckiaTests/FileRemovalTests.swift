import BuckiaBytes
import BuckiaFormat
import SQLiteSchemas
import Foundation
import SQLiteConnections
import TestSupport
import Testing

@testable import Buckia

private let notes = "CREATE TABLE notes(id INTEGER PRIMARY KEY, n); INSERT INTO notes VALUES (1, 1)"

/// A file is removed once its changes are safely in the database, and only if it is the file that was applied.
@Suite struct FileRemovalTests {
  @Test("A file that has replaced the applied one stays, and the next call applies it")
  func replacedMeanwhile() throws {
    let exchange = try Exchange(notes)
    let path = try exchange.plantRaw(insertion(into: "notes", values: [10, 1]), id: Exchange.id(at: 1_600_000_000))
    try exchange.plantRaw(insertion(into: "notes", values: [20, 1]), id: Exchange.id(at: 1_600_000_001))
    let next = insertion(into: "notes", values: [11, 1])
    let report = try exchange.database.processInboundChanges(
      [exchange.inbound],
      progress: { progress in
        // The second file comes next: the first has been read, and its transaction is not committed yet.
        guard progress.files == 1, progress.rows == 0 else { return }
        try Data(next).write(to: URL(fileURLWithPath: path), options: .atomic)
      })
    #expect(report.diffs.map(\.state) == [.applied, .applied])
    #expect(report.diffs.map(\.isRemoved) == [false, true])
    #expect(report.diffs[0].warnings == [Warning(.replacedMeanwhile, path)])
    #expect(try fileBytes(path) == next)
    let again = try exchange.apply()
    #expect(again.diffs.map(\.state) == [.applied])
    #expect(again.removed.map(\.path) == [path])
    #expect(try exchange.rows("SELECT id FROM notes ORDER BY id") == ["1", "10", "11", "20"])
    #expect(try exchange.folder.names(in: "inbound").isEmpty)
  }

  @Test("A file left by an interrupted removal is processed under its original name", arguments: [false, true])
  func leftover(isApplied: Bool) throws {
    let exchange = try Exchange(notes)
    let sent = try exchange.send("INSERT INTO notes VALUES (2, 2)")
    let path = try #require(sent.path)
    if isApplied { try exchange.apply(ApplyOptions(keepsFiles: true)) }
    let name = try #require(FileRemoval.privateName(for: URL(fileURLWithPath: path).lastPathComponent))
    try FileManager.default.moveItem(atPath: path, toPath: "\(exchange.inbound)/\(name)")
    #expect(try DiffInspection.verify([exchange.inbound]).files.map(\.isGood) == [true])
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [isApplied ? .alreadyApplied : .applied])
    #expect(report.diffs.first?.id == sent.id)
    #expect(report.ignored == 0)
    #expect(try exchange.folder.names(in: "inbound").isEmpty)
    #expect(try exchange.rows("SELECT id FROM notes ORDER BY id") == ["1", "2"])
    #expect(try exchange.database.log().first?.file == "\(try #require(sent.id)).bdiff")
  }

  @Test("A file that was named by its path and left by an interrupted removal is found, too")
  func leftoverOfNamedFile() throws {
    let exchange = try Exchange(notes)
    let path = exchange.folder.file("mail.attachment")
    try exchange.send("INSERT INTO notes VALUES (2, 2)", to: .file(path, replacing: false))
    try FileManager.default.moveItem(atPath: path, toPath: exchange.folder.file(".buckia-0.mail.attachment"))
    let options = ApplyOptions(removesNamedFiles: true)
    #expect(try exchange.database.processInboundChanges([path], options: options).applied.count == 1)
    #expect(!exchange.folder.has(".buckia-0.mail.attachment"))
    #expect(throws: BuckiaError.self) { try exchange.database.processInboundChanges([path], options: options) }
  }

  @Test("A replaced file is not removed; one that was moved aside gets its name back unless another file has it")
  func putBack() throws {
    let folder = try TemporaryFolder()
    let path = try folder.write([1], to: "file")
    let identity = try #require(try FileIdentity.current(at: path))
    let removal = FileRemoval(path: path, name: "file", identity: identity)
    try folder.write([1, 2], to: "file")
    #expect(removal.run() == .replaced)
    #expect(try fileBytes(path) == [1, 2])
    removal.putBack(try folder.write([1, 2, 3], to: ".buckia-1.file"))
    #expect(try folder.names(in: ".") == [".buckia-1.file", "file"])
    try FileManager.default.removeItem(atPath: path)
    removal.putBack(folder.file(".buckia-1.file"))
    #expect(try folder.names(in: ".") == ["file"])
    #expect(try fileBytes(path) == [1, 2, 3])
    let present = try #require(try FileIdentity.current(at: path))
    #expect(FileRemoval(path: path, name: "file", identity: present).run() == .removed)
    #expect(try folder.names(in: ".").isEmpty)
    #expect(removal.run() == .removed, "another process was faster")
  }

  @Test(
    "The names of files that are being removed are recognized",
    arguments: [
      (".buckia-x.file", "file"), (".buckia-1z.a.b", "a.b"), (".buckia-.file", nil), (".buckia-x", nil), ("file", nil),
      ("buckia-x.file", nil), (".buckia-x.", ""),
    ] as [(String, String?)])
  func names(name: String, plain: String?) {
    #expect(FileRemoval.plainName(of: name) == plain)
  }

  @Test("A file whose name is too long for a temporary one is removed without renaming")
  func longName() throws {
    let folder = try TemporaryFolder()
    let name = String(repeating: "n", count: 255)
    let path = try folder.write([1], to: name)
    #expect(FileRemoval.privateName(for: name) == nil)
    let identity = try #require(try FileIdentity.current(at: path))
    #expect(FileRemoval(path: path, name: name, identity: identity).run() == .removed)
  }

  @Test(
    "While files are applied, commits wait for the disk; afterwards the app's setting is restored",
    arguments: [0, 1, 2] as [Int64])
  func durability(level: Int64) throws {
    let exchange = try Exchange(notes)
    try exchange.send("INSERT INTO notes VALUES (2, 2)")
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    try connection.execute("PRAGMA synchronous = \(level)")
    let meanwhile = try connection.withDurableCommits { try connection.integer("PRAGMA synchronous") }
    #expect(meanwhile == 3)
    #expect(try connection.integer("PRAGMA synchronous") == level)
    struct Failure: Error {}
    #expect(throws: Failure.self) { try connection.withDurableCommits { throw Failure() } }
    #expect(try connection.integer("PRAGMA synchronous") == level)
    try connection.execute("BEGIN")
    let inside = try connection.withDurableCommits { try connection.integer("PRAGMA synchronous") }
    #expect(inside == level, "SQLite does not change it inside a transaction, where no file is removed either")
  }

  // MARK: Files that were made here

  @Test("Files in a folder with files made from the same database are never removed", arguments: [false, true])
  func outbox(raw: Bool) throws {
    let exchange = try Exchange(notes)
    try TestDatabases.run("UPDATE notes SET n = 2; INSERT INTO notes VALUES (5, 5)", on: exchange.mine)
    try exchange.folder.makeFolder("outbox")
    let outbox = exchange.folder.file("outbox")
    _ = try exchange.database.createDatabaseDiff(
      since: exchange.base, output: .folder(outbox), options: DiffOptions(isRaw: raw))
    // A file of another person in that folder is applied, and stays, too.
    let other = try exchange.plant(
      insertion(into: "notes", values: [9, 9]),
      definitions: definitions(of: exchange.base), id: Exchange.id(at: 1_600_000_000))
    try FileManager.default.moveItem(
      atPath: other, toPath: "\(outbox)/\(URL(fileURLWithPath: other).lastPathComponent)")
    // The database has changed since.
    try TestDatabases.run("UPDATE notes SET n = 3 WHERE id = 1", on: exchange.mine)
    for round in 0..<2 {
      let report = try exchange.database.processInboundChanges([outbox])
      #expect(report.diffs.map(\.state) == [DiffState](repeating: round == 0 ? .applied : .alreadyApplied, count: 2))
      #expect(report.outgoingFolders == [outbox])
      #expect(report.removed.isEmpty)
      #expect(try exchange.folder.names(in: "outbox").count == 2)
    }
    #expect(try exchange.rows("SELECT id, n FROM notes ORDER BY id") == ["1|3", "5|5", "9|9"])
    // A copy is another replica, and removes the files.
    _ = try exchange.folder.copy("base.sqlite", to: "copy.sqlite")
    let copy = DatabaseManager(exchange.folder.file("copy.sqlite"), home: exchange.home)
    #expect(try copy.processInboundChanges([outbox]).removed.count == 2)
    #expect(try exchange.folder.names(in: "outbox").isEmpty)
  }

  @Test("Only the newest outgoing files are recorded, and a home that cannot be written causes a warning")
  func manyOutgoing() throws {
    let folder = try TemporaryFolder()
    let database = try TestDatabases.run(notes, on: folder.file("notes.sqlite"))
    let home = BuckiaHome(path: folder.file("home"))
    let ids = try home.newIDs(20, after: [], unixSeconds: 1_700_000_000).ids
    for id in ids { #expect(home.noteOutgoing(id, from: database) == nil) }
    #expect(home.outgoingIDs(of: database) == Set(ids))
    #expect(home.outgoingIDs(of: folder.file("other.sqlite")).isEmpty)
    let line = try #require(
      String(decoding: fileBytes(folder.file("home/outgoing")), as: UTF8.self).split(separator: "\n").last)
    let many = String(repeating: "\(line)\n", count: 20_000)
    try folder.write(Array(many.utf8), to: "home/outgoing")
    #expect(home.noteOutgoing(ids[0], from: database) == nil)
    #expect(try fileBytes(folder.file("home/outgoing")).count == 10_001 * (line.utf8.count + 1))
    #expect(home.outgoingIDs(of: database) == [ids[0], ids[19]])
    try FileManager.default.removeItem(atPath: folder.file("home/outgoing"))
    try folder.makeFolder("home/outgoing")
    #expect(home.noteOutgoing(ids[0], from: database) == Warning(.outgoingNotNoted, folder.file("home/outgoing")))
  }
}
