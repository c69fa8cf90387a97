import BuckiaBytes
import Foundation
import TestSupport
import Testing

@testable import BuckiaFormat

/// Documents of invitations and the answers to them.
@Suite struct InvitationDocumentTests {
  private static let time: Int64 = 1_700_000_000_000
  private static let scope = InvitedScope(
    name: "summer",
    tables: [.init(name: "album", rows: "all rows", omittedColumns: ["note"], rewrittenColumns: [])])
  private static let stream = InvitedStream(
    stream: StreamID(checked: Array(repeating: 1, count: 16)),
    incarnation: IncarnationID(checked: Array(repeating: 2, count: 16)))

  private func invitation(
    from anna: Identity, _ scope: InvitedScope = scope, folder: String? = "/mnt/shared", seed: UInt64 = 5
  ) throws -> Invitation {
    var generator = SeededGenerator(seed: seed)
    return try Invitation(
      from: anna, to: "Ben", scope: scope, folder: folder, stream: Self.stream, at: Self.time,
      until: Self.time + 1, using: &generator)
  }

  @Test func `an invitation is written and read unchanged, and fits a QR code`() throws {
    let anna = try person("Anna")
    let made = try invitation(from: anna)
    let read = try Invitation(verifying: "\n \(made.text)\r\n")
    #expect(read == made)
    #expect(read.card == anna.card)
    #expect(read.recipient == "Ben")
    #expect(read.scope == Self.scope)
    #expect(read.folder == "/mnt/shared")
    #expect(read.stream == Self.stream)
    // The capacity of a QR code of version 40 in bytes, at the lowest level of correction.
    #expect(made.text.utf8.count <= 2_953)
    #expect(made.text.hasPrefix("buckia-invitation-1:"))
  }

  @Test func `any changed character of an invitation or an answer is detected`() throws {
    let made = try invitation(from: person("Anna"))
    let answer = try made.answer(by: person("Ben", 2), replica: nil, at: Self.time)
    for text in [made.text, answer.text].map({ Array($0.utf8) }) {
      for index in text.indices {
        var changed = text
        changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
        let damaged = String(decoding: changed, as: UTF8.self)
        #expect(throws: IdentityError.self, "byte \(index)") { try Invitation(verifying: damaged) }
        #expect(throws: IdentityError.self, "byte \(index)") { try Acceptance(verifying: damaged) }
      }
    }
  }

  @Test(arguments: 0..<200) func `random changes of an invitation are refused or read, without a crash`(
    seed: UInt64
  )
    throws
  {
    var generator = SeededGenerator(seed: seed)
    var text = Array(try invitation(from: person("Anna")).text.utf8)
    for _ in 0..<Int.random(in: 1...4, using: &generator) {
      let place = Int.random(in: 0..<text.count, using: &generator)
      switch Int.random(in: 0..<3, using: &generator) {
      case 0: text.remove(at: place)
      case 1: text.insert(UInt8.random(in: 0...255, using: &generator), at: place)
      default: text.removeSubrange(place..<min(text.count, place + 40))
      }
    }
    let damaged = String(decoding: text, as: UTF8.self)
    let white = damaged.utf8.filter { ![0x20, 0x09, 0x0a, 0x0d].contains($0) }
    guard !white.elementsEqual(try invitation(from: person("Anna")).text.utf8) else { return }
    #expect(throws: IdentityError.self, "seed \(seed)") { try Invitation(verifying: damaged) }
  }

