import BuckiaBytes
import SQLiteSchemas

/// The people whose cards are kept, and the keys that have ended.
public struct Contacts: Equatable, Sendable {
  /// The result of adding a card or a rotation.
  public enum Addition: Equatable, Sendable {
    /// A new contact.
    case added(Contact)
    /// The contact was there already, with these keys.
    case known(Contact)
    /// New keys of a contact, which wait to be confirmed.
    case proposed(Contact)
  }

  /// The contacts, in the order in which they were added.
  public internal(set) var all: [Contact]
  /// The keys that have ended, in the order in which they did.
  public internal(set) var ended: [EndedKey]

  /// The most contacts, and the most keys that have ended.
  static let limit = 10_000

  /// The contact of this name, in capitals or not; nil for none.
  public func contact(named name: String) -> Contact? { index(of: name).map { all[$0] } }

  /// All keys of the contact of this name, in hex, with those that the present one has replaced; those of removed contacts, too.
  package func keys(named name: String) -> [String] {
    let wanted = name.lowercased()
    let replaced = replacedKeys
    let present = all.filter { $0.name.lowercased() == wanted }.map(\.card.key)
    let ofOthers = Set(replaced.values.joined())
    return present + present.flatMap { replaced[$0] ?? [] }
      + ended.filter { $0.name.lowercased() == wanted && !ofOthers.contains($0.key) }.map(\.key)
  }

  /// The earlier keys of contacts, by the present key of the contact, in hex. Those of removed contacts are not among them.
  package var replacedKeys: [String: [String]] {
    let replaced = Dictionary(grouping: ended.filter { $0.reason == .replaced }, by: \.successor)
    func keys(before key: SigningKey) -> [String] {
      (replaced[key] ?? []).flatMap { keys(before: $0.signingKey) + [$0.key] }
    }
    return all.reduce(into: [:]) { found, contact in
      let keys = keys(before: contact.card.signingKey)
      if !keys.isEmpty { found[contact.card.key] = keys }
    }
  }

  /// The contact of this name.
  ///
  /// - Throws: `IdentityError` with code `noSuchContact`.
  package func require(named name: String) throws(IdentityError) -> Contact { all[try requireIndex(of: name)] }

  private func index(of name: String) -> Int? {
    let wanted = name.lowercased()
    return all.firstIndex { $0.name.lowercased() == wanted } ?? all.firstIndex { $0.shareName.lowercased() == wanted }
  }

}

extension Contacts {
  /// No contacts.
  package init() { self.init(all: [], ended: []) }

  // MARK: Changing

  /// Stores a person's card, or new keys that a contact proposes. It does not trust them.
  ///
  /// - Parameters:
  ///   - text: A card, a rotation, or all rotations that lead to a card, of which those before the known keys are passed over.
  ///   - name: The name of a new contact; nil for the card's.
  ///   - own: The card of the person whose contacts these are; nil if there is none.
  ///   - time: The present time, in milliseconds since 1970.
  /// - Throws: `IdentityError`. Nothing has been changed then.
  package mutating func add(
    _ text: String, named name: String?, besides own: IdentityCard?, at time: Int64
  ) throws(IdentityError) -> Addition {
    let texts = SignedText.rotations(in: text)
    guard !texts.isEmpty else { return try add(IdentityCard(verifying: text), named: name, besides: own, at: time) }
    guard name == nil else {
      throw IdentityError(.invalidName, "these are new keys of a contact, whose name stays; leave the name out")
    }
    var rotations: [KeyRotation] = []
    for text in texts { rotations.append(try KeyRotation(verifying: text)) }
    let known = Set(all.map(\.card.signingKey))
    let first = rotations.lastIndex { known.contains($0.endedKey) }
    if first == nil, let contact = all.first(where: { $0.card == rotations.last?.card }) { return .known(contact) }
    var changed = self
    var result: Addition?
    for rotation in rotations[(first ?? 0)...] {
      result = try changed.propose(rotation, besides: own, at: time)
    }
    guard let result else { throw IdentityError(.invalidCard, "it has no rotation") }
    self = changed
    return result
  }

