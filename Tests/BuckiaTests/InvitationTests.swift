import BuckiaFormat
import BuckiaBytes
import BuckiaLedger
import Foundation
import TestSupport
import Testing

@testable import Buckia
@testable import BuckiaFormat
@testable import SQLiteConnections

/// Inviting a person, accepting the invitation, and taking the answer.
@Suite struct InvitationTests {
  private let folder: TemporaryFolder
  private let anna: Identity
  private let ben: Identity

  private static let scope = ShareScope(name: "summer") {
    SharedTable("album").where("id = :album", ["album": 1]).omitting("note")
    SharedTable("photo").children(of: "album").rewriting("owner", to: .null)
  }
  private static let day: Int64 = 86_400_000

  init() throws {
    folder = try TemporaryFolder()
    try TestDatabases.run(
      """
      CREATE TABLE album(id INTEGER PRIMARY KEY, name TEXT, note TEXT);
      CREATE TABLE photo(id INTEGER PRIMARY KEY, album INTEGER REFERENCES album(id), title TEXT, owner INTEGER);
      INSERT INTO album VALUES (1,'summer','mine'),(2,'winter','private');
      INSERT INTO photo VALUES (1,1,'beach',7),(2,1,'sea',7),(3,2,'snow',7);
      """, on: folder.file("anna.sqlite"))
    for name in ["ben", "carla"] { try TestDatabases.run("VACUUM", on: folder.file("\(name).sqlite")) }
    anna = try BuckiaHome(path: folder.file("home of anna")).makeIdentity(named: "Anna")
    ben = try BuckiaHome(path: folder.file("home of ben")).makeIdentity(named: "Ben")
    try folder.makeFolder("shared")
  }

  private func home(_ name: String) -> BuckiaHome { BuckiaHome(path: folder.file("home of \(name)")) }
  private func database(_ name: String) -> DatabaseManager {
    DatabaseManager(folder.file("\(name).sqlite"), home: home(name))
  }
  private var now: Int64 { WallClock.unixMilliseconds }
  private var shared: String { folder.file("shared") }

  private func invite(to recipient: String? = nil, at time: Int64? = nil) throws -> Invitation {
    var options = InvitationOptions()
    options.recipient = recipient
    options.folder = shared
    return try database("anna").invite(
      Self.scope, options: options, as: anna, at: time ?? now
    ).invitation
  }

  @discardableResult
  private func accept(
    _ invitation: Invitation, as identity: Identity? = nil, in name: String = "ben", at time: Int64? = nil
  ) throws -> AcceptanceReport {
    try database(name).accept(invitation, answer: .folder(shared), as: identity ?? ben, at: time ?? now)
  }

  private func apply(
    _ paths: [String]? = nil, to name: String = "anna", _ change: (inout ApplyOptions) -> Void = { _ in }
  ) throws -> ApplyReport {
    var options = ApplyOptions()
    change(&options)
    return try database(name).processInboundChanges(paths ?? [shared], options: options)
  }

  private func rows(_ query: String, of name: String) throws -> [String] {
    try TestDatabases.texts(query, on: folder.file("\(name).sqlite"))
  }

  private func code(_ body: () throws -> Void) -> BuckiaErrorCode? {
    do {
      try body()
      return nil
    } catch { return (error as? BuckiaError)?.code }
  }

  /// Writes an answer into the shared folder.
  private func plant(_ text: String) throws -> String {
    let path = "\(shared)/\(DiffFileName.acceptance(.minimum))"
    try Data("\(text)\n".utf8).write(to: URL(fileURLWithPath: path))
    return path
  }

  // MARK: From the invitation to the first rows

  @Test(arguments: [TrustMode.any, .known])
  func `after an answer both people trust each other, and the next share sends the rows`(_ trust: TrustMode) throws {
    try database("anna").initialize(trust: trust)
    let invitation = try Invitation(invite().text)
    #expect(
      invitation.scope.tables.map { "\($0.name): \($0.rows) -\($0.omittedColumns) ~\($0.rewrittenColumns)" } == [
        #"album: rows where id = :album (album = 1) -["note"] ~[]"#,
        #"photo: rows that refer to shared rows of album -[] ~["owner"]"#,
      ])
    let accepted = try accept(invitation)
    #expect(accepted.inviter?.name == "Anna" && accepted.inviter?.state == .trusted && !accepted.wasAccepted)
    #expect(accepted.inviter?.grounds == .fingerprint)
    #expect(try folder.names(in: "shared").count == 1)
    #expect(try folder.names(in: "shared").allSatisfy { $0.hasSuffix(".accept") })

