import Buckia
import BuckiaFormat
import Foundation
@testable import SQLiteConnections
import TestSupport
import Testing

/// Which senders' files are applied, and how reports name the senders.
@Suite struct SenderTests {
  private static let schema = "CREATE TABLE notes(id INTEGER PRIMARY KEY, n); INSERT INTO notes VALUES (1, 1)"

  /// The identity of a person with a home of their own.
  private func person(_ name: String, in folder: TemporaryFolder) throws -> Identity {
    try BuckiaHome(path: folder.file("home of \(name)")).makeIdentity(named: name)
  }

  private func trust(_ identity: Identity, in home: BuckiaHome) throws {
    try home.addContact(identity.card.text)
    try home.trustContact(identity.name, fingerprint: identity.fingerprint)
  }

  private let known = ApplyOptions(trust: .known)

  @Test
  func `a trusted contact's file is applied, and reports have their name`() throws {
    let exchange = try Exchange(Self.schema)
    let anna = try person("Anna", in: exchange.folder)
    try trust(anna, in: exchange.home)
    try exchange.send("INSERT INTO notes VALUES (2, 2)", signedBy: anna)
    #expect(try DiffInspection.verify([exchange.inbound], home: exchange.home).files.map(\.sender) == ["Anna"])
    let report = try exchange.apply(known)
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(report.diffs.map(\.sender) == ["Anna"])
    #expect(try exchange.database.log().map(\.sender) == ["Anna"])
    // A person who does not know Anna sees her key.
    let stranger = BuckiaHome(path: exchange.folder.file("other"))
    #expect(try DatabaseManager(exchange.mine, home: stranger).log().map(\.sender) == ["key \(anna.card.key)"])
  }

