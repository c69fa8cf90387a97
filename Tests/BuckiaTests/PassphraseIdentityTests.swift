import BuckiaFormat
import BuckiaBytes
import Foundation
import TestSupport
import Testing

@testable import Buckia
@testable import BuckiaFormat

/// Identities that a passphrase protects.
@Suite struct PassphraseIdentityTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// A passphrase with a work factor that tests can afford.
  private func passphrase(_ text: String) -> IdentityPassphrase { IdentityPassphrase(Array(text.utf8), workFactor: 4) }

  private func home(_ passphrase: IdentityPassphrase? = nil) -> BuckiaHome {
    BuckiaHome(path: folder.file("home"), passphrase: passphrase)
  }

  private var file: String { folder.file("home/identity") }
  private func bytes(_ name: String = "identity") throws -> [UInt8] {
    Array(try Data(contentsOf: URL(fileURLWithPath: folder.file("home/\(name)"))))
  }

  private func code(_ body: () throws -> Void) -> BuckiaErrorCode? {
    do {
      try body()
      return nil
    } catch { return (error as? BuckiaError)?.code }
  }

  /// Counts how often the passphrase is asked for.
  private final class Asked: @unchecked Sendable {
    // Used by one test, on one thread at a time.
    var count = 0
  }

  @Test func `the secret keys can be read with the passphrase only, and the card without it`() throws {
    let made = try home(passphrase("horse")).makeIdentity(named: "Anna")
    let sealed = String(decoding: try bytes(), as: UTF8.self)
    #expect(sealed.hasPrefix("-----BEGIN AGE ENCRYPTED FILE-----"))
    #expect(try home(passphrase("horse")).identity() == made)
    #expect(try home().publicIdentity() == made.publicPart())
    #expect(try home().ownCard() == made.card)
    #expect(code { _ = try home().identity() } == .passphraseNeeded)
    #expect(code { _ = try home(passphrase("cow")).identity() } == .noMatchingIdentity)
    #expect(code { _ = try home(passphrase("")).identity() } == BuckiaErrorCode(rawValue: "emptyPassphrase"))
    #expect(try home().isIdentityProtected() == true)
    let beside = String(decoding: try bytes("identity.public"), as: UTF8.self)
    for secret in [made.signing, made.encryption] {
      #expect(!beside.contains(secret.bytes.map { String($0, radix: 16) }.joined()))
    }
    for name in ["identity", "identity.public"] {
      let attributes = try FileManager.default.attributesOfItem(atPath: folder.file("home/\(name)"))
      #expect(attributes[.posixPermissions] as? Int == 0o600, "\(name)")
    }
  }

  @Test func `a protected identity can be decrypted as an age file`() throws {
    let made = try home(passphrase("horse")).makeIdentity(named: "Anna")
    try FileDecryption(identities: [], passphrase: "horse").decrypt(file, to: folder.file("plain"))
    let plain = Array(try Data(contentsOf: URL(fileURLWithPath: folder.file("plain"))))
    #expect(try Identity(document: plain) == made)
    let keys = try AgeIdentity.identities(of: made).map { try $0.recipient() }
    #expect(
      try AgeIdentity.identities(inFile: file, passphrase: passphrase("horse")).map { try $0.recipient() } == keys)
    #expect(code { _ = try AgeIdentity.identities(inFile: file) } == .passphraseNeeded)
  }

  @Test func `a passphrase can be added, changed and removed, and the keys stay`() throws {
    let made = try home().makeIdentity(named: "Anna")
    #expect(try home().isIdentityProtected() == false)
    try home().changePassphrase(to: passphrase("one"))
    #expect(try home(passphrase("one")).identity() == made)
    #expect(code { try home(passphrase("two")).changePassphrase(to: nil) } == .noMatchingIdentity)
    #expect(code { try home().changePassphrase(to: nil) } == .passphraseNeeded)
    let before = try bytes()
    #expect(code { try home(passphrase("one")).changePassphrase(to: passphrase("")) } != nil)
    #expect(try bytes() == before, "a change that fails leaves it as it was")
    try home(passphrase("one")).changePassphrase(to: passphrase("two"))
    #expect(code { _ = try home(passphrase("one")).identity() } == .noMatchingIdentity)
    try home(passphrase("two")).changePassphrase(to: nil)
    #expect(try home().identity() == made)
  }

  @Test func `new keys are protected like the old ones, and the old ones can still open files`() throws {
    let home = home(passphrase("horse"))
    let first = try home.makeIdentity(named: "Anna")
    let rotation = try home.rotateIdentity()
    #expect(try self.home().isIdentityProtected() == true)
    let identity = try self.home().publicIdentity()
    #expect(identity.card == rotation.card && identity.rotations == [rotation])
    #expect(identity.encryptionKeys == [rotation.card.encryptionKey, first.card.encryptionKey])
    #expect(try home.identity().decryptionSeeds.count == 2)
    // A passphrase that was not needed does not protect the new keys.
    let plain = BuckiaHome(path: folder.file("plain"), passphrase: nil)
    try plain.makeIdentity(named: "Ben")
    let asked = BuckiaHome(path: folder.file("plain"), passphrase: passphrase("x"))
    _ = try asked.rotateIdentity()
    #expect(try plain.isIdentityProtected() == false)
  }

  @Test func `after a crash between writing the two files, the next unlocking repairs the public one`() throws {
    let home = home(passphrase("horse"))
    try home.makeIdentity(named: "Anna")
    let old = try bytes("identity.public")
    let rotation = try home.rotateIdentity()
    try Data(old).write(to: URL(fileURLWithPath: folder.file("home/identity.public")))
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o600], ofItemAtPath: folder.file("home/identity.public"))
    #expect(try self.home().publicIdentity().card != rotation.card)
    _ = try home.identity()
    #expect(try self.home().publicIdentity().card == rotation.card)
    try FileManager.default.removeItem(atPath: folder.file("home/identity.public"))
    #expect(code { _ = try self.home().publicIdentity() } == .passphraseNeeded)
    #expect(try home.publicIdentity().card == rotation.card)
    #expect(try self.home().publicIdentity().card == rotation.card)
  }

  @Test(arguments: [
    "{}", "{\"format\":2}", "nonsense",
    #"{"format":1,"card":"buckia-card-1:e30.e30","rotations":[],"encryption":[]}"#,
  ])
  func `a damaged public part is refused`(_ text: String) throws {
    try home(passphrase("horse")).makeIdentity(named: "Anna")
    let path = folder.file("home/identity.public")
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    #expect(code { _ = try home().publicIdentity() } != nil)
  }

  @Test func `the passphrase is not asked for if no file needs it, and only once for several files`() throws {
    let schema = "CREATE TABLE notes(id INTEGER PRIMARY KEY, n); INSERT INTO notes VALUES (1, 1)"
    let exchange = try Exchange(schema)
    let protected = BuckiaHome(path: exchange.home.path, passphrase: passphrase("horse"))
    let ben = try protected.makeIdentity(named: "Ben")
    let asked = Asked()
    let home = BuckiaHome(
      path: exchange.home.path,
      passphrase: IdentityPassphrase {
        asked.count += 1
        return Array("horse".utf8)
      })
    try exchange.send("INSERT INTO notes VALUES (2, 2)")
    let database = DatabaseManager(exchange.mine, home: home)
    let plain = try database.processInboundChanges([exchange.inbound])
    #expect(plain.diffs.map(\.state) == [.applied])
    #expect(asked.count == 0)
    // Files that are encrypted for Ben need the passphrase, once for all of them.
    let annas = BuckiaHome(path: folder.file("home of Anna"))
    let anna = try annas.makeIdentity(named: "Anna")
    let theirs = try TestDatabases.run("CREATE TABLE extra(id INTEGER PRIMARY KEY)", on: folder.file("anna.sqlite"))
    for number in 1...2 {
      try TestDatabases.run("INSERT INTO extra VALUES (\(number))", on: theirs)
      try DatabaseManager(theirs, home: annas).share(
        ShareScope { SharedTable("extra") }, to: [ShareRecipient(ben.card)], output: .folder(exchange.inbound),
        signedBy: anna)
    }
    let locked = try exchange.database.processInboundChanges([exchange.inbound])
    #expect(locked.diffs.map(\.state) == [.rejected, .rejected])
    #expect(locked.diffs.allSatisfy { $0.reason?.contains("protected by a passphrase") == true })
    let opened = try database.processInboundChanges([exchange.inbound])
    #expect(opened.diffs.map(\.state) == [.applied, .applied])
    #expect(asked.count == 1)
  }
}
