import BuckiaBytes
import Testing

@testable import BuckiaFormat

struct ContactsTests {
  private let anna: Identity
  private let me: Identity
  private var contacts = Contacts()

  init() throws {
    anna = try person("Anna")
    me = try person("Me", 50)
  }

  @discardableResult
  private mutating func add(_ text: String, named name: String? = nil) throws -> Contacts.Addition {
    try contacts.add(text, named: name, besides: me.card, at: 1_000)
  }

  private mutating func trust(_ name: String, _ fingerprint: Fingerprint, at time: Int64 = 2_000) throws {
    _ = try contacts.trust(name, fingerprint: fingerprint, at: time)
  }

  @Test
  mutating func `a contact that is only seen is not trusted`() throws {
    guard case .added(let contact) = try add(anna.card.text) else { throw Unexpected() }
    #expect(contact.name == "Anna")
    #expect(contact.state == .seen)
    #expect(contact.firstSeen == 1_000)
    #expect(contact.trustedAt == nil)
    try trust("anna", anna.fingerprint)
    #expect(contacts.all.first?.state == .trusted)
    #expect(contacts.all.first?.trustedAt == 2_000)
  }

  @Test
  mutating func `trusting needs the compared fingerprint`() throws {
    // Between reading a fingerprint and confirming it, another program replaced the card.
    try add(person("Anna", 2).card.text)
    #expect(code { try trust("Anna", anna.fingerprint) } == .otherFingerprint)
    #expect(contacts.all.first?.state == .seen)
  }

  @Test
  mutating func `adding a card again changes nothing`() throws {
    try add(anna.card.text)
    try trust("Anna", anna.fingerprint)
    let before = contacts
    guard case .known(let contact) = try add(anna.card.text) else { throw Unexpected() }
    #expect(contact.state == .trusted)
    #expect(contacts == before)
  }

  @Test
  mutating func `another card with the same name is not trusted because of it`() throws {
    try add(anna.card.text)
    try trust("Anna", anna.fingerprint)
    let impostor = try person("ANNA", 2).card
    #expect(code { try add(impostor.text) } == .contactExists)
    try add(impostor.text, named: "Other Anna")
    #expect(contacts.contact(named: "other anna")?.state == .seen)
  }

  @Test
  mutating func `a card with a replaced encryption key is refused`() throws {
    try add(anna.card.text)
    try trust("Anna", anna.fingerprint)
    let document: JSONValue = [
      "name": "Anna", "made": 1, "signing": .string(anna.card.key),
      "encryption": .string("\(try person("Anna", 2).card.encryptionKey)"),
    ]
    let changed = try SignedText(.card, document.bytes(), signedBy: [anna.signing])
    #expect(code { try add(changed.text) } == .contactExists)
  }

  @Test
  mutating func `removing a key is final`() throws {
    try add(anna.card.text)
    try trust("Anna", anna.fingerprint)
    _ = try contacts.remove("Anna", at: 3_000)
    #expect(contacts.all.isEmpty)
    #expect(code { try add(anna.card.text) } == .endedKey)
    #expect(code { try add(anna.card.text, named: "New Anna") } == .endedKey)
    #expect(code { try trust("Anna", anna.fingerprint) } == .noSuchContact)
    // A rotation does not bring it back either: a thief can sign one.
    let next = try rotated(anna)
    #expect(code { try add(next.rotation.text) } == .endedKey)
    // New keys start again: seen, not trusted.
    guard case .added(let contact) = try add(next.identity.card.text) else { throw Unexpected() }
    #expect(contact.state == .seen)
  }

  @Test
  mutating func `a rotation is a proposal until it is confirmed`() throws {
    try add(anna.card.text)
    try trust("Anna", anna.fingerprint)
    let next = try rotated(anna)
    guard case .proposed(let contact) = try add(next.rotation.text) else { throw Unexpected() }
    #expect(contact.card == anna.card)
    #expect(contact.state == .trusted)
    #expect(contact.fingerprintToConfirm == next.identity.fingerprint)
    try trust("Anna", next.identity.fingerprint, at: 5_000)
    let confirmed = try #require(contacts.contact(named: "Anna"))
    #expect(confirmed.card == next.identity.card)
    #expect(confirmed.proposal == nil)
    #expect(confirmed.trustedAt == 5_000)
    #expect(contacts.ended.map(\.key) == [anna.card.key])
    #expect(contacts.ended.first?.reason == .replaced)
    #expect(code { try add(anna.card.text, named: "Old Anna") } == .endedKey)
    // The same rotation again is known.
    guard case .known = try add(next.rotation.text) else { throw Unexpected() }
  }