  @Test
  func `a stranger's file is quarantined with instructions, and applied once they are followed`() throws {
    let exchange = try Exchange(Self.schema)
    let anna = try person("Anna", in: exchange.folder)
    try exchange.send("INSERT INTO notes VALUES (2, 2)", signedBy: anna)
    let stranger = try #require(try exchange.apply(known).diffs.first)
    #expect(stranger.state == .quarantined)
    #expect(stranger.code == .untrusted)
    #expect(
      stranger.reason
        == "this database trusts known senders only, and the key \(anna.card.key.prefix(16))… that has signed this "
        + "file is unknown here; ask its sender for their card, then `buckia contact add CARD` and `buckia contact trust NAME`, and it is "
        + "applied the next time")
    // Being seen is not enough.
    try exchange.home.addContact(anna.card.text)
    let seen = try #require(try exchange.apply().diffs.first)
    #expect(seen.state == .quarantined)
    #expect(
      seen.reason
        == "this database trusts known senders only, and the contact \"Anna\" is not trusted yet; compare the fingerprint "
        + "\(anna.fingerprint) with them, then `buckia contact trust NAME`, and it is applied the next time")
    #expect(seen.sender == "key \(anna.card.key) (claims to be Anna)")
    #expect(try exchange.rows("SELECT id FROM notes") == ["1"])
    #expect(try exchange.folder.names(in: "inbound").count == 1)
    try exchange.home.trustContact("Anna", fingerprint: anna.fingerprint)
    #expect(try exchange.apply().diffs.map(\.state) == [.applied])
    #expect(try exchange.rows("SELECT id FROM notes ORDER BY id") == ["1", "2"])
    #expect(try exchange.database.log().map(\.state) == [.applied], "the refusal is forgotten")
  }

  @Test(arguments: [false, true])
  func `the changes of a stranger's file are not read`(isDryRun: Bool) throws {
    let exchange = try Exchange(Self.schema)
    let anna = try person("Anna", in: exchange.folder)
    let path = try #require(try exchange.send("INSERT INTO notes VALUES (2, 2)", signedBy: anna).path)
    // The changes are at the end of the file, so reading them would find the damage.
    var bytes = try Array(Data(contentsOf: URL(fileURLWithPath: path)))
    bytes.removeLast(8)
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    var options = known
    options.isDryRun = isDryRun
    #expect(try exchange.apply(options).diffs.map(\.state) == [.quarantined])
    try trust(anna, in: exchange.home)
    #expect(try exchange.apply(options).diffs.map(\.state) == [.rejected])
  }

  @Test
  func `unsigned diffs and raw changesets are refused from files, folders and on borrowed connections`() throws {
    let exchange = try Exchange(Self.schema)
    let unsigned = try #require(try exchange.send("INSERT INTO notes VALUES (2, 2)").path)
    let raw = try #require(try exchange.send("INSERT INTO notes VALUES (3, 3)", raw: true).path)
    let reasons = [
      "this database trusts known senders only, and this file is unsigned; ask its sender for a signed one",
      "this database trusts known senders only, and a raw changeset has none; ask its sender for a signed diff file",
    ]
    #expect(try exchange.apply(known).diffs.map(\.reason) == reasons)
    let named = try exchange.database.processInboundChanges([unsigned, raw], options: known)
    #expect(named.diffs.map(\.reason) == reasons)
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    let borrowed = try DatabaseManager.borrowing(connection.handle.pointer, home: exchange.home) {
      try $0.processInboundChanges([exchange.inbound], options: known)
    }
    #expect(borrowed.diffs.map(\.reason) == reasons)
    #expect(try exchange.rows("SELECT id FROM notes") == ["1"])
    #expect(try exchange.folder.names(in: "inbound").count == 2)
  }

  @Test
  func `a person's own files from another replica need no contact`() throws {
    let exchange = try Exchange(Self.schema)
    let me = try exchange.home.makeIdentity(named: "Me")
    try exchange.send("INSERT INTO notes VALUES (2, 2)", signedBy: me)
    let inbound = exchange.folder.file("elsewhere")
    try exchange.folder.makeFolder("elsewhere")
    let name = try #require(try exchange.folder.names(in: "inbound").first)
    _ = try exchange.folder.copy("inbound/\(name)", to: "elsewhere/\(name)")
    let report = try exchange.database.processInboundChanges([inbound], options: known)
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(report.diffs.map(\.sender) == ["you"])
  }

  @Test(arguments: [TrustMode.any, .known])
  func `nothing signed with a removed contact's key is applied, even if all are trusted`(_ mode: TrustMode) throws {
    let exchange = try Exchange(Self.schema)
    let anna = try person("Anna", in: exchange.folder)
    try trust(anna, in: exchange.home)
    try exchange.send("INSERT INTO notes VALUES (2, 2)", signedBy: anna)
    try exchange.home.removeContact("Anna")
    let outcome = try #require(try exchange.apply(ApplyOptions(trust: mode)).diffs.first)
    #expect(outcome.state == .rejected)
    #expect(outcome.code == .endedKey)
    #expect(
      outcome.reason
        == "the contact \"Anna\", whose key has signed it, was removed: nothing signed with that key is applied any more"
    )
    #expect(outcome.sender == "key \(anna.card.key) (Anna, removed)")
    #expect(try exchange.rows("SELECT id FROM notes") == ["1"])
  }

  @Test
  func `after a confirmed rotation the new key is accepted, and the old one is not`() throws {
    let exchange = try Exchange(Self.schema)
    let annas = BuckiaHome(path: exchange.folder.file("home of Anna"))
    let before = try annas.makeIdentity(named: "Anna")
    try trust(before, in: exchange.home)
    let rotation = try annas.rotateIdentity()
    let after = try annas.identity()
    try exchange.home.addContact(rotation.text)
    // An unconfirmed rotation changes nothing yet.
    try exchange.send("INSERT INTO notes VALUES (2, 2)", signedBy: after)
    let proposed = try #require(try exchange.apply(known).diffs.first)
    #expect(proposed.state == .quarantined)
    #expect(proposed.reason?.contains("compare the fingerprint \(after.fingerprint) with them") == true)
    try exchange.send("INSERT INTO notes VALUES (3, 3)", signedBy: before)
    #expect(try exchange.apply().diffs.map(\.state) == [.quarantined, .applied])
    try exchange.home.trustContact("Anna", fingerprint: after.fingerprint)
    try exchange.send("INSERT INTO notes VALUES (4, 4)", signedBy: before)
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.applied, .rejected])
    #expect(report.diffs.last?.reason?.contains("is signed with a key that the contact \"Anna\" has replaced") == true)
    #expect(try exchange.rows("SELECT id FROM notes ORDER BY id") == ["1", "2", "3"])
  }

  @Test
  func `a waiting file of a contact who was removed meanwhile is not applied when its predecessor arrives`() throws {
    let exchange = try Exchange(StreamAuthor.schema)
    let anna = try person("Anna", in: exchange.folder)
    try trust(anna, in: exchange.home)
    var author = try StreamAuthor()
    author.identity = anna
    let first = try author.next(after: nil)
    let second = try author.next(after: first)
    try exchange.folder.write(second.bytes, to: "inbound/\(second.name)")
    #expect(try exchange.apply(known).diffs.map(\.state) == [.waiting])
    try exchange.home.removeContact("Anna")
    try exchange.folder.write(first.bytes, to: "inbound/\(first.name)")
    #expect(try exchange.apply(ApplyOptions(trust: .any)).diffs.map(\.state) == [.rejected, .rejected])
    #expect(try exchange.rows("SELECT id FROM t").isEmpty)
    #expect(try exchange.database.status().ledger?.waiting == 0)
  }

  @Test(arguments: [TrustMode.any, .known])
  func `held changes of a removed contact stay held when they could be applied`(_ mode: TrustMode) throws {
    let exchange = try Exchange(Self.schema)
    let anna = try person("Anna", in: exchange.folder)
    let ben = try person("Ben", in: exchange.folder)
    for contact in [anna, ben] { try trust(contact, in: exchange.home) }
    for (number, contact) in [(2, anna), (3, ben)] {
      try exchange.send(
        "ALTER TABLE notes ADD COLUMN stars; INSERT INTO notes VALUES (\(number), \(number), \(number))",
        signedBy: contact)
    }
    #expect(try exchange.apply(ApplyOptions(schema: .hold, trust: .known)).diffs.map(\.state) == [.held, .held])
    try exchange.home.removeContact("Anna")
    try TestDatabases.run("ALTER TABLE notes ADD COLUMN stars", on: exchange.mine)
    let report = try exchange.apply(ApplyOptions(trust: mode))
    #expect(report.diffs.map(\.state) == [.held, .applied])
    #expect(report.diffs.first?.reason?.contains("the contact \"Anna\", whose key has signed it, was removed") == true)
    // Held changes of other contacts are applied.
    #expect(try exchange.rows("SELECT id, stars FROM notes ORDER BY id") == ["1|NULL", "2|NULL", "3|3"])
    #expect(try exchange.apply().diffs.map(\.state) == [.held])
    #expect(try exchange.rows("SELECT count(*) FROM buckia_held_part") == ["1"])
  }

  @Test
  func `held changes of a contact who has new keys are applied`() throws {
    let exchange = try Exchange(Self.schema)
    let annas = BuckiaHome(path: exchange.folder.file("home of Anna"))
    let before = try annas.makeIdentity(named: "Anna")
    try trust(before, in: exchange.home)
    try exchange.send("ALTER TABLE notes ADD COLUMN stars; INSERT INTO notes VALUES (2, 2, 2)", signedBy: before)
    #expect(try exchange.apply(ApplyOptions(schema: .hold, trust: .known)).diffs.map(\.state) == [.held])
    try exchange.home.addContact(try annas.rotateIdentity().text)
    try exchange.home.trustContact("Anna", fingerprint: try annas.identity().fingerprint)
    try TestDatabases.run("ALTER TABLE notes ADD COLUMN stars", on: exchange.mine)
    #expect(try exchange.apply().diffs.map(\.state) == [.applied])
    #expect(try exchange.rows("SELECT stars FROM notes WHERE id = 2") == ["2"])
  }

  @Test
  func `held changes of strangers stay held once only known senders are trusted`() throws {
    let exchange = try Exchange(Self.schema)
    try exchange.send("ALTER TABLE notes ADD COLUMN stars; INSERT INTO notes VALUES (2, 2, 2)")
    #expect(try exchange.apply(ApplyOptions(schema: .hold)).diffs.map(\.state) == [.held])
    try TestDatabases.run("ALTER TABLE notes ADD COLUMN stars", on: exchange.mine)
    #expect(try exchange.apply(known).diffs.map(\.state) == [.held])
    #expect(try exchange.rows("SELECT stars FROM notes WHERE id = 2") == ["NULL"])
    #expect(try exchange.apply(ApplyOptions(trust: .any)).diffs.map(\.state) == [.applied])
    #expect(try exchange.rows("SELECT stars FROM notes WHERE id = 2") == ["2"])
  }

  @Test
  func `a contacts file that others can write is an error, and nothing is applied`() throws {
    let exchange = try Exchange(Self.schema)
    let anna = try person("Anna", in: exchange.folder)
    try trust(anna, in: exchange.home)
    try exchange.send("INSERT INTO notes VALUES (2, 2)", signedBy: anna)
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o666], ofItemAtPath: "\(exchange.home.path)/contacts.json")
    let error = #expect(throws: BuckiaError.self) { try exchange.apply() }
    #expect(error?.code == .notPrivate)
    #expect(try exchange.rows("SELECT id FROM notes") == ["1"])
  }

  @Test
  func `a raw changeset cannot be signed`() throws {
    let exchange = try Exchange(Self.schema)
    let anna = try person("Anna", in: exchange.folder)
    let error = #expect(throws: BuckiaError.self) {
      try exchange.send("INSERT INTO notes VALUES (2, 2)", raw: true, signedBy: anna)
    }
    #expect(error?.code == .cannotSign)
    #expect(try exchange.folder.names(in: "inbound").isEmpty)
  }
}
