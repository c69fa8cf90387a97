import Buckia
import Foundation
import TestSupport
import Testing

/// Calls that an app stops, or a person with Control-C.
@Suite struct StoppedCallTests {
  private struct Stop: Error {}

  /// A database with 2,000 rows that a diff has changed, and 2,000 conflicts.
  private func exchange() throws -> Exchange {
    let exchange = try Exchange(
      """
      CREATE TABLE notes(id INTEGER PRIMARY KEY, title);
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000) INSERT INTO notes SELECT i, 'a' FROM n
      """)
    try TestDatabases.run("UPDATE notes SET title = 'mine' WHERE id > 2000", on: exchange.mine)
    try exchange.send("UPDATE notes SET title = 'theirs'")
    try exchange.apply()
    return exchange
  }

  @Test func `an undo, a resolution, a snapshot and a backup that are stopped change nothing`() throws {
    let exchange = try exchange()
    let before = try exchange.everythingButOurs()
    let id = try #require(try exchange.database.log().first?.diff)
    var database = exchange.database
    database.poll = { throw Stop() }
    let stopped = database
    #expect(throws: Stop.self) { try stopped.undo(["\(id)"].map { .diff($0) }) }
    #expect(throws: Stop.self) { try stopped.resolve(matching: ConflictFilter(), taking: .incoming) }
    #expect(throws: Stop.self) { try stopped.resolve([1], taking: .incoming) }
    for copy in [stopped.backupDatabase(to:), { _ = try stopped.snapshot(to: $0) }] as [(String) throws -> Any] {
      // If the file system shares blocks, nothing is copied, and the poll is not called.
      do { _ = try copy(exchange.folder.file("copy.sqlite")) } catch is Stop {}
    }
    #expect(try exchange.everythingButOurs() == before)
    #expect(try exchange.database.conflicts().allSatisfy(\.isOpen))
    #expect(try exchange.database.log().count == 1)
    let files = try FileManager.default.contentsOfDirectory(atPath: exchange.folder.path)
    #expect(files.filter { $0.contains(".tmp") } == [])
    #expect(try exchange.database.undo([.diff("\(id)")]).undone.map(\.updated) == [2_000])
  }

  @Test func `stopped encryption and decryption leave no file`() throws {
    let folder = try TemporaryFolder()
    try Data(repeating: 7, count: 1_000_000).write(to: URL(fileURLWithPath: folder.file("plain")))
    let home = BuckiaHome(path: folder.file("home"))
    try home.makeIdentity(named: "Anna")
    let own = try AgeIdentity.identities(of: home.identity())
    let encryption = try FileEncryption(to: own.map { try $0.recipient() })
    let decryption = try FileDecryption(identities: own)
    var steps: [Int64] = []
    try encryption.encrypt(folder.file("plain"), to: folder.file("age"), progress: { steps.append($0) })
    #expect(steps.last == 1_000_000 && steps.count > 2)
    #expect(throws: Stop.self) {
      try encryption.encrypt(folder.file("plain"), to: folder.file("other"), progress: { _ in throw Stop() })
    }
    #expect(throws: Stop.self) {
      try decryption.decrypt(folder.file("age"), to: folder.file("other"), progress: { _ in throw Stop() })
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["age", "home", "plain"])
  }
}
