import Buckia
import Foundation
import SQLiteConnections
import TestSupport
import Testing

/// Shares with more people than one file can be encrypted for.
@Suite struct ManyRecipientsTests {
  private let folder: TemporaryFolder
  private let path: String
  private let home: BuckiaHome
  private let scope = ShareScope(name: "all") { SharedTable("note") }

  init() throws {
    folder = try TemporaryFolder()
    path = try TestDatabases.run(
      "CREATE TABLE note(id INTEGER PRIMARY KEY, text); INSERT INTO note VALUES (1,'first')",
      on: folder.file("anna.sqlite"))
    home = BuckiaHome(path: folder.file("home of anna"))
    try home.makeIdentity(named: "Anna")
  }

  /// A recipient who is named by a key alone.
  private struct Reader {
    let identity = AgeIdentity()
    let recipient: ShareRecipient

    init() throws { recipient = try ShareRecipient(identity.recipient()) }

    static func some(_ count: Int) throws -> [Reader] { try (0..<count).map { _ in try Reader() } }

    func isAmong(_ file: ShareReport.Delivery) -> Bool { file.recipients.contains(recipient.name) }
  }

  private var outbox: String { folder.file("outbox") }

  private func share(to recipients: [ShareRecipient], _ output: DiffOutput? = nil) throws -> ShareReport {
    try DatabaseManager(path, home: home).share(
      scope, to: recipients, output: output ?? .folder(outbox), signedBy: home.identity())
  }

  /// The outcome of a file that is applied with the identity of a reader.
  private func outcome(of file: String, with reader: Reader) throws -> DiffOutcome {
    let database = try TestDatabases.run("VACUUM", on: folder.file("\(UUID().uuidString).sqlite"))
    var options = ApplyOptions()
    options.decryption = try FileDecryption(identities: [reader.identity])
    let report = try DatabaseManager(database, home: BuckiaHome(path: folder.file("stranger's home")))
      .processInboundChanges([file], options: options)
    return try #require(report.diffs.first)
  }

