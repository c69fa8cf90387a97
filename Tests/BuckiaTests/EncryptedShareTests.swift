import Buckia
import BuckiaBytes
import BuckiaFormat
import Foundation
import TestSupport
import Testing

@testable import SQLiteConnections

/// Shares that only their recipients can open.
@Suite struct EncryptedShareTests {
  private let folder: TemporaryFolder
  private let path: String
  private let scope = ShareScope(name: "all") { SharedTable("note") }

  init() throws {
    folder = try TemporaryFolder()
    path = try TestDatabases.run(
      "CREATE TABLE note(id INTEGER PRIMARY KEY, text); INSERT INTO note VALUES (1,'canary')",
      on: folder.file("anna.sqlite"))
    for name in ["Anna", "Ben", "Cara"] {
      try home(name).makeIdentity(named: name)
      try TestDatabases.run("VACUUM", on: folder.file("\(name).sqlite"))
    }
    try know("Ben", in: home("Anna"))
    try know("Anna", in: home("Ben"))
  }

  private var outbox: String { folder.file("outbox") }

  private func home(_ name: String) -> BuckiaHome { BuckiaHome(path: folder.file("home of \(name)")) }

  private func know(_ name: String, in other: BuckiaHome) throws {
    let card = try home(name).identity().card
    try other.addContact(card.text)
    try other.trustContact(name, fingerprint: card.fingerprint)
  }

  @discardableResult
  private func share(to recipients: [ShareRecipient]? = nil, output: DiffOutput? = nil) throws -> ShareReport {
    let ben = try ShareRecipient(home("Anna").contact(named: "Ben"))
    return try DatabaseManager(path, home: home("Anna")).share(
      scope, to: recipients ?? [ben], output: output ?? .folder(outbox), signedBy: home("Anna").identity())
  }

  private func received(
    _ source: String? = nil, by name: String, _ decryption: FileDecryption? = nil, trust: TrustMode? = nil
  ) throws -> DiffOutcome {
    var options = ApplyOptions(trust: trust)
    options.keepsFiles = true
    options.decryption = decryption
    let report = try DatabaseManager(folder.file("\(name).sqlite"), home: home(name)).processInboundChanges(
      [source ?? outbox], options: options)
    return try #require(report.diffs.first)
  }

  private func texts(_ name: String) throws -> [String] {
    try TestDatabases.texts("SELECT text FROM note ORDER BY id", on: folder.file("\(name).sqlite"))
  }

  @Test func `a recipient can apply an encrypted share, and no other person can open it`() throws {
    let report = try share()
    let file = try #require(report.path)
    let id = try #require(report.id)
    #expect(file.hasSuffix("/\(id).bdiff.age"))
    #expect(try report.bytes == fileBytes(file).count)
    #expect(try received(by: "Ben", trust: .known).state == .applied)
    #expect(try texts("Ben") == ["canary"])
    let other = try received(by: "Cara")
    #expect(other.state == .rejected && other.code == .noMatchingIdentity, "\(other)")
    let stranger = try DatabaseManager(folder.file("Cara.sqlite"), home: BuckiaHome(path: folder.file("stranger's")))
      .processInboundChanges([outbox], options: ApplyOptions())
    #expect(stranger.diffs.map(\.code) == [.encrypted])
    #expect(stranger.diffs.first?.reason?.contains("neither an identity nor a passphrase") == true)

    try TestDatabases.run("UPDATE note SET text = 'next'", on: path)
    try FileManager.default.removeItem(atPath: file)
    try share()
    #expect(try received(by: "Ben").updated == 1)
    #expect(try texts("Ben") == ["next"])
  }

  @Test func `a recipient can open a share after rotating keys`() throws {
    try share()
    _ = try home("Ben").rotateIdentity()
    #expect(try received(by: "Ben").state == .applied)
  }

  @Test func `an age identity can be a recipient, and opens the share`() throws {
    let identity = AgeIdentity()
    try share(to: [ShareRecipient(identity.recipient())])
    #expect(try received(by: "Cara").code == .noMatchingIdentity)
    #expect(try received(by: "Cara", FileDecryption(identities: [identity])).state == .applied)
  }

