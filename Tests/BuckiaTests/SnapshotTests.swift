import Foundation
import TestSupport
import Testing

@testable import Buckia
@testable import SQLiteConnections

/// A snapshot of the database after each exchange is the base of the next diff.
@Suite("Snapshots, and rounds of exchange")
struct SnapshotTests {
  @Test("A snapshot is written through a dangling symbolic link, and replaced only if that is allowed")
  func linked() throws {
    let folder = try TemporaryFolder()
    let database = DatabaseManager(
      try TestDatabases.run("CREATE TABLE t(id INTEGER PRIMARY KEY)", on: folder.file("db")),
      home: BuckiaHome(path: folder.file("home")))
    try FileManager.default.createSymbolicLink(atPath: folder.file("link"), withDestinationPath: folder.file("target"))
    let made = try database.snapshot(to: folder.file("link"), replacing: false)
    #expect(!made.isReplacement && made.bytes == FileSystem.byteCount(of: folder.file("target")))
    #expect(try SnapshotMark(at: folder.file("target")) != nil)
    let error = #expect(throws: BuckiaError.self) { try database.snapshot(to: folder.file("link"), replacing: false) }
    #expect(error?.code == .alreadyExists)
    #expect(try database.snapshot(to: folder.file("link")).isReplacement)
  }

  /// One of two people: a database, a snapshot of the rows that both have, and the inbound folder.
  private struct Person {
    private let folder: TemporaryFolder
    let database: DatabaseManager
    let shared: String
    let inbound: String

    init(_ name: String, in folder: TemporaryFolder) throws {
      self.folder = folder
      database = DatabaseManager(
        try folder.copy("base.sqlite", to: "\(name).sqlite"), home: BuckiaHome(path: folder.file("\(name)-home")))
      shared = folder.file("\(name)-shared.sqlite")
      try database.snapshot(to: shared)
      inbound = folder.file("\(name)-inbound")
      try folder.makeFolder("\(name)-inbound")
    }

    /// Sends the changes since the last exchange.
    func send(to other: Person) throws -> DiffReport {
      try database.createDatabaseDiff(since: shared, output: .folder(other.inbound))
    }

    /// Applies the inbound folder, and renews the snapshot.
    @discardableResult
    func receive() throws -> ApplyReport {
      var options = ApplyOptions()
      options.snapshot = shared
      return try database.processInboundChanges([inbound], options: options)
    }

    func edit(_ sql: String) throws { try TestDatabases.run(sql, on: database.path) }

    /// The rows, without Buckia's tables.
    var content: [String: [String]] {
      get throws { try TestDatabases.content(of: database.path).filter { !$0.key.hasPrefix("buckia_") } }
    }
  }

  private func people(_ journal: String = "DELETE") throws -> (folder: TemporaryFolder, anna: Person, ben: Person) {
    let folder = try TemporaryFolder()
    try TestDatabases.run(
      """
      PRAGMA journal_mode = \(journal);
      CREATE TABLE notes(id TEXT PRIMARY KEY, title TEXT, text TEXT);
      INSERT INTO notes VALUES ('a', 'Boat', 'x'), ('b', 'Radio', 'y'), ('c', 'Bell', 'z');
      """, on: folder.file("base.sqlite"))
    return (folder, try Person("anna", in: folder), try Person("ben", in: folder))
  }

  private func changes(_ report: DiffReport) -> [Int] {
    report.tables.reduce(into: [0, 0, 0]) { sum, table in
      sum[0] += table.inserted
      sum[1] += table.updated
      sum[2] += table.deleted
    }
  }

  @Test(
    "In each round each side sends only its own changes, and both end with the same rows",
    arguments: ["DELETE", "WAL"])
  func alternating(journal: String) throws {
    let (_, anna, ben) = try people(journal)
    try anna.edit("INSERT INTO notes VALUES ('d', 'Mast', ''); UPDATE notes SET title = 'Ship' WHERE id = 'a'")
    #expect(changes(try anna.send(to: ben)) == [1, 1, 0])
    try ben.receive()
    for round in 1...4 {
      try ben.edit(
        "INSERT INTO notes VALUES ('ben \(round)', '', ''); UPDATE notes SET text = '\(round)' WHERE id = 'b'")
      #expect(changes(try ben.send(to: anna)) == [1, 1, 0])
      try anna.receive()
      try anna.edit(
        "DELETE FROM notes WHERE id = 'ben \(round)'; UPDATE notes SET title = '\(round)' WHERE id IN ('a', 'b')")
      #expect(changes(try anna.send(to: ben)) == [0, 2, 1])
      let report = try ben.receive()
      #expect(report.applied.count == 1 && report.applied[0].conflicts == 0)
      #expect(try anna.content == ben.content)
    }
    // Nothing is left to send.
    #expect(try ben.send(to: anna).id == nil)
  }