  private mutating func add(
    _ card: IdentityCard, named name: String?, besides own: IdentityCard?, at time: Int64
  ) throws(IdentityError) -> Addition {
    try requireNew(card, besides: own)
    if let known = all.first(where: { $0.card.signingKey == card.signingKey }) {
      guard known.card.encryptionKey == card.encryptionKey else {
        throw IdentityError(
          .contactExists,
          "it has the signing key of the contact \(EscapedText.quoted(known.name)) and another key to encrypt; new keys need a "
            + "rotation, which `buckia identity rotate` makes")
      }
      guard name.map({ $0.lowercased() == known.name.lowercased() }) ?? true else {
        throw IdentityError(
          .contactExists, "it is the card of the contact \(EscapedText.quoted(known.name)), who is here already")
      }
      return .known(known)
    }
    let name = name ?? card.name
    try PersonName.require(name)
    guard index(of: name) == nil else {
      throw IdentityError(
        .contactExists,
        "there is a contact \(EscapedText.quoted(name)) with other keys; give this one another name with --name, or ask "
          + "whether somebody pretends to be them")
    }
    return .added(try append(card, named: name, at: time))
  }

  private mutating func propose(
    _ rotation: KeyRotation, besides own: IdentityCard?, at time: Int64
  ) throws(IdentityError) -> Addition {
    try requireNotEnded(rotation.endedKey)
    try requireNew(rotation.card, besides: own)
    let ended = all.firstIndex { contact in
      contact.card.signingKey == rotation.endedKey || contact.proposes { $0.card.signingKey == rotation.endedKey }
    }
    guard let index = ended else {
      throw IdentityError(
        .noSuchContact,
        "it replaces keys that are no contact's; if the keys were replaced more than once, add the earlier rotations first "
          + "(`buckia identity show --rotation` prints all), else add the card of the person instead")
    }
    if all[index].proposes({ $0 == rotation }) { return .proposed(all[index]) }
    // Rotations of keys that are proposed themselves come after these; others take their place.
    let kept = all[index].proposal?.rotations.prefix { $0.endedKey != rotation.endedKey } ?? []
    if let other = all.first(where: { $0.card.signingKey == rotation.card.signingKey })
      ?? (kept.contains { $0.card.signingKey == rotation.card.signingKey } ? all[index] : nil)
    {
      throw IdentityError(
        .contactExists, "its new keys are those of the contact \(EscapedText.quoted(other.name))")
    }
    guard kept.count < Contact.Proposal.limit else {
      throw IdentityError(.tooMany, "\(kept.count) rotations wait already; confirm the keys of the contact first")
    }
    all[index].proposal = Contact.Proposal(earlier: Array(kept), rotation: rotation, seenAt: time)
    return .proposed(all[index])
  }

  /// Adds a contact who is not trusted. The name must be free.
  mutating func append(
    _ card: IdentityCard, named name: String, at time: Int64
  ) throws(IdentityError) -> Contact {
    guard all.count < Self.limit else {
      throw IdentityError(.tooMany, "there are \(Self.limit) contacts already; remove some")
    }
    let contact = Contact(
      name: name, shareName: name, card: card, state: .seen, firstSeen: time, trustedAt: nil, grounds: nil,
      proposal: nil)
    all.append(contact)
    return contact
  }

  func requireNew(_ card: IdentityCard, besides own: IdentityCard?) throws(IdentityError) {
    guard card.signingKey != own?.signingKey else {
      throw IdentityError(.ownKey, "it is your own: your diffs are trusted without it")
    }
    try requireNotEnded(card.signingKey)
  }

  private func requireNotEnded(_ key: SigningKey) throws(IdentityError) {
    guard let ended = ended.first(where: { $0.signingKey == key }) else { return }
    let name = EscapedText.quoted(ended.name)
    throw IdentityError(
      .endedKey,
      ended.reason == .removed
        ? "its key was removed with the contact \(name), and that is final; the person needs new keys"
        : "its key is one that the contact \(name) has replaced, and that is final")
  }

  /// Trusts a contact after the person has compared the fingerprint. If the contact proposes new keys, confirming those
  /// replaces the old ones; confirming the old ones drops the proposal.
  ///
  /// - Parameters:
  ///   - name: The contact.
  ///   - fingerprint: The fingerprint that was compared.
  ///   - time: The present time, in milliseconds since 1970.
  /// - Throws: `IdentityError` with code `noSuchContact` or `otherFingerprint`. Nothing has been changed then.
  package mutating func trust(
    _ name: String, fingerprint: Fingerprint, at time: Int64
  ) throws(IdentityError) -> Contact {
    let index = try requireIndex(of: name)
    var contact = all[index]
    let rotations = contact.proposal?.rotations ?? []
    if let last = rotations.firstIndex(where: { $0.card.fingerprint == fingerprint }) {
      for rotation in rotations[...last] {
        try end(contact.card, of: contact.name, replacedBy: rotation.card, at: time)
        contact.card = rotation.card
      }
      contact.trustedAt = time
    } else {
      guard contact.card.fingerprint == fingerprint else {
        throw IdentityError(
          .otherFingerprint,
          "the fingerprint of \(EscapedText.quoted(contact.name)) is \(contact.fingerprintToConfirm), not \(fingerprint): do not "
            + "trust this card, and ask its owner for theirs")
      }
      if contact.state != .trusted { contact.trustedAt = time }
    }
    contact.grounds = .fingerprint
    contact.proposal = nil
    contact.state = .trusted
    all[index] = contact
    return contact
  }