  @Test(.enabled(if: AgeProgram.isInstalled, Comment(rawValue: AgeProgram.requirement)))
  func `the age program decrypts a share to the diff file for each recipient`() throws {
    let identity = AgeIdentity()
    let ben = try ShareRecipient(home("Anna").contact(named: "Ben"))
    let file = try #require(try share(to: [ben, ShareRecipient(identity.recipient())]).path)
    let bens = try AgeIdentity.identities(of: home("Ben").identity())
    for (number, keys) in [[identity], bens].enumerated() {
      let (key, plain) = (folder.file("key \(number)"), folder.file("plain \(number)"))
      try folder.write(Array(keys.map(\.secretText).joined(separator: "\n").utf8), to: "key \(number)")
      #expect(try AgeProgram.run("age", ["-d", "-i", key, "-o", plain, file]) == 0)
      // The magic number of a zstd frame.
      #expect(try fileBytes(plain).prefix(4) == [0x28, 0xB5, 0x2F, 0xFD])
      #expect(try received(plain, by: "Ben").state == (number == 0 ? .applied : .alreadyApplied))
    }
  }

  @Test func `a share that its recipient passes on to another person is refused there, encrypted or not`() throws {
    let file = try #require(try share().path)
    let plain = folder.file("passed on")
    try FileDecryption(identities: AgeIdentity.identities(of: home("Ben").identity())).decrypt(file, to: plain)
    #expect(try received(plain, by: "Cara").code == .notAddressed)
    let cara = try ShareRecipient(home("Cara").identity().card)
    let again = folder.file("again")
    try FileEncryption(to: [#require(cara.key)]).encrypt(plain, to: again)
    let refused = try received(again, by: "Cara")
    #expect(refused.state == .rejected && refused.code == .notAddressed, "\(refused)")
    #expect(try DiffInspection.verify([again], home: home("Cara")).files.map(\.isGood) == [false])
    // The recipient can still apply the file.
    #expect(try received(plain, by: "Ben").state == .applied)
  }

  @Test func `a signed file without recipients is refused if encrypted to a key, but not with a passphrase`() throws {
    let before = try TestDatabases.run(
      "CREATE TABLE note(id INTEGER PRIMARY KEY, text)", on: folder.file("before.sqlite"))
    let made = try DatabaseManager(path, home: home("Anna")).createDatabaseDiff(
      since: before, output: .folder(folder.file("diffs")), signedBy: home("Anna").identity())
    let plain = try #require(made.path)
    let sealed = folder.file("sealed")
    try FileEncryption(to: [#require(ShareRecipient(home("Ben").identity().card).key)]).encrypt(plain, to: sealed)
    #expect(try received(sealed, by: "Ben").code == .notAddressed)
    let secret = folder.file("secret")
    try FileEncryption(passphrase: Array("sword fish".utf8), workFactor: 10).encrypt(plain, to: secret)
    #expect(try received(secret, by: "Ben", FileDecryption(identities: [], passphrase: "sword fish")).state == .applied)
  }

  @Test func `without a key to encrypt for, or one to sign with, nothing is shared`() throws {
    for recipients in [
      [ShareRecipient("dora")], [try ShareRecipient(home("Ben").identity().card), ShareRecipient("dora")],
    ] {
      #expect { try share(to: recipients) } throws: { ($0 as? BuckiaError)?.code == .cannotEncrypt }
    }
    let ben = try ShareRecipient(home("Anna").contact(named: "Ben"))
    #expect {
      try DatabaseManager(path, home: home("Anna")).share(scope, to: [ben], output: .folder(outbox))
    } throws: {
      ($0 as? BuckiaError)?.code == .noIdentity
    }
    #expect(!FileManager.default.fileExists(atPath: outbox))
    #expect(try share().isSnapshot)
  }

  @Test func `a recipient whose card is not confirmed causes a warning`() throws {
    try home("Anna").addContact(home("Cara").identity().card.text)
    let cara = try ShareRecipient(home("Anna").contact(named: "Cara"))
    #expect(try share(to: [cara]).warnings.map(\.code) == [.recipientUnconfirmed])
    #expect(try share().warnings.isEmpty)
  }

  @Test func `a share that could not be written is delivered by the next call`() throws {
    let text = "canary \(UUID().uuidString)"
    try TestDatabases.run("UPDATE note SET text = '\(text)'", on: path)
    let blocked = folder.file("blocked")
    try folder.write(Array("taken".utf8), to: "blocked")
    #expect(throws: (any Error).self) { try share(output: .file(blocked, replacing: false)) }
    let report = try share()
    #expect(report.delivered.count == 1)
    #expect(report.id == nil)
    #expect(try received(by: "Ben").state == .applied)
    #expect(try texts("Ben") == [text])
  }

  @Test(arguments: [0, 1])
  func `a truncated or misnamed file is refused, and the good file after it is applied`(
    kind: Int
  ) throws {
    let first = try #require(try share().path)
    let bytes = try fileBytes(first)
    try FileManager.default.removeItem(atPath: first)
    let name = kind == 0 ? URL(fileURLWithPath: first).lastPathComponent : "000000000000000000000000000.bdiff.age"
    try folder.write(kind == 0 ? Array(bytes.dropLast()) : bytes, to: "outbox/\(name)")
    let refused = try received(by: "Ben")
    #expect(refused.code == (kind == 0 ? .alteredPayload : BuckiaErrorCode(rawValue: "idMismatch")), "\(refused)")
    try folder.write(bytes, to: "outbox/\(URL(fileURLWithPath: first).lastPathComponent)")
    var options = ApplyOptions()
    options.keepsFiles = true
    let report = try DatabaseManager(folder.file("Ben.sqlite"), home: home("Ben")).processInboundChanges(
      [outbox], options: options)
    #expect(report.diffs.contains { $0.state == .applied })
  }

  @Test func `a recipient can verify and inspect an encrypted share, and another person cannot open it`() throws {
    let file = try #require(try share().path)
    let checked = try DiffInspection.verify([file], home: home("Ben")).files
    #expect(checked.map(\.isGood) == [true] && checked.map(\.isEncrypted) == [true])
    #expect(checked.map(\.sender) == ["Anna"])
    #expect(try DiffInspection.open(file, home: home("Ben")).summary.changeCount == 1)
    #expect { try DiffInspection.open(file, home: home("Cara")) } throws: {
      ($0 as? BuckiaError)?.code == .noMatchingIdentity
    }
  }

  @Test func `a connection that cannot avoid temporary files is refused, and left unchanged`() throws {
    let connection = try SQLiteConnection(opening: path, as: .readWrite)
    try connection.execute(
      "PRAGMA temp_store = FILE; CREATE TEMP TABLE of_the_app(x); INSERT INTO of_the_app VALUES (7)")
    let ben = try ShareRecipient(home("Anna").contact(named: "Ben"))
    func share() throws -> ShareReport {
      try DatabaseManager.borrowing(connection.handle.pointer, home: home("Anna")) {
        try $0.share(scope, to: [ben], output: .folder(outbox), signedBy: home("Anna").identity())
      }
    }
    #expect { try share() } throws: { ($0 as? BuckiaError)?.code == .cannotEncrypt }
    #expect(try connection.integer("SELECT x FROM of_the_app") == 7)
    try connection.execute("DROP TABLE of_the_app")
    #expect(try share().isSnapshot)
    #expect(try connection.integer("PRAGMA temp_store") == 1)
  }

  #if os(Linux)
    /// True if a deleted file that this process has open contains the text.
    private func openFilesHold(_ text: String) -> Bool {
      let folder = "/proc/self/fd"
      let wanted = Data(text.utf8)
      let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
      return names.contains { name in
        guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(name)"),
          target.hasSuffix("(deleted)"), let bytes = FileManager.default.contents(atPath: "\(folder)/\(name)")
        else { return false }
        return bytes.range(of: wanted) != nil
      }
    }

    @Test(arguments: [false, true])
    func `no plaintext of an encrypted share is in temporary files, on either side`(isUnencrypted: Bool) throws {
      let canary = "canary \(UUID().uuidString)"
      try TestDatabases.run(
        """
        WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
        INSERT INTO note SELECT i, '\(canary) ' || hex(randomblob(200)) FROM n;
        """, on: path)
      var found = (sending: false, receiving: false)
      var options = ShareOptions()
      options.isUnencrypted = isUnencrypted
      let ben = try ShareRecipient(home("Anna").contact(named: "Ben"))
      let seen = Seen()
      let report = try DatabaseManager(path, home: home("Anna")).share(
        scope, to: [ben], output: .folder(outbox), options: options, signedBy: home("Anna").identity(),
        progress: { _ in seen.look { openFilesHold(canary) } })
      found.sending = seen.isFound
      let again = Seen()
      try DatabaseManager(folder.file("Ben.sqlite"), home: home("Ben")).processInboundChanges(
        [outbox], progress: { _ in again.look { openFilesHold(canary) } })
      found.receiving = again.isFound
      #expect(try texts("Ben").count == 30_000)
      #expect(report.bytes > 5_000_000)
      #expect(found.sending == isUnencrypted && found.receiving == isUnencrypted, "\(found)")
    }

    @Test(arguments: [false, true])
    func `no plaintext is in temporary files when an encrypted share is verified or shown`(isUnencrypted: Bool) throws {
      let canary = "canary \(UUID().uuidString)"
      try TestDatabases.run(
        """
        WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
        INSERT INTO note SELECT i, '\(canary) ' || hex(randomblob(200)) FROM n;
        """, on: path)
      var options = ShareOptions()
      options.isUnencrypted = isUnencrypted
      let report = try DatabaseManager(path, home: home("Anna")).share(
        scope, to: [ShareRecipient(home("Anna").contact(named: "Ben"))], output: .folder(outbox), options: options,
        signedBy: home("Anna").identity())
      let file = try #require(report.path)
      let verifying = Seen()
      let verified = try DiffInspection.verify([.path(file)], home: home("Ben")) { _ in
        verifying.look { openFilesHold(canary) }
      }
      #expect(verified.files.map(\.isGood) == [true])
      let showing = Seen()
      let shown = try DiffInspection.open(.path(file), home: home("Ben")) { _ in showing.look { openFilesHold(canary) }
      }
      #expect(shown.summary.changeCount == 30_000)
      #expect([verifying.isFound, showing.isFound, openFilesHold(canary)] == Array(repeating: isUnencrypted, count: 3))
    }

    @Test(arguments: [false, true])
    func `no row keys are in SQLite's temporary files when an encrypted share is made`(isUnencrypted: Bool) throws {
      let canary = "canary \(UUID().uuidString)"
      try TestDatabases.run(
        """
        CREATE TABLE label(name TEXT PRIMARY KEY, note INTEGER REFERENCES note(id)) WITHOUT ROWID;
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
        INSERT INTO label SELECT hex(randomblob(80)) || '\(canary)' || i, 1 FROM n
        """, on: path)
      let labels = ShareScope(name: "labels") {
        SharedTable("note").where("id = 1")
        SharedTable("label").children(of: "note")
      }
      var options = ShareOptions()
      options.isUnencrypted = isUnencrypted
      let seen = Seen()
      let report = try DatabaseManager(path, home: home("Anna")).share(
        labels, to: [ShareRecipient(home("Anna").contact(named: "Ben"))], output: .folder(outbox), options: options,
        signedBy: home("Anna").identity(), progress: { _ in seen.look { openFilesHold(canary) } })
      #expect(report.tables.map(\.inserted) == [1, 20_000])
      #expect(seen.isFound == isUnencrypted)
    }
  #endif
}

/// Evaluates a condition now and then, until it is true once.
private final class Seen {
  private(set) var isFound = false
  private var calls = 0

  func look(_ body: () -> Bool) {
    calls += 1
    if !isFound, calls % 4 == 0 || calls < 20 { isFound = body() }
  }
}