    let taken = try apply()
    #expect(taken.answers.map(\.state) == [.accepted])
    let contact = try #require(taken.answers.first?.contact)
    #expect(contact.name == "Ben" && contact.state == .trusted && contact.grounds == .invitation)
    #expect(contact.card == ben.card)
    #expect(taken.answers.first?.scope == Self.scope)
    #expect(taken.answers.first?.isRemoved == true)
    #expect(try home("anna").contacts().all == [contact])
    #expect(try folder.names(in: "shared").isEmpty)
    #expect(try rows("SELECT audience, sequence FROM buckia_share", of: "anna") == [#"["Ben"]|0"#])

    #expect(try database("anna").sharedScopes(with: [ShareRecipient(contact)]) == [Self.scope])
    #expect(try database("anna").sharedScopes(with: [ShareRecipient(contact), ShareRecipient("x")]).isEmpty)
    // The share is encrypted for Ben, because his card came with the answer.
    let share = try database("anna").share(
      Self.scope, to: [ShareRecipient(contact)], output: .folder(shared), signedBy: anna)
    #expect(share.isSnapshot && share.sequence == 1)
    #expect(share.path?.hasSuffix(".bdiff.age") == true)
    #expect(
      try rows("SELECT lower(hex(stream)) FROM buckia_share", of: "anna")
        == ["\(invitation.stream.stream)"],
      "the stream that was offered")
    let applied = try apply(to: "ben") { $0.trust = .known }
    #expect(applied.diffs.map(\.state) == [.applied])
    #expect(applied.diffs.map(\.sender) == ["Anna"])
    #expect(try rows("SELECT * FROM photo ORDER BY id", of: "ben") == ["1|1|beach|NULL", "2|1|sea|NULL"])
  }

  @Test func `a diff that arrives with the answer is already from a trusted contact`() throws {
    try database("anna").initialize(trust: .known)
    try accept(invite())
    let base = try folder.copy("ben.sqlite", to: "base.sqlite")
    try TestDatabases.run("CREATE TABLE album(id INTEGER PRIMARY KEY, name TEXT, note TEXT)", on: base)
    let theirs = try folder.copy("base.sqlite", to: "theirs.sqlite")
    try TestDatabases.run("INSERT INTO album VALUES (9,'hello','')", on: theirs)
    try DatabaseManager(theirs, home: home("ben")).createDatabaseDiff(
      since: base, output: .folder(shared), signedBy: ben)
    let report = try apply()
    #expect(report.answers.map(\.state) == [.accepted])
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(report.diffs.map(\.sender) == ["Ben"])
  }

  @Test func `the recipient gets the name that the invitation gives, and a contact cannot be invited`() throws {
    try accept(invite(to: "Benno"))
    #expect(try apply().answers.first?.contact?.name == "Benno")
    #expect(code { _ = try invite(to: "benno") } == .contactExists)
    #expect(code { _ = try invite(to: "a/b") } == .invalidName)
  }

  @Test func `an invitation with a missing table or an invalid duration is an error`() throws {
    let scope = ShareScope { SharedTable("nowhere") }
    #expect(code { _ = try database("anna").invite(scope, as: anna) } == .noSuchTable)
    var options = InvitationOptions()
    for days in [0, 366] {
      options.days = days
      #expect(
        code { _ = try database("anna").invite(Self.scope, options: options, as: anna) }
          == .invalidInvitation)
    }
    #expect(try rows("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'buckia%'", of: "anna") == ["0"])
  }

  // MARK: Single use

  @Test func `accepting twice makes no second answer, and delivers the first one if it was not written`() throws {
    let invitation = try invite()
    let first = try accept(invitation)
    let again = try accept(invitation, at: now + 30 * Self.day)
    #expect(again.wasAccepted && again.path == nil && again.inviter == nil)
    #expect(again.answer == first.answer && again.acceptedAt == first.acceptedAt)
    #expect(try folder.names(in: "shared").count == 1)
    // An answer whose delivery a crash has prevented is delivered, with the same bytes.
    try FileManager.default.removeItem(atPath: try #require(first.path))
    try TestDatabases.run("UPDATE buckia_accepted SET is_delivered = 0", on: folder.file("ben.sqlite"))
    let late = try accept(invitation)
    #expect(late.wasAccepted && late.path == first.path)
    #expect(try String(contentsOfFile: try #require(late.path), encoding: .utf8) == "\(first.answer)\n")
  }

  @Test func `a repeated answer changes nothing`() throws {
    try accept(invite())
    #expect(try apply { $0.keepsFiles = true }.answers.map(\.state) == [.accepted])
    let contacts = try home("anna").contacts()
    #expect(try apply { $0.keepsFiles = true }.answers.map(\.state) == [.alreadyAccepted])
    #expect(try home("anna").contacts() == contacts)
    #expect(try rows("SELECT count(*) FROM buckia_share", of: "anna") == ["1"])
  }

  @Test func `after a crash between writing the contact and the database, the next call takes the answer`() throws {
    try accept(invite(to: "Benno"))
    // The contact is written first, so a crash after that leaves this state.
    try home("anna").change { contacts in
      _ = try contacts.admit(ben.card, preferring: ["Benno"], because: .invitation, besides: anna.card, at: 1)
    }
    let report = try apply()
    #expect(report.answers.map(\.state) == [.accepted])
    #expect(report.answers.first?.contact?.trustedAt == 1)
    #expect(try home("anna").contacts().all.map(\.name) == ["Benno"])
    #expect(try rows("SELECT count(used_at) FROM buckia_invitation", of: "anna") == ["1"])
  }

  @Test func `a second person who uses the invitation is refused`() throws {
    let invitation = try invite()
    let carla = try home("carla").makeIdentity(named: "Carla")
    try accept(invitation)
    try accept(invitation, as: carla, in: "carla")
    let report = try apply()
    #expect(report.answers.map(\.state).sorted { $0.rawValue < $1.rawValue } == [.accepted, .refused])
    let refused = try #require(report.answers.first { $0.state == .refused })
    #expect(refused.code == .usedInvitation)
    #expect(refused.reason?.contains("admits one person") == true)
    #expect(try home("anna").contacts().all.count == 1)
    #expect(FileManager.default.fileExists(atPath: refused.path))
  }

  @Test func `a replayed answer does not bring back a contact who was removed`() throws {
    let answer = try accept(invite()).answer
    _ = try apply()
    try home("anna").removeContact("Ben")
    let path = try plant(answer)
    let report = try apply([path])
    #expect(report.answers.map(\.state) == [.refused])
    #expect(report.answers.map(\.code) == [.endedKey])
    #expect(try home("anna").contacts().all.isEmpty)
    // An answer to another invitation does not bring them back, either.
    try accept(invite())
    #expect(try apply().answers.map(\.code).contains(.endedKey))
    #expect(try rows("SELECT count(used_at) FROM buckia_invitation", of: "anna") == ["1"])
  }

  @Test func `a backup from before the answer does not admit a second person`() throws {
    let invitation = try invite()
    let backup = try folder.copy("anna.sqlite", to: "backup.sqlite")
    let carla = try home("carla").makeIdentity(named: "Carla")
    try accept(invitation)
    _ = try apply()
    try FileManager.default.removeItem(atPath: folder.file("anna.sqlite"))
    try FileManager.default.moveItem(atPath: backup, toPath: folder.file("anna.sqlite"))
    try accept(invitation, as: carla, in: "carla")
    let report = try apply()
    #expect(report.answers.map(\.state) == [.refused])
    #expect(report.answers.map(\.code) == [.voidInvitation])
    #expect(try home("anna").contacts().all.map(\.name) == ["Ben"])
  }

  // MARK: Expired, forged, misplaced

  @Test func `an expired invitation is not accepted`() throws {
    let invitation = try invite(at: now - 8 * Self.day)
    #expect(code { try accept(invitation) } == .expiredInvitation)
    #expect(try home("ben").contacts().all.isEmpty)
    #expect(try folder.names(in: "shared").isEmpty)
    #expect(try rows("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'buckia%'", of: "ben") == ["0"])
  }

  @Test func `an answer that arrives after the invitation has expired is refused`() throws {
    let invitation = try invite(at: now - 8 * Self.day)
    try accept(invitation, at: now - 7 * Self.day - 1)
    #expect(code { try accept(invitation, in: "carla", at: now - Self.day) } == .expiredInvitation)
    let report = try apply()
    #expect(report.answers.map(\.code) == [.expiredInvitation])
    #expect(try home("anna").contacts().all.isEmpty)
  }

  @Test func `a person cannot accept their own invitation`() throws {
    let invitation = try invite()
    #expect(
      code {
        _ = try database("anna").accept(invitation, answer: .folder(shared), as: anna)
      } == .ownKey)
    // A person's own answer, in a folder that both use, is left alone.
    try accept(invitation)
    let own = try apply(to: "ben")
    #expect(own.answers.map(\.state) == [.notOurs])
    #expect(try folder.names(in: "shared").count == 1)
  }

  @Test func `an author who was removed is not trusted again by an invitation`() throws {
    try home("ben").addContact(anna.card.text)
    try home("ben").removeContact("Anna")
    let invitation = try invite()
    #expect(code { try accept(invitation) } == .endedKey)
    #expect(try folder.names(in: "shared").isEmpty)
  }

  @Test func `an invitation does not take over the name of another contact`() throws {
    let other = try home("carla").makeIdentity(named: "Anna")
    try home("ben").addContact(other.card.text)
    let invitation = try invite()
    #expect(code { try accept(invitation) } == .contactExists)
    #expect(try home("ben").contacts().all.map(\.state) == [.seen])
    #expect(try folder.names(in: "shared").isEmpty)
    let named = try database("ben").accept(invitation, named: "Anna B", answer: .folder(shared), as: ben)
    #expect(named.inviter?.name == "Anna B")
  }

  @Test func `forged answers are refused with the reason, and change nothing`() throws {
    let invitation = try invite()
    let answer = try Acceptance(verifying: accept(invitation).answer)
    for name in try folder.names(in: "shared") { try FileManager.default.removeItem(atPath: "\(shared)/\(name)") }
    let mallory = try home("carla").makeIdentity(named: "Mallory")
    let swapped = try Acceptance(
      of: answer.invitation, proof: answer.proof, stream: answer.stream, by: mallory, replica: nil, at: 1)
    let otherStream = try Acceptance(
      of: answer.invitation, proof: answer.proof,
      stream: InvitedStream(
        stream: StreamID(checked: Array(repeating: 0, count: 16)), incarnation: answer.stream.incarnation), by: ben,
      replica: nil, at: 1)
    let stolen = try SignedText(
      .acceptance, SignedText(answer.text, as: [.acceptance]).document, signedBy: [mallory.signing])
    let forged: [(String, BuckiaErrorCode)] = [
      (swapped.text, .wrongProof), (otherStream.text, .wrongProof), (stolen.text, .badSignature),
      ("nonsense", .invalidInvitation), ("", .invalidInvitation),
      (String(repeating: "buckia-acceptance-1:", count: 1_000), .invalidInvitation),
      (invitation.text, .invalidInvitation), ("buckia-acceptance-2:e30.e30", .unsupportedFormat),
    ]
    for (text, code) in forged {
      let path = try plant(text)
      let report = try apply()
      #expect(report.answers.map(\.state) == [.refused], "\(text.prefix(40))")
      #expect(report.answers.map(\.code) == [code], "\(text.prefix(40))")
      #expect(report.answers.first?.reason?.isEmpty == false)
      #expect(FileManager.default.fileExists(atPath: path))
    }
    #expect(try home("anna").contacts().all.isEmpty)
    #expect(try rows("SELECT count(used_at) FROM buckia_invitation", of: "anna") == ["0"])
    // The genuine answer can still be taken.
    _ = try plant(answer.text)
    #expect(try apply().answers.map(\.state) == [.accepted])
  }

  @Test func `a refused answer is in the ledger once, with its reason, until it is taken`() throws {
    let invitation = try invite()
    let answer = try Acceptance(verifying: accept(invitation).answer)
    for name in try folder.names(in: "shared") { try FileManager.default.removeItem(atPath: "\(shared)/\(name)") }
    let mallory = try home("carla").makeIdentity(named: "Mallory")
    let swapped = try Acceptance(
      of: answer.invitation, proof: answer.proof, stream: answer.stream, by: mallory, replica: nil, at: 1)
    let path = try plant(swapped.text)
    #expect(try apply { $0.isDryRun = true }.answers.map(\.state) == [.refused])
    #expect(try database("anna").log().isEmpty)
    for _ in 0..<2 { #expect(try apply().answers.map(\.state) == [.refused]) }
    let entries = try database("anna").log()
    #expect(entries.map(\.state) == [.rejected])
    #expect(entries.first?.reason?.contains("does not prove that they have the invitation") == true)
    #expect(entries.first?.sender == "key \(mallory.card.key)")
    #expect(
      try rows("SELECT file, times, diff IS NULL FROM buckia_refused", of: "anna")
        == ["\(FileManager.default.displayName(atPath: path))|2|1"])
    try FileManager.default.removeItem(atPath: path)
    // An unsigned file has no sender.
    let nonsense = try plant("nonsense")
    #expect(try apply().answers.map(\.state) == [.refused])
    #expect(try database("anna").log().map(\.sender).sorted().last == "unsigned")
    try FileManager.default.removeItem(atPath: nonsense)
    // An answer that was expired for a while, and is taken later, counts as refused no longer.
    let late = try plant(answer.text)
    let expiry = try rows("SELECT expires_at FROM buckia_invitation", of: "anna")
    try TestDatabases.run("UPDATE buckia_invitation SET expires_at = 1", on: folder.file("anna.sqlite"))
    #expect(try apply().answers.map(\.code) == [.expiredInvitation])
    #expect(try rows("SELECT count(*) FROM buckia_refused", of: "anna") == ["3"])
    try TestDatabases.run(
      "UPDATE buckia_invitation SET expires_at = \(expiry.first ?? "0")", on: folder.file("anna.sqlite"))
    #expect(try apply([late]).answers.map(\.state) == [.accepted])
    #expect(try rows("SELECT count(*) FROM buckia_refused", of: "anna") == ["2"])
  }

  @Test func `an answer that belongs to another database is left alone`() throws {
    try accept(invite())
    let report = try apply(to: "carla")
    #expect(report.answers.map(\.state) == [.notOurs])
    #expect(try folder.names(in: "shared").count == 1)
  }

  @Test func `a link in the place of an answer is not followed`() throws {
    let report = try accept(invite())
    let path = try #require(report.path)
    let moved = folder.file("elsewhere")
    try FileManager.default.moveItem(atPath: path, toPath: moved)
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: moved)
    #expect(try apply().answers.map(\.state) == [.refused])
    #expect(try home("anna").contacts().all.isEmpty)
  }

  // MARK: Ways to take an answer

  @Test func `a dry run says what would happen, and changes nothing`() throws {
    try accept(invite())
    let dry = try apply { $0.isDryRun = true }
    #expect(dry.answers.map(\.state) == [.accepted])
    #expect(dry.answers.first?.contact?.name == "Ben")
    #expect(try home("anna").contacts().all.isEmpty)
    #expect(try rows("SELECT count(used_at) FROM buckia_invitation", of: "anna") == ["0"])
    #expect(try rows("SELECT count(*) FROM buckia_share", of: "anna") == ["0"])
    #expect(try folder.names(in: "shared").count == 1)
  }

  @Test func `no answer is taken in the app's transaction, which may be rolled back`() throws {
    let invitation = try invite()
    try accept(invitation)
    let connection = try SQLiteConnection(opening: folder.file("anna.sqlite"), as: .readWrite)
    try connection.execute("BEGIN")
    let report = try DatabaseManager.borrowing(connection.handle.pointer, home: home("anna")) {
      #expect(code { [database = $0] in _ = try database.invite(Self.scope, as: anna) } == .misuse)
      return try $0.processInboundChanges([shared])
    }
    try connection.execute("ROLLBACK")
    #expect(report.answers.map(\.code) == [.misuse])
    #expect(try home("anna").contacts().all.isEmpty)
    #expect(try apply().answers.map(\.state) == [.accepted])
  }

  @Test func `an answer is taken by its path under any name, and verified`() throws {
    let path = try #require(try accept(invite()).path)
    let renamed = folder.file("attachment.txt")
    try FileManager.default.moveItem(atPath: path, toPath: renamed)
    let checked = try DiffInspection.verify([renamed], home: home("anna")).files
    #expect(checked.map(\.isGood) == [true] && checked.map(\.signature) == [.valid])
    #expect(checked.map(\.sender) == ["key \(ben.card.key)"])
    #expect(try apply([renamed]).answers.map(\.state) == [.accepted])
    #expect(FileManager.default.fileExists(atPath: renamed), "a file that was named by itself stays")
    try Data("buckia-acceptance-1:e30.e30".utf8).write(to: URL(fileURLWithPath: renamed))
    #expect(try DiffInspection.verify([renamed], home: home("anna")).files.map(\.isGood) == [false])
  }

  @Test func `a contact's name with control characters is not used`() throws {
    // Buckia makes no such identity, so the test makes the card itself.
    var generator = SeededGenerator(seed: 4)
    let signing = PrivateKey(using: &generator)
    let encryption = PrivateKey(using: &generator)
    let document = try #require(
      #"{"name":"eve\u202e\u001b[2J","made":1,"signing":"\#(try signing.signingKey())","encryption":"\#(try encryption.encryptionKey())"}"#
        .data(using: .utf8))
    let card = try IdentityCard(
      verifying: SignedText(.card, Array(document), signedBy: [signing]).text)
    let eve = Identity(card: card, signing: signing, encryption: encryption, former: [])
    let invitation = try invite()
    _ = try plant(invitation.answer(by: eve, replica: nil, at: now).text)
    #expect(try apply().answers.first?.contact?.name == "guest")
  }
}
