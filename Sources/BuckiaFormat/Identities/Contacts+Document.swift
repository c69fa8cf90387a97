import BuckiaBytes

extension Contacts {
  private static let format: Int64 = 1
  /// More than the most contacts take, each with a proposal.
  static let documentByteLimit = 64 << 20

  /// The bytes of the document `contacts.json`.
  package var document: [UInt8] {
    let contacts = all.map { contact -> JSONValue in
      [
        "name": .string(contact.name),
        "shareName": .text(contact.shareName == contact.name ? nil : contact.shareName),
        "state": .string(contact.state.rawValue), "card": .string(contact.card.text),
        "firstSeen": .number(contact.firstSeen), "trustedAt": contact.trustedAt.map { .number($0) } ?? .null,
        "grounds": .text(contact.grounds?.rawValue),
        "proposal": contact.proposal.map {
          ["rotations": .array($0.rotations.map { .string($0.text) }), "seenAt": .number($0.seenAt)]
        } ?? .null,
      ]
    }
    let ended = ended.map { key -> JSONValue in
      [
        "key": .string(key.key), "name": .string(key.name), "fingerprint": .string("\(key.fingerprint)"),
        "successor": .text(key.successor?.description), "endedAt": .number(key.endedAt),
      ]
    }
    let document: JSONValue = ["format": .number(Self.format), "contacts": .array(contacts), "ended": .array(ended)]
    return Array((document.prettyText() + "\n").utf8)
  }

  /// Reads the document. Each signature in it is verified again, and no two contacts have one name or key.
  ///
  /// - Throws: `IdentityError` with code `invalidFile` or `unsupportedFormat`.
  package init(document: [UInt8]) throws(IdentityError) {
    var fields = try DocumentFields(parsing: document, of: "the list of contacts", .invalidFile)
    try fields.requireFormat(Self.format)
    var all: [Contact] = []
    for value in try fields.values("contacts", limit: Self.limit) { all.append(try Contact(value)) }
    var ended: [EndedKey] = []
    for value in try fields.values("ended", limit: Self.limit) { ended.append(try EndedKey(value)) }
    try fields.finish()
    let keys = all.map(\.card.signingKey) + ended.map(\.signingKey)
    let names = all.flatMap { Set([$0.name.lowercased(), $0.shareName.lowercased()]) }
    guard Set(keys).count == keys.count, Set(names).count == names.count else {
      throw fields.invalid("contacts", "has a name or a key twice")
    }
    self.init(all: all, ended: ended)
  }
}

extension Contact {
  fileprivate init(_ value: JSONValue) throws(IdentityError) {
    var fields = try DocumentFields(value, of: "a contact", .invalidFile)
    let name = try fields.string("name")
    let shareName = try fields.optionalString("shareName") ?? name
    guard let state = State(rawValue: try fields.string("state")) else { throw fields.invalid("state", "is unknown") }
    let card = try IdentityCard(verifying: fields.string("card"))
    let firstSeen = try fields.time("firstSeen")
    let trustedAt = try fields.optionalTime("trustedAt")
    var grounds: Grounds?
    if let value = fields.take("grounds") {
      guard case .string(let word) = value, let known = Grounds(rawValue: word) else {
        throw fields.invalid("grounds", "is unknown")
      }
      grounds = known
    }
    var proposal: Proposal?
    if let value = fields.take("proposal") {
      var fields = try DocumentFields(value, of: "a proposal", .invalidFile)
      var rotations: [KeyRotation] = []
      for text in try fields.strings("rotations", limit: Proposal.limit) {
        rotations.append(try KeyRotation(verifying: text))
      }
      // Each replaces the keys before it.
      let keys = [card.signingKey] + rotations.map(\.card.signingKey)
      guard let last = rotations.last, rotations.map(\.endedKey) == keys.dropLast(), Set(keys).count == keys.count
      else {
        throw fields.invalid("rotations", "contradicts itself")
      }
      proposal = Proposal(earlier: rotations.dropLast(), rotation: last, seenAt: try fields.time("seenAt"))
      try fields.finish()
    }
    try fields.finish()
    guard PersonName.isBounded(name), PersonName.isBounded(shareName), (state == .trusted) == (trustedAt != nil),
      (state == .trusted) == (grounds != nil)
    else { throw fields.invalid("contacts", "contradicts itself") }
    self.init(
      name: name, shareName: shareName, card: card, state: state, firstSeen: firstSeen, trustedAt: trustedAt,
      grounds: grounds, proposal: proposal)
  }
}

extension EndedKey {
  fileprivate init(_ value: JSONValue) throws(IdentityError) {
    var fields = try DocumentFields(value, of: "a key that has ended", .invalidFile)
    guard let fingerprint = Fingerprint(try fields.string("fingerprint")) else {
      throw fields.invalid("fingerprint", "is none")
    }
    self.init(
      name: try fields.string("name"), signingKey: try fields.bytes("key", as: SigningKey.self),
      fingerprint: fingerprint, successor: try fields.optionalBytes("successor", as: SigningKey.self),
      endedAt: try fields.time("endedAt"))
    try fields.finish()
  }
}

/// The file that holds a person's contacts. It is changed by one program at a time, and replaced whole.
package struct ContactsFile: Sendable {
  private let document: PrivateDocument

  /// The path of the file.
  package var path: String { document.path }

  package init(path: String) {
    document = PrivateDocument(path: path, subject: "the list of contacts", byteLimit: Contacts.documentByteLimit)
  }

  /// Reads the contacts; none if there is no file.
  ///
  /// - Throws: `IdentityError` with code `notPrivate`, `invalidFile` or `unsupportedFormat`; `ByteStreamError`.
  package func read() throws -> Contacts {
    guard let bytes = try document.bytes() else { return Contacts() }
    do throws(IdentityError) {
      return try Contacts(document: bytes)
    } catch {
      throw error.naming(path: path)
    }
  }

  /// Changes the contacts, with no other program between reading and writing.
  ///
  /// - Parameter change: Changes the contacts. If it throws, nothing is written.
  /// - Throws: As ``read()`` and `change`; `IdentityError` with code `notLocked` where files cannot be locked.
  package func update<Result>(_ change: (inout Contacts) throws -> Result) throws -> Result {
    try document.locked {
      let old = try read()
      var contacts = old
      let result = try change(&contacts)
      if contacts != old { try document.write(contacts.document, replacing: true) }
      return result
    }
  }
}
