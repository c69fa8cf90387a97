import Buckia
import BuckiaBackup
import BuckiaStorage
import Foundation
import SQLiteConnections
import TestSupport
import Testing

/// Backing up to a folder, and restoring from it.
@Suite struct BackupStoreTests {
  private let folder: TemporaryFolder
  private let store: BackupStore

  init() throws {
    folder = try TemporaryFolder()
    store = BackupStore(folder: folder.file("store"))
  }

  private var path: String { folder.file("notes.sqlite") }
  private var home: BuckiaHome { BuckiaHome(path: folder.file("home")) }
  private var database: DatabaseManager { DatabaseManager(path, home: home) }

  private func run(_ sql: String) throws { try TestDatabases.run(sql, on: path) }

  private func rows(_ path: String) throws -> [String] {
    let tables = try TestDatabases.rows("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name", on: path)
    return try tables + TestDatabases.rows("SELECT * FROM note ORDER BY id", on: path)
  }

  private func objects() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.file("store")).filter { $0.hasSuffix(".backup") }
      .sorted()
  }

  /// Restores a point to a new file.
  private func restored(_ point: PointSelection = .newest, with identities: [AgeIdentity] = []) async throws -> String {
    let path = folder.file("restored-\(UUID().uuidString).sqlite")
    try await store.restore(to: path, at: point, with: identities)
    return path
  }

  private static let notes = """
    CREATE TABLE note(id INTEGER PRIMARY KEY, text);
    WITH s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 2000)
    INSERT INTO note SELECT n, hex(randomblob(40)) FROM s
    """

  @Test(arguments: ["delete", "wal"])
  func `every point is restored, whatever was pruned and brought back`(mode: String) async throws {
    for seed in 0..<(ProcessInfo.processInfo.environment["BUCKIA_SEEDS"].flatMap { Int($0) } ?? 4) {
      var random = SeededGenerator(seed: UInt64(seed))
      try? FileManager.default.removeItem(atPath: folder.file("store"))
      try? FileManager.default.removeItem(atPath: path)
      try run(
        "PRAGMA page_size = \([512, 4096, 65536].randomElement(using: &random) ?? 4096); PRAGMA journal_mode = \(mode)")
      try run(Self.notes)
      var expected: [KSUID: [String]] = [:]
      // A connection that stays open keeps the log.
      let other = try SQLiteConnection(opening: path, as: .readWrite)
      for _ in 0..<12 {
        switch Int.random(in: 0..<6, using: &random) {
        case 0: try other.execute("DELETE FROM note WHERE id % 3 = \(Int.random(in: 0..<3, using: &random))")
        case 1: try other.execute("DELETE FROM note WHERE id > 300; VACUUM")
        case 2: try other.execute("INSERT INTO note(text) SELECT hex(randomblob(900)) FROM note LIMIT 300")
        case 3:
          let points = try await store.history(home: home).points
          guard points.count > 2 else { continue }
          var policy = RetentionPolicy()
          policy.last = Int.random(in: 1..<points.count, using: &random)
          let report = try await store.prune(keeping: policy, home: home)
          if Bool.random(using: &random), report.id != nil {
            try await store.restorePruned()
          } else {
            for point in report.removed { expected[point.id] = nil }
          }
        default:
          try other.execute("UPDATE note SET text = text || 'x' WHERE id = \(Int.random(in: 1..<200, using: &random))")
        }
        let report = try await store.backUp(database)
        expected[report.point.id] = try rows(path)
      }
      let points = try await store.history(home: home).points
      #expect(Set(points.map(\.point.id)) == Set(expected.keys), "seed \(seed)")
      for point in points {
        let copy = try await restored(.id(point.point.id))
        #expect(try rows(copy) == expected[point.point.id], "seed \(seed), \(point.point.id)")
        #expect(try SQLiteConnection(opening: copy, as: .readWrite).damage(comparingIndexes: true) == nil)
      }
      let verification = try await store.verify(home: home)
      #expect(verification.faults.isEmpty && verification.restored.count == 1, "seed \(seed): \(verification.faults)")
    }
  }

  @Test func `a restored file has the same bytes`() async throws {
    try run(Self.notes)
    try await store.backUp(database)
    try run("UPDATE note SET text = 'new' WHERE id = 7")
    let report = try await store.backUp(database)
    #expect(report.pageCount < 5 && !report.isComplete)
    let copy = try await restored()
    #expect(try Data(contentsOf: URL(filePath: copy)) == Data(contentsOf: URL(filePath: path)))
  }

  @Test func `a database that has not changed costs nothing`() async throws {
    try run(Self.notes)
    let first = try await store.backUp(database)
    let again = try await store.backUp(database)
    #expect(first.isNew && !again.isNew && again.point.id == first.point.id)
    // Rewritten with the same content.
    try run("UPDATE note SET text = text WHERE id = 1")
    _ = try await store.backUp(database)
    #expect(try objects().count <= 2)
  }

  @Test func `after pruning, many edits of the same pages take the room of one`() async throws {
    try run(Self.notes)
    for number in 0..<40 {
      try run("UPDATE note SET text = hex(randomblob(40)) WHERE id < 500 OR id = \(number)")
      try await store.backUp(database)
    }
    try await store.prune(keeping: RetentionPolicy(), home: home)
    let size = try objects().reduce(0) { sum, name in
      sum + (try FileManager.default.attributesOfItem(atPath: folder.file("store/\(name)"))[.size] as? Int ?? 0)
    }
    try? FileManager.default.removeItem(atPath: folder.file("other"))
    let other = BackupStore(folder: folder.file("other"))
    let whole = try await other.backUp(database).byteCount
    #expect(size < whole * 12 / 10)
  }

  @Test func `the note of an encrypted point can be read with the secret key only`() async throws {
    try run(Self.notes)
    let (key, other) = (AgeIdentity(), AgeIdentity())
    var options = BackupOptions()
    options.recipients = [try key.recipient()]
    options.note = "before the import of Zoë's photos"
    #expect(try await store.backUp(database, options).point.note == options.note)
    let bytes = try Data(contentsOf: URL(filePath: folder.file("store/\(objects()[0])")))
    #expect(!String(decoding: bytes.prefix(4_096), as: UTF8.self).contains("import"))
    for (keys, note) in [([], nil), ([other], nil), ([other, key], options.note)] {
      let point = try #require(await store.history(home: home, with: keys).points.first?.point)
      #expect(point.note == note && point.hasEncryptedNote)
    }
    options.recipients = try (0..<20).map { _ in try AgeIdentity().recipient() }
    options.note = String(repeating: "a", count: 1_000)
    await #expect(throws: BuckiaError.self) { try await store.backUp(database, options) }
  }

  @Test func `a backup that was stopped after its upload is continued`() async throws {
    try run(Self.notes)
    try await store.backUp(database)
    let records = folder.file("home/backups")
    let record = try #require(FileManager.default.contentsOfDirectory(atPath: records).first { !$0.contains(".") })
    func stop(uploaded: Bool) throws {
      try FileManager.default.moveItem(atPath: "\(records)/\(record)", toPath: "\(records)/\(record).next")
      guard !uploaded, let last = try objects().last else { return }
      try FileManager.default.removeItem(atPath: folder.file("store/\(last)"))
    }
    try stop(uploaded: true)
    try run("UPDATE note SET text = 'edited' WHERE id = 7")
    #expect(try await !store.backUp(database).isComplete)
    #expect(try await Set(store.history(home: home).points.map(\.point.history)).count == 1)
    #expect(try await store.verify(home: home).faults.isEmpty)
    try stop(uploaded: false)
    #expect(try await store.backUp(database).isComplete)
  }

  @Test func `a database is backed up through a symbolic link`() async throws {
    try run("PRAGMA journal_mode = WAL; \(Self.notes)")
    let link = folder.file("link.sqlite")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
    let linked = DatabaseManager(link, home: home)
    try await store.backUp(linked)
    // The log stays while another connection is open.
    let other = try SQLiteConnection(opening: path, as: .readWrite)
    try other.execute("UPDATE note SET text = 'edited' WHERE id = 7")
    #expect(try await store.backUp(linked).isNew)
    #expect(try await rows(restored()) == rows(path))
  }

  @Test(arguments: [true, false]) func `a damaged record makes the next object complete`(isDigest: Bool) async throws {
    try run(Self.notes)
    try await store.backUp(database)
    let records = folder.file("home/backups")
    let name = try #require(FileManager.default.contentsOfDirectory(atPath: records).first { !$0.contains(".") })
    var bytes = try fileBytes("\(records)/\(name)")
    bytes[48 * 3 + (isDigest ? 20 : 4)] ^= 1
    try Data(bytes).write(to: URL(filePath: "\(records)/\(name)"))
    try run("UPDATE note SET text = 'edited'")
    #expect(try await store.backUp(database).isComplete == isDigest)
    #expect(try await rows(restored()) == rows(path))
  }

  @Test func `a pruning refuses to keep a point that needs a missing object`() async throws {
    try run(Self.notes)
    for number in 1...3 {
      try await store.backUp(database)
      try run("UPDATE note SET text = 'Edit \(number)' WHERE id = \(number)")
    }
    try FileManager.default.removeItem(atPath: folder.file("store/\(objects()[1])"))
    await #expect(throws: StorageError.self) { try await store.prune(keeping: RetentionPolicy("last=1"), home: home) }
    #expect(try objects().count == 2)
  }

  @Test func `after a point could not be restored, the next one has all pages`() async throws {
    try run(Self.notes)
    try await store.backUp(database)
    let object = URL(filePath: folder.file("store/\(try objects()[0])"))
    var bytes = try Data(contentsOf: object)
    bytes[bytes.count - 10] ^= 1
    try bytes.write(to: object)
    #expect(try await store.drill(home: home).fault != nil)
    try run("UPDATE note SET text = 'edited' WHERE id = 7")
    #expect(try await store.backUp(database).isComplete)
    #expect(try await store.drill(home: home).fault == nil)
    try run("UPDATE note SET text = 'edited' WHERE id = 8")
    #expect(try await !store.backUp(database).isComplete)
  }

  @Test func `a permanent pruning frees the space at once`() async throws {
    try run(Self.notes)
    for number in 1...4 {
      try await store.backUp(database)
      try run("UPDATE note SET text = 'Edit \(number)' WHERE id = \(number)")
      if number == 3 { try await store.prune(keeping: RetentionPolicy("last=2"), home: home) }
    }
    let report = try await store.prune(keeping: RetentionPolicy("last=1"), permanently: true, home: home)
    #expect(report.removed.count == 2 && report.id == nil)
    #expect(
      try FileManager.default.subpathsOfDirectory(atPath: folder.file("store")).filter { $0.hasSuffix(".backup") }
        == objects())
    await #expect(throws: StorageError.self) { try await store.restorePruned() }
    #expect(try await TestDatabases.texts("SELECT text FROM note WHERE id = 3", on: restored()) == ["Edit 3"])
  }

  @Test func `an encrypted store is written without the secret key, and read with it only`() async throws {
    try run(Self.notes)
    let identity = AgeIdentity()
    var options = BackupOptions()
    options.recipients = [try identity.recipient()]
    try await store.backUp(database, options)
    try run("INSERT INTO note VALUES (9999, 'secret words')")
    // Without recipients, those of the last backup are used.
    try await store.backUp(database)
    for name in try objects() {
      let bytes = try Data(contentsOf: URL(filePath: folder.file("store/\(name)")))
      #expect(bytes.range(of: Data("age-encryption.org/v1".utf8)) != nil)
    }
    #expect(try await store.verify(home: home).faults.isEmpty)
    #expect(try await rows(restored(with: [identity])) == rows(path))
    for wrong in [[], [AgeIdentity()]] {
      await #expect(throws: (any Error).self) { try await restored(with: wrong) }
    }
    #expect(try await store.prune(keeping: RetentionPolicy(), home: home, isDryRun: true).needed.count == 1)
    let report = try await store.prune(
      keeping: RetentionPolicy(), home: home, with: [identity], for: options.recipients)
    #expect(report.removed.count == 1)
    #expect(try await rows(restored(with: [identity])) == rows(path))
  }

  @Test func `a changed byte, a cut and a missing object are found`() async throws {
    try run(Self.notes)
    _ = try home.makeIdentity(named: "Anna")
    try await store.backUp(database)
    try run("DELETE FROM note WHERE id = 5")
    try await store.backUp(database)
    #expect(try await store.verify(home: home).signers.count == 1)
    let expected = try rows(path)
    for name in try objects() {
      let url = URL(filePath: folder.file("store/\(name)"))
      let whole = try Data(contentsOf: url)
      for offset in stride(from: 0, to: whole.count, by: max(1, whole.count / 97)) where whole[offset] != 0 {
        var bytes = whole
        bytes[offset] ^= 1
        try bytes.write(to: url)
        #expect(try await !store.verify(home: home).faults.isEmpty, "\(name) at \(offset)")
        do { #expect(try await rows(restored()) == expected) } catch is StorageError {}
      }
      for count in [0, 100, 4_096, whole.count - 1] {
        try whole.prefix(count).write(to: url)
        #expect(try await !store.verify(home: home).faults.isEmpty, "\(name) cut to \(count)")
        await #expect(throws: StorageError.self) { try await restored() }
      }
      try whole.write(to: url)
    }
    try FileManager.default.removeItem(atPath: folder.file("store/\(objects()[0])"))
    #expect(try await !store.verify(home: home).faults.isEmpty)
    await #expect(throws: StorageError.self) { try await restored() }
    // The next backup has all pages again.
    #expect(try await store.backUp(database).isNew)
  }

  @Test func `a damaged database, and one that has lost its tables, are refused`() async throws {
    try run(Self.notes)
    try await store.backUp(database)
    let whole = try Data(contentsOf: URL(filePath: path))
    var bytes = whole
    bytes.replaceSubrange(8_192..<12_288, with: Data(repeating: 0x5a, count: 4_096))
    for wrong in [bytes, whole.prefix(5_000), Data(), Data("words".utf8)] {
      try wrong.write(to: URL(filePath: path))
      await #expect(throws: BuckiaError.self) { try await store.backUp(database) }
    }
    try FileManager.default.removeItem(atPath: path)
    try run("CREATE TABLE t(a); DROP TABLE t")
    let error = await #expect(throws: BuckiaError.self) { try await store.backUp(database) }
    #expect(error?.code == .damagedDatabase)
    var options = BackupOptions()
    options.acceptsDamage = true
    #expect(try await store.backUp(database, options).isNew)
    #expect(try objects().count == 2)
  }

  @Test func `a point replaces the content of a database in use, and what it was is a point`() async throws {
    try run(Self.notes)
    let first = try await store.backUp(database)
    let old = try rows(path)
    let other = try SQLiteConnection(opening: path, as: .readWrite)
    try other.execute("DELETE FROM note WHERE id > 10")
    let new = try rows(path)
    try await store.restore(into: database, at: .id(first.point.id))
    #expect(try other.integer("SELECT count(*) FROM note") == 2_000)
    #expect(try rows(path) == old)
    let points = try await store.history(home: home).points
    #expect(points.count == 2)
    #expect(try await rows(restored(.id(points[1].point.id))) == new)
  }

  @Test func `a point is chosen by its time`() async throws {
    try run(Self.notes)
    let first = try await store.backUp(database).point
    try await Task.sleep(for: .milliseconds(20))
    try run("DELETE FROM note")
    let second = try await store.backUp(database).point
    #expect(try await store.restore(to: folder.file("1"), at: .time(second.time - 1)) == first)
    #expect(try await store.restore(to: folder.file("2"), at: .time(second.time)) == second)
    let error = await #expect(throws: StorageError.self) {
      try await store.restore(to: folder.file("3"), at: .time(first.time - 1))
    }
    #expect(error?.code == .notFound)
    await #expect(throws: StorageError.self) { try await store.restore(to: folder.file("1")) }
  }

  @Test func `a drill is recorded, and shows a point that cannot be restored`() async throws {
    try run(Self.notes)
    let point = try await store.backUp(database).point
    #expect(try await store.history(home: home).points.map(\.isVerified) == [false])
    #expect(try BackupStore.status(of: database).map(\.verifiedAt) == [nil])
    let drill = try await store.drill(home: home)
    #expect(drill.fault == nil)
    #expect(try await store.history(home: home).points.map(\.isVerified) == [true])
    let status = try #require(try BackupStore.status(of: database).first)
    #expect(status.store == folder.file("store") && status.point == point)
    #expect(status.verifiedAt == drill.time && status.fault == nil)
    let url = URL(filePath: folder.file("store/\(point.id).backup"))
    var bytes = try Data(contentsOf: url)
    bytes[bytes.count - 9] ^= 1
    try bytes.write(to: url)
    #expect(try await store.drill(home: home).fault != nil)
    #expect(try await store.history(home: home).points.map(\.isVerified) == [false])
    #expect(try BackupStore.status(of: database).first?.fault != nil)
  }

  /// The records of this device, as a killed process may leave them.
  private func withEarlierRecords(_ body: () async throws -> Void) async throws {
    _ = try folder.copy("home/backups", to: "records")
    try await body()
    try FileManager.default.removeItem(atPath: folder.file("home/backups"))
    try FileManager.default.moveItem(atPath: folder.file("records"), toPath: folder.file("home/backups"))
  }

  @Test func `two points with one base stay, after a kill and a pruning`() async throws {
    try run(Self.notes)
    try await store.backUp(database)
    var expected: [KSUID: [String]] = [:]
    try run("DELETE FROM note WHERE id = 5")
    try await withEarlierRecords { expected[try await store.backUp(database).point.id] = try rows(path) }
    try run("DELETE FROM note WHERE id = 1500")
    expected[try await store.backUp(database).point.id] = try rows(path)
    var rules = RetentionPolicy()
    rules.last = 2
    #expect(try await store.prune(keeping: rules, home: home).removed.count == 1)
    for (id, rows) in expected { #expect(try await self.rows(restored(.id(id))) == rows) }
    #expect(try await store.verify(home: home).faults.isEmpty)
  }

  @Test func `a repeated restore in place does not restore the state that the first one replaced`() async throws {
    try run(Self.notes)
    try await store.backUp(database)
    let good = try rows(path)
    for _ in 0..<2 {
      try run("DELETE FROM note WHERE id % 3 = 0")
      try await store.restore(into: database)
      #expect(try rows(path) == good)
    }
  }

  @Test func `a store of several databases asks for the history`() async throws {
    try run(Self.notes)
    let point = try await store.backUp(database).point
    let other = try TestDatabases.run("CREATE TABLE t(a)", on: folder.file("other.sqlite"))
    try await store.backUp(DatabaseManager(other, home: home))
    let error = await #expect(throws: BuckiaError.self) { try await restored() }
    #expect(error?.code == .misuse)
    let file = folder.file("mine.sqlite")
    #expect(try await store.restore(to: file, of: point.history) == point)
    await #expect(throws: BuckiaError.self) { try await store.prune(keeping: RetentionPolicy(), home: home) }
  }

  @Test func `a device without the record does not write to an encrypted store in clear`() async throws {
    try run(Self.notes)
    var options = BackupOptions()
    let identity = AgeIdentity()
    options.recipients = [try identity.recipient()]
    try await store.backUp(database, options)
    let elsewhere = DatabaseManager(path, home: BuckiaHome(path: folder.file("another home")))
    let error = await #expect(throws: BuckiaError.self) { try await store.backUp(elsewhere) }
    #expect(error?.code == .misuse)
    try run("DELETE FROM note WHERE id = 7")
    // The recipients of the last backup are kept.
    try await store.backUp(database)
    #expect(try await store.history(home: home).points.map(\.isEncrypted) == [true, true])
  }

  @Test(arguments: ["delete", "wal"])
  func `a database with another page size is restored in place`(mode: String) async throws {
    try run("PRAGMA page_size = 1024; PRAGMA journal_mode = \(mode); \(Self.notes)")
    try await store.backUp(database)
    let good = try rows(path)
    try run("PRAGMA journal_mode = delete; PRAGMA page_size = 8192; DELETE FROM note WHERE id > 3; VACUUM")
    try run("PRAGMA journal_mode = \(mode)")
    let other = try SQLiteConnection(opening: path, as: .readWrite)
    try await store.restore(into: database)
    #expect(try rows(path) == good)
    #expect(try other.text("PRAGMA integrity_check") == "ok")
  }

  @Test func `an object under another name and a missing one that this device has stored are faults`() async throws {
    try run(Self.notes)
    try await store.backUp(database)
    try run("DELETE FROM note WHERE id = 5")
    try await store.backUp(database)
    let names = try objects()
    let last = URL(filePath: folder.file("store/\(names[1])"))
    let bytes = try Data(contentsOf: last)
    try Data(contentsOf: URL(filePath: folder.file("store/\(names[0])"))).write(to: last)
    #expect(try await store.verify(home: home).faults.map(\.path) == [names[1]])
    await #expect(throws: StorageError.self) { try await restored() }
    try FileManager.default.removeItem(at: last)
    #expect(try await store.verify(home: home).faults.map(\.path) == [names[1]])
    try bytes.write(to: last)
    #expect(try await store.verify(home: home).faults.isEmpty)
  }

  @Test func `the rest of an upload that was cut off blocks neither backups nor prunings`() async throws {
    try run(Self.notes)
    try await store.backUp(database)
    let cut = folder.file("store/\(KSUID(timestamp: 100_000_000, payloadHigh: 1, payloadLow: 2)).backup")
    try Data("buckia backup 1\n".utf8).write(to: URL(filePath: cut))
    try run("DELETE FROM note WHERE id = 5")
    try await store.backUp(database)
    #expect(try await store.history(home: home).unreadableCount == 1)
    #expect(try await store.prune(keeping: RetentionPolicy(), home: home).removed.count == 1)
    #expect(!FileManager.default.fileExists(atPath: cut))
    #expect(try await store.history(home: home).unreadableCount == 0)
    #expect(try await rows(restored()) == rows(path))
  }
}