  @Test("If both sides edit, send and then apply, received changes are not sent back")
  func simultaneous() throws {
    let (_, anna, ben) = try people()
    for round in 1...4 {
      try anna.edit(
        "UPDATE notes SET title = 'Anna \(round)' WHERE id = 'a'; INSERT INTO notes VALUES ('a\(round)', '', '')")
      try ben.edit(
        "UPDATE notes SET text = 'Ben \(round)' WHERE id IN ('a', 'b'); INSERT INTO notes VALUES ('b\(round)', '', '')")
      #expect(changes(try anna.send(to: ben)) == [1, 1, 0])
      #expect(changes(try ben.send(to: anna)) == [1, 2, 0])
      try anna.receive()
      try ben.receive()
      #expect(try anna.content == ben.content)
      #expect(try anna.send(to: ben).id == nil)
      #expect(try ben.send(to: anna).id == nil)
    }
  }

  @Test("In any order of edits, sends and applies, nothing is lost and nothing is sent back", arguments: Seeds.range(6))
  func anyOrder(seed: UInt64) throws {
    let (_, anna, ben) = try people()
    // Both begin with a snapshot of the same rows.
    for person in [anna, ben] { try person.database.snapshot(to: person.shared) }
    var random = SeededGenerator(seed: seed)
    var added = 0
    for step in 1...30 {
      let isAnna = random.oneIn(2)
      let (one, other) = isAnna ? (anna, ben) : (ben, anna)
      switch Int.random(in: 0..<3, using: &random) {
      case 0:
        added += 1
        try one.edit("INSERT INTO notes VALUES ('\(isAnna ? "anna" : "ben") \(step)', '', '')")
      case 1:
        // A diff has only rows of its sender.
        let report = try one.send(to: other)
        let rows = try report.path.map { try keys(in: $0) } ?? []
        #expect(rows.allSatisfy { $0.hasPrefix(isAnna ? "anna" : "ben") }, "\(rows) \(Seeds.replay(seed))")
      default:
        #expect(try one.receive().diffs.allSatisfy { $0.conflicts == 0 }, "\(Seeds.replay(seed))")
      }
    }
    for (one, other) in [(anna, ben), (ben, anna), (anna, ben)] {
      _ = try one.send(to: other)
      try one.receive()
      try other.receive()
    }
    #expect(try anna.content == ben.content, "\(Seeds.replay(seed))")
    #expect(try anna.content["notes"]?.count == added + 3, "\(Seeds.replay(seed))")
    #expect(try anna.send(to: ben).id == nil && ben.send(to: anna).id == nil, "\(Seeds.replay(seed))")
  }

  /// The keys of the rows in a diff file.
  private func keys(in path: String) throws -> [String] {
    var keys: [String] = []
    try DiffInspection.open(path).forEachChange { change in
      if case .text(let key)? = change.key.first?.value { keys.append(key) }
    }
    return keys
  }