  @Test
  mutating func `keys can be replaced again before they are confirmed`() throws {
    try add(anna.card.text)
    try trust("Anna", anna.fingerprint)
    let second = try rotated(anna)
    let third = try rotated(second.identity, 77)
    // The last rotation alone leads nowhere, but all together do, and the contacts can be written and read.
    #expect(code { try add(third.rotation.text) } == .noSuchContact)
    try add(second.rotation.text)
    try add(third.rotation.text)
    contacts = try Contacts(document: contacts.document)
    #expect(contacts.contact(named: "Anna")?.fingerprintToConfirm == third.identity.fingerprint)
    // The first rotation is known already, and does not undo the second.
    guard case .proposed(let contact) = try add(second.rotation.text) else { throw Unexpected() }
    #expect(contact.fingerprintToConfirm == third.identity.fingerprint)
    try trust("Anna", third.identity.fingerprint)
    contacts = try Contacts(document: contacts.document)
    #expect(contacts.ended.map(\.key) == [anna.card.key, second.identity.card.key])
    #expect(contacts.replacedKeys == [third.identity.card.key: [anna.card.key, second.identity.card.key]])
    // A later name does not change whose keys they were.
    _ = try contacts.rename("Anna", to: "Anna from work")
    #expect(contacts.replacedKeys.count == 1)
    #expect(contacts.keys(named: "Anna from work").count == 3)
  }

  @Test(arguments: [0, 1, 2])
  mutating func `all rotations in one text are applied, starting at the known keys`(known: Int) throws {
    let second = try rotated(anna)
    let third = try rotated(second.identity, 77)
    let people = [anna, second.identity, third.identity]
    try add(people[known].card.text)
    try trust("Anna", people[known].fingerprint)
    let all = "\(second.rotation.text)\n\(third.rotation.text)\n"
    #expect(code { try add(all, named: "Anna again") } == .invalidName)
    _ = try add(all)
    #expect(contacts.contact(named: "Anna")?.fingerprintToConfirm == third.identity.fingerprint)
    #expect(contacts.contact(named: "Anna")?.proposal?.rotations.count ?? 0 == 2 - known)
    try trust("Anna", third.identity.fingerprint)
    #expect(contacts.ended.count == 2 - known)
    guard case .known = try add(all) else { throw Unexpected() }
  }

  @Test
  mutating func `confirming the old keys drops a thief's rotation`() throws {
    try add(anna.card.text)
    try trust("Anna", anna.fingerprint)
    try add(rotated(anna, 666).rotation.text)
    try trust("Anna", anna.fingerprint)
    #expect(contacts.contact(named: "Anna")?.proposal == nil)
    #expect(contacts.contact(named: "Anna")?.card == anna.card)
    #expect(contacts.contact(named: "Anna")?.trustedAt == 2_000)
    #expect(contacts.ended.isEmpty)
  }

  @Test
  mutating func `the owner's rotation is accepted after a thief's`() throws {
    try add(anna.card.text)
    try add(rotated(anna, 666).rotation.text)
    let next = try rotated(anna)
    try add(next.rotation.text)
    #expect(contacts.contact(named: "Anna")?.fingerprintToConfirm == next.identity.fingerprint)
  }

  @Test
  mutating func `a rotation of a stranger's keys is refused`() throws {
    #expect(code { try add(try rotated(anna).rotation.text) } == .noSuchContact)
  }

  @Test
  mutating func `a rotation does not merge two contacts`() throws {
    let next = try rotated(anna)
    try add(anna.card.text)
    try add(next.identity.card.text, named: "Another")
    #expect(code { try add(next.rotation.text) } == .contactExists)
  }

  @Test
  mutating func `one's own card cannot be a contact`() throws {
    #expect(code { try add(me.card.text) } == .ownKey)
  }

  @Test
  mutating func `a card with a misleading name needs another one`() throws {
    let document: JSONValue = [
      "name": "An\u{202E}na", "made": 1, "signing": .string(anna.card.key),
      "encryption": .string("\(anna.card.encryptionKey)"),
    ]
    let card = try SignedText(.card, document.bytes(), signedBy: [anna.signing]).text
    let error = #expect(throws: IdentityError.self) { try add(card) }
    #expect(error?.message.contains("\u{202E}") == false)
    try add(card, named: "Anna")
    #expect(contacts.all.map(\.name) == ["Anna"])
  }

  @Test
  mutating func `the document is written and read unchanged`() throws {
    try add(anna.card.text)
    try trust("Anna", anna.fingerprint)
    try add(rotated(anna).rotation.text)
    try add(person("Ben", 3).card.text)
    try add(person("Carla", 4).card.text)
    _ = try contacts.remove("Ben", at: 4_000)
    #expect(try Contacts(document: contacts.document) == contacts)
  }

  @Test(arguments: [
    ("\"format\": 1", "\"format\": 2", IdentityError.Code.unsupportedFormat),
    ("\"seen\"", "\"friend\"", .invalidFile),
    ("\"seen\"", "\"trusted\"", .invalidFile),
    ("\"ended\": []", "\"ended\": [], \"more\": 1", .invalidFile),
    ("buckia-card-1:", "buckia-card-1:A", .invalidCard),
  ])
  mutating func `a document changed by hand is refused`(
    _ old: String, _ new: String, _ expected: IdentityError.Code
  ) throws {
    try add(anna.card.text)
    let text = String(decoding: contacts.document, as: UTF8.self)
    #expect(text.contains(old))
    let changed = Array(text.replacing(old, with: new).utf8)
    #expect(code { _ = try Contacts(document: changed) } == expected)
  }
}

/// The error for an unexpected result.
struct Unexpected: Error {}