  /// Renames a contact. Their shares continue, under the first name.
  ///
  /// - Throws: `IdentityError` with code `noSuchContact`, `invalidName`, or `contactExists` where another contact has, or had, the name.
  ///   Nothing has been changed then.
  package mutating func rename(_ name: String, to newName: String) throws(IdentityError) -> Contact {
    let place = try requireIndex(of: name)
    try PersonName.require(newName)
    if let other = index(of: newName), other != place {
      throw IdentityError(
        .contactExists,
        "the contact \(EscapedText.quoted(all[other].name)) has that name, or had it before; choose another one")
    }
    all[place].name = newName
    return all[place]
  }

  /// Removes a contact. Nothing is taken from their key ever again, whatever is trusted otherwise.
  ///
  /// - Returns: The contact that was removed.
  /// - Throws: `IdentityError` with code `noSuchContact` or `tooMany`. Nothing has been changed then.
  package mutating func remove(_ name: String, at time: Int64) throws(IdentityError) -> Contact {
    let index = try requireIndex(of: name)
    try end(all[index].card, of: all[index].name, replacedBy: nil, at: time)
    return all.remove(at: index)
  }

  private mutating func end(
    _ card: IdentityCard, of name: String, replacedBy successor: IdentityCard?, at time: Int64
  ) throws(IdentityError) {
    // To forget one would let it in again.
    guard ended.count < Self.limit else {
      throw IdentityError(.tooMany, "\(Self.limit) keys have ended, and no more can be remembered")
    }
    ended.append(
      EndedKey(
        name: name, signingKey: card.signingKey, fingerprint: card.fingerprint, successor: successor?.signingKey,
        endedAt: time))
  }

  private func requireIndex(of name: String) throws(IdentityError) -> Int {
    if let index = index(of: name) { return index }
    let hint = ended.last { $0.name.lowercased() == name.lowercased() && $0.reason == .removed }
    throw IdentityError(
      .noSuchContact,
      "there is no contact \(EscapedText.quoted(name))"
        + (hint == nil ? "; `buckia contact list` shows all" : ": it was removed, and that is final"))
  }
}

extension Contacts {
  /// Keeps and trusts the author of an invitation, whose fingerprint a person has confirmed.
  ///
  /// - Parameters:
  ///   - card: The card in the invitation.
  ///   - name: The name of a new contact; nil for the card's.
  ///   - own: The card of the person whose contacts these are.
  ///   - time: The present time, in milliseconds since 1970.
  /// - Throws: `IdentityError` as ``add(_:named:besides:at:)``. Nothing has been changed then.
  package mutating func trustInviter(
    _ card: IdentityCard, named name: String?, besides own: IdentityCard?, at time: Int64
  ) throws(IdentityError) -> Contact {
    var changed = self
    let contact =
      switch try changed.add(card.text, named: name, besides: own, at: time) {
      case .added(let contact), .known(let contact), .proposed(let contact): contact
      }
    let trusted = try changed.trust(contact.name, fingerprint: card.fingerprint, at: time)
    self = changed
    return trusted
  }

  /// Stores and trusts a person.
  ///
  /// - Parameters:
  ///   - card: Their card.
  ///   - names: Names for a new contact; the first allowed one is used. If another contact has it, a number is
  ///     appended.
  ///   - grounds: The reason for trusting them. It does not replace the reason of a contact who is trusted already.
  ///   - own: The card of the person whose contacts these are.
  ///   - time: The present time, in milliseconds since 1970.
  /// - Throws: `IdentityError` with code `endedKey`, `ownKey`, `contactExists` for a known signing key with another one to encrypt,
  ///   or `tooMany`. Nothing has been changed then.
  package mutating func admit(
    _ card: IdentityCard, preferring names: [String], because grounds: Contact.Grounds, besides own: IdentityCard?,
    at time: Int64
  ) throws(IdentityError) -> Contact {
    try requireNew(card, besides: own)
    if let known = all.first(where: { $0.card.signingKey == card.signingKey }) {
      guard known.card.encryptionKey == card.encryptionKey else {
        throw IdentityError(
          .contactExists,
          "it has the signing key of the contact \(EscapedText.quoted(known.name)) and another key to encrypt")
      }
    } else {
      _ = try append(card, named: freeName(names), at: time)
    }
    guard let place = all.firstIndex(where: { $0.card.signingKey == card.signingKey }) else {
      throw IdentityError(.noSuchContact, "there is no such contact")
    }
    if all[place].state != .trusted {
      all[place].state = .trusted
      all[place].trustedAt = time
      all[place].grounds = grounds
    }
    return all[place]
  }