  @Test func `130 recipients get three files of one diff, and each can open only the file of their group`() throws {
    let readers = try Reader.some(130)
    let recipients = readers.map(\.recipient)
    let report = try share(to: recipients)
    let id = try #require(report.id)
    #expect(report.files.map(\.recipients.count) == [64, 64, 2])
    #expect(report.files.map(\.path) == ["", "/group-2", "/group-3"].map { "\(outbox)\($0)/\(id).bdiff.age" })
    #expect(report.path == report.files.first?.path)
    #expect(Set(report.files.flatMap(\.recipients)) == Set(recipients.map(\.name)))
    for file in report.files { #expect(try fileBytes(#require(file.path)).count == file.bytes) }

    for group in [0, 2] {
      let reader = try #require(readers.first { $0.isAmong(report.files[group]) })
      let codes = try report.files.map { try outcome(of: #require($0.path), with: reader).code }
      #expect(codes == (0..<3).map { $0 == group ? nil : .noMatchingIdentity })
    }
    // All files have the same content, byte for byte.
    let contents = try report.files.map { file in
      let opener = try #require(readers.first { $0.isAmong(file) })
      let plain = folder.file(UUID().uuidString)
      try FileDecryption(identities: [opener.identity]).decrypt(#require(file.path), to: plain)
      return try fileBytes(plain)
    }
    #expect(Set(contents).count == 1)

    // The same people, in another order, stay in their groups.
    try TestDatabases.run("UPDATE note SET text = 'second'", on: path)
    let next = try share(to: recipients.reversed())
    #expect(!next.isSnapshot)
    #expect(next.files.map(\.recipients) == report.files.map(\.recipients))
  }

  @Test func `each recipient can open exactly one file`() throws {
    let readers = try Reader.some(70)
    let report = try share(to: readers.map(\.recipient))
    let files = try report.files.map { try #require($0.path) }
    for reader in readers {
      let opened = files.filter { file in
        do {
          try FileDecryption(identities: [reader.identity]).decrypt(file, to: folder.file(UUID().uuidString))
          return true
        } catch {
          return false
        }
      }
      #expect(opened.count == 1)
    }
  }

  @Test func `contacts, cards and age recipients are divided together, and a person with two names gets one file`()
    throws
  {
    let ben = BuckiaHome(path: folder.file("home of ben"))
    let card = try ben.makeIdentity(named: "Ben").card
    try home.addContact(card.text)
    try home.trustContact("Ben", fingerprint: card.fingerprint)
    let cara = BuckiaHome(path: folder.file("home of cara"))
    let recipients =
      try Reader.some(64).map(\.recipient) + [
        ShareRecipient(home.contact(named: "Ben")), ShareRecipient(cara.makeIdentity(named: "Cara").card),
        ShareRecipient(#require(ShareRecipient(card).key)),
      ]
    let report = try share(to: recipients)
    #expect(report.files.count == 2)
    #expect(report.files.map(\.recipients.count).reduce(0, +) == 67)
    for person in [ben, cara] {
      let database = try TestDatabases.run("VACUUM", on: folder.file("\(UUID().uuidString).sqlite"))
      let states = try report.files.map { file in
        try DatabaseManager(database, home: person).processInboundChanges([#require(file.path)]).diffs.map(\.state)
      }
      #expect(states.filter { $0 == [.applied] }.count == 1)
      #expect(states.filter { $0 == [.rejected] }.count == 1)
    }
  }

  @Test func `after a crash between two files, the missing ones are written with the same id and bytes`() throws {
    let readers = try Reader.some(130)
    let recipients = readers.map(\.recipient)
    // The second folder cannot be made, as if the disk had failed there.
    try folder.makeFolder("outbox")
    try folder.write(Array("in the way".utf8), to: "outbox/group-2")
    #expect(throws: (any Error).self) { try share(to: recipients) }
    let written = try folder.names(in: "outbox").filter { $0.hasSuffix(".bdiff.age") }
    #expect(written.count == 1)
    let before = try fileBytes(folder.file("outbox/\(written[0])"))
    try FileManager.default.removeItem(atPath: folder.file("outbox/group-2"))
    let report = try share(to: recipients)
    #expect(report.id == nil, "nothing has changed since")
    #expect(report.delivered.map { URL(fileURLWithPath: $0.path ?? "").lastPathComponent } == [written[0], written[0]])
    #expect(report.delivered.map(\.recipients.count) == [64, 2])
    #expect(try fileBytes(folder.file("outbox/\(written[0])")) == before)
    let last = try #require(report.delivered.last)
    let reader = try #require(readers.first { $0.isAmong(last) })
    #expect(try outcome(of: #require(last.path), with: reader).state == .applied)
    #expect(try share(to: recipients).delivered.isEmpty)
  }

  @Test func `a share of several files to one file or stream is an error, and nothing is recorded`() throws {
    let recipients = try Reader.some(65).map(\.recipient)
    for output in [DiffOutput.file(folder.file("one.bdiff.age"), replacing: false), .stream { _ in }] {
      let error = #expect(throws: BuckiaError.self) { try share(to: recipients, output) }
      #expect(error?.message.contains("2 files are needed") == true)
      #expect(error?.message.contains("name a folder") == true)
    }
    #expect(try share(to: recipients).isSnapshot)
  }

  @Test func `a share of several files to both quantum-safe and other recipients is refused`() throws {
    let recipients =
      try Reader.some(64).map(\.recipient) + [ShareRecipient(AgeIdentity(quantumSafe: true).recipient())]
    #expect {
      try share(to: recipients)
    } throws: {
      (BuckiaError.wrapped($0) as? BuckiaError)?.code == .mixedRecipients
    }
  }

  @Test func `2,000 recipients get one diff, whose manifest names each of them`() throws {
    let readers = try Reader.some(2_000)
    let report = try share(to: readers.map(\.recipient))
    #expect(report.files.count == 32)
    let last = try #require(report.files.last)
    let reader = try #require(readers.first { $0.isAmong(last) })
    #expect(try outcome(of: #require(last.path), with: reader).state == .applied)
    #expect(report.bytes > 2_000 * 32 && report.bytes < 2_000 * 45, "\(report.bytes) bytes")
  }

  @Test func `more recipients than a manifest can name are refused`() throws {
    let keys = (0...10_000).compactMap { number in
      AgeRecipient(x25519: (0..<32).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) })
    }
    let error = #expect(throws: BuckiaError.self) { try share(to: keys.map { ShareRecipient($0) }) }
    #expect(error?.code == .cannotEncrypt)
    #expect(error?.message.contains("up to 10000 recipients") == true)
  }
}