  @Test("The next diff has the edits that were unsent when changes were applied, and not the applied changes")
  func unsent() throws {
    let (folder, anna, ben) = try people()
    for person in [anna, ben] { try person.database.snapshot(to: person.shared) }
    try ben.edit(
      """
      UPDATE notes SET title = 'Ben' WHERE id = 'a'; UPDATE notes SET text = 'Ben' WHERE id = 'b';
      DELETE FROM notes WHERE id = 'c'; INSERT INTO notes VALUES ('d', 'Ben', '')
      """)
    // The same row in another column, the same column, a row that was deleted here, and a key that is in use.
    try anna.edit(
      """
      UPDATE notes SET text = 'Anna' WHERE id IN ('a', 'b', 'c'); INSERT INTO notes VALUES ('d', 'Anna', ''), ('e', 'Anna', '')
      """)
    _ = try anna.send(to: ben)
    let report = try ben.receive()
    #expect(report.snapshot?.unsentChanges == 4)
    #expect(report.diffs[0].conflicts == 3)
    // The snapshot has Anna's changes if they were taken, and the old values otherwise.
    let known = try TestDatabases.rows(
      "SELECT id || ' ' || title || ' ' || text FROM notes ORDER BY id", on: ben.shared)
    let expected = ["a Boat Anna", "b Radio y", "c Bell z", "e Anna "]
    #expect(try known == expected.map { try TestDatabases.rows("SELECT '\($0)'", on: ben.shared)[0] })
    let next = try ben.send(to: anna)
    #expect(changes(next) == [1, 2, 1])
    #expect(
      try TestDatabases.content(of: ben.shared).keys.allSatisfy { !$0.hasPrefix("buckia") || $0 == "buckia_sent" })
    #expect(try folder.names(in: ".").allSatisfy { !$0.contains(".tmp") })
  }

  @Test("With take-incoming, a row that took the incoming version is not sent back")
  func takesIncoming() throws {
    let (_, anna, ben) = try people()
    for person in [anna, ben] { try person.database.snapshot(to: person.shared) }
    try ben.edit("UPDATE notes SET title = 'Ben' WHERE id = 'a'; UPDATE notes SET title = 'Ben' WHERE id = 'b'")
    try anna.edit("UPDATE notes SET title = 'Anna' WHERE id = 'a'")
    _ = try anna.send(to: ben)
    var options = ApplyOptions(conflicts: .takeIncoming)
    options.snapshot = ben.shared
    try ben.database.processInboundChanges([ben.inbound], options: options)
    #expect(changes(try ben.send(to: anna)) == [0, 1, 0])
  }

  @Test("A row in a conflict that each side decided differently is not sent back and forth")
  func conflicts() throws {
    let (_, anna, ben) = try people()
    try anna.edit("UPDATE notes SET title = 'Anna' WHERE id = 'a'")
    try ben.edit("UPDATE notes SET title = 'Ben' WHERE id = 'a'")
    _ = try anna.send(to: ben)
    _ = try ben.send(to: anna)
    #expect(try anna.receive().diffs[0].conflicts == 1)
    #expect(try ben.receive().diffs[0].conflicts == 1)
    #expect(try anna.send(to: ben).id == nil)
    // A new edit of the row is sent.
    try ben.edit("UPDATE notes SET title = 'Both' WHERE id = 'a'")
    #expect(changes(try ben.send(to: anna)) == [0, 1, 0])
  }

  @Test("Without a new snapshot, received changes are sent back")
  func echo() throws {
    let (_, anna, ben) = try people()
    try anna.edit("INSERT INTO notes VALUES ('d', 'Mast', '')")
    _ = try anna.send(to: ben)
    try ben.database.processInboundChanges([ben.inbound])
    #expect(changes(try ben.send(to: anna)) == [1, 0, 0])
  }

  @Test("A snapshot is one file, equal to the database, and private if the database is", arguments: ["DELETE", "WAL"])
  func file(journal: String) throws {
    let (folder, anna, _) = try people(journal)
    #expect(chmod(anna.database.path, 0o600) == 0)
    let open = try SQLiteConnection(opening: anna.database.path, as: .readWrite)
    try open.execute("INSERT INTO notes VALUES ('w', 'in the log', '')")
    let copy = folder.file("copy.sqlite")
    let first = try anna.database.snapshot(to: copy)
    #expect(!first.isReplacement && first.path == copy)
    #expect(try anna.database.snapshot(to: copy).isReplacement)
    #expect(try TestDatabases.content(of: copy) == (try anna.content))
    #expect(try folder.names(in: ".").filter { $0.hasPrefix("copy.sqlite") || $0.hasSuffix(".tmp") } == ["copy.sqlite"])
    let attributes = try FileManager.default.attributesOfItem(atPath: copy)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    #expect(
      try TestDatabases.rows("PRAGMA journal_mode", on: copy) == (try TestDatabases.rows("SELECT 'delete'", on: copy)))
  }

  @Test("Only an earlier snapshot or an empty file is replaced")
  func refusals() throws {
    let (folder, anna, _) = try people()
    func code(_ path: String) -> BuckiaErrorCode? {
      do {
        try anna.database.snapshot(to: path)
        return nil
      } catch {
        return (error as? BuckiaError)?.code
      }
    }
    let letter = folder.file("letter")
    try Data("Dear Anna".utf8).write(to: URL(fileURLWithPath: letter))
    #expect(code(letter) == .notReplaceable)
    #expect(code(anna.database.path) == .notReplaceable)
    #expect(code(folder.path) == .notReplaceable)
    let mail = try folder.copy("base.sqlite", to: "mail.sqlite")
    let content = try Data(contentsOf: URL(fileURLWithPath: mail))
    #expect(code(mail) == .notReplaceable)
    #expect(try Data(contentsOf: URL(fileURLWithPath: mail)) == content)
    try Data().write(to: URL(fileURLWithPath: folder.file("empty.sqlite")))
    #expect(code(folder.file("empty.sqlite")) == nil)
    #expect(code(folder.file("no/such/folder")) == .unwritable)
    try Data([1]).write(to: URL(fileURLWithPath: anna.shared + "-wal"))
    #expect(code(anna.shared) == .busy)
    #expect(try String(contentsOfFile: letter, encoding: .utf8) == "Dear Anna")
    #expect(try folder.names(in: ".").allSatisfy { !$0.hasSuffix(".tmp") })
  }

  @Test("If another database has the path of the snapshot, nothing is applied, and that database stays unchanged")
  func otherDatabase() throws {
    let (folder, anna, ben) = try people()
    try anna.edit("DELETE FROM notes WHERE id = 'a'")
    _ = try anna.send(to: ben)
    let mail = try folder.copy("base.sqlite", to: "mail.sqlite")
    let content = try Data(contentsOf: URL(fileURLWithPath: mail))
    var options = ApplyOptions()
    options.snapshot = mail
    let before = try ben.content
    let error = #expect(throws: BuckiaError.self) {
      try ben.database.processInboundChanges([ben.inbound], options: options)
    }
    #expect(error?.code == .notReplaceable && error?.description.contains("make a snapshot of it") == true)
    #expect(try ben.content == before)
    #expect(try folder.names(in: "ben-inbound").count == 1)
    #expect(try Data(contentsOf: URL(fileURLWithPath: mail)) == content)
  }

  @Test("A snapshot is made neither in the app's transaction, which may be rolled back, nor by a dry run")
  func transactions() throws {
    let (folder, anna, ben) = try people()
    try anna.edit("DELETE FROM notes WHERE id = 'a'")
    _ = try anna.send(to: ben)
    var options = ApplyOptions(isDryRun: true)
    options.snapshot = folder.file("copy.sqlite")
    #expect(try ben.database.processInboundChanges([ben.inbound], options: options).snapshot == nil)
    #expect(try !folder.names(in: ".").contains("copy.sqlite"))
    options.isDryRun = false
    let app = try SQLiteConnection(opening: ben.database.path, as: .readWrite)
    try app.execute("BEGIN")
    #expect(throws: BuckiaError.self) {
      try DatabaseManager.borrowing(app.handle.pointer) {
        _ = try $0.processInboundChanges([ben.inbound], options: options)
      }
    }
    try app.execute("ROLLBACK")
    let report = try DatabaseManager.borrowing(app.handle.pointer) {
      try $0.processInboundChanges([ben.inbound], options: options)
    }
    #expect(report.snapshot != nil)
    #expect(try TestDatabases.content(of: folder.file("copy.sqlite"))["notes"]?.count == 2)
  }

  @Test("After an interruption, applied changes are not sent back, and later edits of them are sent")
  func stopped() throws {
    struct Stop: Error {}
    let (_, anna, ben) = try people()
    try anna.edit("INSERT INTO notes VALUES ('d', 'Mast', '')")
    _ = try anna.send(to: ben)
    try anna.database.snapshot(to: anna.shared)
    try anna.edit("INSERT INTO notes VALUES ('e', 'Keel', '')")
    _ = try anna.send(to: ben)
    var options = ApplyOptions()
    options.snapshot = ben.shared
    let interruption = #expect(throws: ApplyInterruption.self) {
      try ben.database.processInboundChanges(
        [ben.inbound], options: options, progress: { if $0.files == 1 { throw Stop() } })
    }
    #expect(interruption?.cause is Stop)
    #expect(interruption?.report.applied.count == 1)
    #expect(interruption?.report.snapshot != nil)
    // The deletion must be sent. If the snapshot lacked the row, there would be nothing to send.
    try ben.edit("DELETE FROM notes WHERE id = 'd'")
    #expect(changes(try ben.send(to: anna)) == [0, 0, 1])
    try ben.receive()
    try anna.receive()
    #expect(try anna.content == ben.content)
  }

  @Test(
    "After a crash, applied changes are not sent back, and local edits are sent",
    arguments: ["diff", "apply"])
  func died(next: String) throws {
    let (folder, anna, ben) = try people()
    // A first round makes snapshots that are recognized as such.
    try anna.receive()
    try ben.receive()
    try ben.edit("UPDATE notes SET text = 'sent' WHERE id = 'c'")
    _ = try ben.send(to: anna)
    try anna.edit("INSERT INTO notes VALUES ('d', 'Mast', ''); UPDATE notes SET title = 'Ship' WHERE id = 'a'")
    _ = try anna.send(to: ben)
    try ben.edit("UPDATE notes SET text = 'mine' WHERE id = 'a'; DELETE FROM notes WHERE id = 'b'")
    let before = folder.file("before")
    try FileManager.default.copyItem(atPath: ben.shared, toPath: before)
    try ben.receive()
    // As if the process had died before the new snapshot was written.
    try FileManager.default.removeItem(atPath: ben.shared)
    try FileManager.default.moveItem(atPath: before, toPath: ben.shared)
    if next == "apply" { #expect(try ben.receive().warnings.isEmpty) }
    #expect(changes(try ben.send(to: anna)) == [0, 1, 1])
    try anna.receive()
    #expect(try anna.content == ben.content)
    // Later rounds work as usual.
    try ben.edit("UPDATE notes SET title = 'Yawl' WHERE id = 'a'")
    try ben.receive()
    #expect(changes(try ben.send(to: anna)) == [0, 1, 0] || next == "diff")
    try anna.receive()
    #expect(try anna.content == ben.content)
  }

  @Test("After a crash, changes without an undo record are sent back, with a warning")
  func diedUnknown() throws {
    let (folder, anna, ben) = try people()
    try ben.receive()
    try ben.database.setUndoRetention(bytes: 0)
    try anna.edit("INSERT INTO notes VALUES ('d', 'Mast', '')")
    _ = try anna.send(to: ben)
    let before = folder.file("before")
    try FileManager.default.copyItem(atPath: ben.shared, toPath: before)
    try ben.receive()
    try FileManager.default.removeItem(atPath: ben.shared)
    try FileManager.default.moveItem(atPath: before, toPath: ben.shared)
    let report = try ben.send(to: anna)
    #expect(report.warnings.map(\.code).contains(.snapshotIncomplete))
    #expect(changes(report) == [1, 0, 0])
  }

  @Test("A write between the files and the snapshot is reported", arguments: [false, true])
  func meanwhile(writes: Bool) throws {
    let (_, anna, _) = try people()
    let connection = try SQLiteConnection(opening: anna.database.path, as: .readWrite)
    let version = try anna.database.snapshotVersion(on: connection, for: anna.shared)
    try connection.execute("UPDATE notes SET title = 'mine'")
    if writes { try anna.edit("UPDATE notes SET title = 'theirs'") }
    var report = ApplyReport(
      trust: .any, diffs: [], ignored: 0, createdLedger: false, seconds: 0, isDryRun: false,
      changedRows: [])
    try report.keep(anna.shared, of: connection, since: version)
    #expect(report.wasWrittenMeanwhile == writes)
    #expect(try TestDatabases.content(of: anna.shared)["notes"] == anna.content["notes"])
  }

  @Test("The deletion of a sent row is sent even if the table has got another column since")
  func upgradedAfterSending() throws {
    let (_, anna, ben) = try people()
    try ben.edit("UPDATE notes SET title = 'Dinghy' WHERE id = 'a'")
    _ = try ben.send(to: anna)
    try ben.receive()
    try anna.receive()
    try anna.edit("INSERT INTO notes VALUES ('d', 'Mast', '')")
    _ = try anna.send(to: ben)
    try anna.edit("ALTER TABLE notes ADD COLUMN stars INTEGER; DELETE FROM notes WHERE id = 'd'")
    try ben.edit("UPDATE notes SET title = 'Ship' WHERE id = 'a'")
    _ = try ben.send(to: anna)
    try ben.receive()
    try anna.receive()
    #expect(changes(try anna.send(to: ben)) == [0, 0, 1])
    try ben.receive()
    #expect(try anna.content["notes"]?.count == 3)
    #expect(try anna.content == ben.content)
  }

  @Test("A row that is inserted again after its deletion was sent is sent as a new one")
  func reinserted() throws {
    let (_, anna, ben) = try people()
    try anna.database.snapshot(to: anna.shared)
    try anna.edit("DELETE FROM notes WHERE id = 'a'")
    #expect(changes(try anna.send(to: ben)) == [0, 0, 1])
    try anna.edit("INSERT INTO notes VALUES ('a', 'Boat', 'again'); UPDATE notes SET text = 'new' WHERE id = 'b'")
    #expect(changes(try anna.send(to: ben)) == [1, 1, 0])
    let report = try ben.receive()
    #expect(report.diffs.map(\.conflicts) == [0, 0])
    #expect(try ben.content == anna.content)
  }
}