  /// True if a key has ended, and why; nil if it has not.
  package func ending(of card: IdentityCard) -> EndedKey? { ended.first { $0.signingKey == card.signingKey } }

  /// The contact with the keys of a card; nil for none.
  package func contact(with card: IdentityCard) -> Contact? { all.first { $0.card.signingKey == card.signingKey } }

  private func freeName(_ names: [String]) -> String {
    let name = names.first { PersonName.isAllowed($0) } ?? "guest"
    if contact(named: name) == nil { return name }
    // Short enough for a number after it.
    var stem = name
    while stem.count + 6 > PersonName.characterLimit || stem.utf8.count + 6 > PersonName.byteLimit { stem.removeLast() }
    var number = 2
    while contact(named: "\(stem) \(number)") != nil { number += 1 }
    return "\(stem) \(number)"
  }
}

/// A person whose card is kept.
///
/// Being kept means nothing yet: whose card it is tells only the fingerprint, compared with its owner. A contact is trusted once
/// somebody has said so.
public struct Contact: Hashable, Codable, Identifiable, Sendable {
  /// The key that signs what they send, in hex.
  public var id: String { card.key }

  /// True if a contact's diffs are applied where only known senders are trusted.
  public enum State: String, Codable, Sendable {
    /// Their card was seen.
    case seen
    /// Their fingerprint was confirmed.
    case trusted
  }

  /// Why a contact is trusted.
  public enum Grounds: String, Codable, Sendable {
    /// Somebody has compared the fingerprint with its owner.
    case fingerprint
    /// They had the secret of an invitation, which was made for one person and has admitted one.
    case invitation
  }

  /// New keys that somebody who has the old ones proposes.
  public struct Proposal: Hashable, Codable, Sendable {
    /// Rotations that lead from the contact's keys to those that the proposed one replaces; usually none.
    public let earlier: [KeyRotation]
    /// What was proposed.
    public let rotation: KeyRotation
    /// When it was seen first, in milliseconds since 1970.
    public let seenAt: Int64

    /// All rotations, in their order.
    package var rotations: [KeyRotation] { earlier + [rotation] }
    /// The most rotations.
    static let limit = 64
  }

  /// The local name of the contact; names are unique.
  public internal(set) var name: String
  /// The name that shares with them go by: the one before they were renamed first.
  public internal(set) var shareName: String
  /// Their keys.
  public internal(set) var card: IdentityCard
  /// True if they are trusted.
  public internal(set) var state: State
  /// When their card was seen first, in milliseconds since 1970.
  public let firstSeen: Int64
  /// When they were trusted, in milliseconds since 1970; nil if they are not.
  public internal(set) var trustedAt: Int64?
  /// Why they are trusted; nil if they are not.
  public internal(set) var grounds: Grounds?
  /// New keys that wait to be confirmed; nil for none.
  public internal(set) var proposal: Proposal?

  /// The fingerprint to compare with the contact: that of the proposed keys, if any.
  public var fingerprintToConfirm: Fingerprint { (proposal?.rotation.card ?? card).fingerprint }

  /// True if one of the proposed rotations is meant.
  func proposes(_ isMeant: (KeyRotation) -> Bool) -> Bool { proposal?.rotations.contains(where: isMeant) ?? false }
}

/// A key whose diffs are always refused. This is final.
public struct EndedKey: Equatable, Sendable {
  /// Why it has ended.
  public enum Reason: String, Sendable {
    /// Its contact was removed.
    case removed
    /// Its contact has other keys now.
    case replaced
  }

  /// What its contact was called.
  public let name: String
  /// The key as 64 hexadecimal digits.
  public var key: String { signingKey.description }
  let signingKey: SigningKey
  /// The fingerprint of the keys that it was one of.
  public let fingerprint: Fingerprint
  /// The key that has replaced it; nil if its contact was removed.
  let successor: SigningKey?
  /// Why.
  public var reason: Reason { successor == nil ? .removed : .replaced }
  /// When, in milliseconds since 1970.
  public let endedAt: Int64
}