  @Test func `an answer proves the secret without revealing it`() throws {
    let made = try invitation(from: person("Anna"))
    let ben = try person("Ben", 2)
    let answer = try made.answer(by: ben, replica: ReplicaID(checked: Array(repeating: 7, count: 16)), at: Self.time)
    let read = try Acceptance(verifying: answer.text)
    #expect(read == answer)
    #expect(read.card == ben.card)
    #expect(read.replica?.bytes == Array(repeating: 7, count: 16))
    #expect(read.proves(made.proofKey, ofInvitationWith: made.digest))
    let invitationDocument = try #require(
      try JSONSerialization.jsonObject(with: Data(SignedText(made.text, as: [.invitation]).document)) as? [String: Any])
    let secret = try #require(invitationDocument["secret"] as? String)
    let answerDocument = String(
      decoding: try SignedText(answer.text, as: [.acceptance]).document, as: UTF8.self)
    #expect(!answerDocument.contains(secret))
    #expect(!answerDocument.contains(HexText.lowercase(made.proofKey.bytes)))
    #expect(!"\(made)".contains(secret), "a description of the invitation shows no secret outside its text")
  }

  @Test func `the proof equals that of another program`() throws {
    // From Python's hashlib and hmac, following only the specification.
    let card = try IdentityCard(
      verifying: """
        buckia-card-1:eyJuYW1lIjoiQmVuIiwibWFkZSI6MTc5NTQ3NjY0OTc2NSwic2lnbmluZyI6ImY3NTQ1MDAxOGE0NDAxNTQxOWRhM2VkMzhj
        ZTk3ZjFlOWQ2YmEyNTdjMDJkOTkyNmE4NWQ4NTY0YmQ1OTdiNDIiLCJlbmNyeXB0aW9uIjoiYjBkNDI3ZGIyOTBjNjc2MGZmOTRlZWQ5MmI1ZW
        Y3MGRlYzA1Zjc4NDkxNDgyZTNkOTQ5NmRmOTEwZGNmODM3MSJ9.BkALIgAy8V5IA9x5k4gm4BfNPj_y5W4z9kaeLGDNbMJN2W-4fU_9XYcTClb
        7nalY7B_kXgW_w_fePXaMxZlyAw
        """)
    let secret = try #require(PrivateKey(hex: HexText.lowercase(Array(0..<32))))
    let key = InvitationProofKey(of: secret)
    #expect(
      HexText.lowercase(key.bytes)
        == "49583ac818c16d58d4ea39d955c1cb4c468ff86f21ba2a826f1a422b9e31d250")
    let id = try #require(InvitationID(Array(repeating: 1, count: 16)))
    let proof = key.proof(for: id, Array(repeating: 2, count: 32), card)
    #expect(
      HexText.lowercase(proof) == "903d517a3ebeb06dae2a4ee002e52d36b19ee0ce1302f05b65f5d668c9162a62")
  }

  @Test func `no card can replace another one in an answer`() throws {
    let made = try invitation(from: person("Anna"))
    let ben = try person("Ben", 2)
    let mallory = try person("Mallory", 3)
    let answer = try made.answer(by: ben, replica: nil, at: Self.time)
    // With Ben's proof and Mallory's card, signed by Mallory.
    let swapped = try Acceptance(
      of: answer.invitation, proof: answer.proof, stream: Self.stream, by: mallory, replica: nil, at: Self.time)
    #expect(try !Acceptance(verifying: swapped.text).proves(made.proofKey, ofInvitationWith: made.digest))
    // With Ben's card, signed by Mallory.
    let document = try SignedText(answer.text, as: [.acceptance]).document
    let forged = try SignedText(.acceptance, document, signedBy: [mallory.signing])
    #expect(code { _ = try Acceptance(verifying: forged.text) } == .badSignature)
  }

  @Test func `the answer to a changed invitation proves nothing`() throws {
    // Mallory forwards Anna's invitation with her own card, and the same number and secret.
    let made = try invitation(from: person("Anna"))
    let mallory = try person("Mallory", 3)
    let document = String(decoding: try SignedText(made.text, as: [.invitation]).document, as: UTF8.self)
      .replacingOccurrences(of: made.card.text, with: mallory.card.text)
    let changed = try Invitation(
      verifying: SignedText(.invitation, Array(document.utf8), signedBy: [mallory.signing]).text)
    #expect(changed.number == made.number)
    #expect(changed.proofKey == made.proofKey)
    let answer = try changed.answer(by: person("Ben", 2), replica: nil, at: Self.time)
    #expect(!answer.proves(made.proofKey, ofInvitationWith: made.digest))
  }

  @Test func `a document signed for one purpose cannot serve another`() throws {
    let anna = try person("Anna")
    let made = try invitation(from: anna)
    let document = try SignedText(made.text, as: [.invitation]).document
    for kind in [SignedText.Kind.card, .rotation, .acceptance] {
      let other = try SignedText(kind, document, signedBy: [anna.signing])
      let parts = other.text.split(separator: ":")
      let relabelled = "buckia-invitation-1:\(parts[1])"
      #expect(code { _ = try Invitation(verifying: relabelled) } == .badSignature, "\(kind)")
    }
    #expect(code { _ = try Invitation(verifying: anna.card.text) } == .invalidInvitation)
    var contacts = Contacts()
    #expect(
      throws: IdentityError(
        .invalidCard, "it is an invitation and not a card; `buckia accept` takes it")
    ) { try contacts.add(made.text, named: nil, besides: nil, at: 0) }
  }

  /// A document with one member changed, signed by its author.
  private func changed(_ name: String, to value: JSONValue?) throws -> String {
    let anna = try person("Anna")
    let made = try invitation(from: anna)
    guard case .object(var object) = try JSONParser.parse(SignedText(made.text, as: [.invitation]).document) else {
      throw IdentityError(.invalidInvitation, "no object")
    }
    object.members.removeAll { $0.name == name }
    if let value { object.append(name, value) }
    return try SignedText(.invitation, JSONValue.object(object).bytes(), signedBy: [anna.signing]).text
  }

  @Test(
    arguments: [
      ("id", "00"), ("id", nil), ("card", "buckia-card-1:e30.e30"), ("to", .string("")),
      ("to", .string(String(repeating: "x", count: 65))), ("scope", ["name": .null, "tables": []]), ("scope", nil),
      ("scope", ["tables": [["table": "a", "rows": "b"]]]), ("scope", ["tables": 1]),
      ("scope", ["name": 1, "tables": [["table": "a", "rows": "b", "omits": [], "rewrites": []]]]),
      ("scope", ["tables": [["table": "a", "rows": "b", "omits": [1], "rewrites": []]]]),
      ("scope", ["tables": [["table": "a", "rows": "b", "omits": [], "rewrites": [], "more": 1]]]),
      ("folder", .string("")), ("folder", .string(String(repeating: "x", count: 1_025))), ("made", -1),
      ("expires", 1), ("expires", nil), ("stream", "0102"), ("incarnation", nil), ("secret", "00"), ("secret", nil),
      ("more", 1),
    ] as [(String, JSONValue?)])
  func `an invalid document is refused although it is signed`(_ name: String, _ value: JSONValue?) throws {
    let text = try changed(name, to: value == .null ? nil : value)
    let found = code { _ = try Invitation(verifying: text) }
    #expect(found == .invalidInvitation || found == .invalidCard, "\(name)")
  }

  @Test func `an invitation with texts that are too long is not made`() throws {
    let anna = try person("Anna")
    let scope = InvitedScope(
      name: nil,
      tables: [
        .init(name: "t", rows: String(repeating: "x", count: 8_000), omittedColumns: [], rewrittenColumns: [])
      ])
    #expect(code { _ = try invitation(from: anna, scope) } == .invalidInvitation)
    #expect(
      code { _ = try invitation(from: anna, folder: String(repeating: "x", count: 1_025)) } == .invalidInvitation)
    #expect(
      code { _ = try Invitation(verifying: String(repeating: "x", count: 8_193)) } == .invalidInvitation)
  }

  // MARK: Contacts

  @Test func `an admitted person has a unique name`() throws {
    var contacts = Contacts()
    let bens = try (2..<5).map { try person("Ben", UInt64($0)) }
    for ben in bens {
      let contact = try contacts.admit(
        ben.card, preferring: [ben.name], because: .invitation, besides: nil, at: 9)
      #expect(contact.state == .trusted && contact.grounds == .invitation && contact.trustedAt == 9)
    }
    #expect(contacts.all.map(\.name) == ["Ben", "Ben 2", "Ben 3"])
    // The first allowed name is used; a name that could mean something else is not allowed.
    let other = try contacts.admit(
      person("x", 9).card, preferring: ["/etc", "you"], because: .invitation, besides: nil, at: 9)
    #expect(other.name == "guest")
    #expect(try Contacts(document: contacts.document) == contacts)
  }

  @Test func `an ended key is not admitted, and a confirmed fingerprint remains the reason`() throws {
    var contacts = Contacts()
    let ben = try person("Ben", 2)
    _ = try contacts.add(ben.card.text, named: nil, besides: nil, at: 1)
    _ = try contacts.trust("Ben", fingerprint: ben.card.fingerprint, at: 2)
    let again = try contacts.admit(ben.card, preferring: ["B"], because: .invitation, besides: nil, at: 3)
    #expect(again.name == "Ben" && again.grounds == .fingerprint && again.trustedAt == 2)
    _ = try contacts.remove("Ben", at: 4)
    let before = contacts
    #expect(
      code { _ = try contacts.admit(ben.card, preferring: ["B"], because: .invitation, besides: nil, at: 5) }
        == .endedKey)
    #expect(
      code { _ = try contacts.admit(ben.card, preferring: ["B"], because: .invitation, besides: ben.card, at: 5) }
        == .ownKey)
    #expect(contacts == before)
  }
}
