import BuckiaBytes
import SQLiteSchemas

/// The people whose cards are kept, and the keys that have ended.
public struct Contacts: Equatable, Sendable {
  /// What came of a card or a rotation that was added.
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

  /// No contacts.
  package init() {
    all = []
    ended = []
  }

  init(all: [Contact], ended: [EndedKey]) {
    self.all = all
    self.ended = ended
  }

  /// The most contacts, and the most keys that have ended.
  static let limit = 10_000

  /// The contact of this name, in capitals or not; nil for none.
  public func contact(named name: String) -> Contact? { index(of: name).map { all[$0] } }

  /// All keys, in hex, that a name stands or has stood for: those that were removed or replaced, too.
  package func keys(named name: String) -> [String] {
    let wanted = name.lowercased()
    return all.filter { $0.name.lowercased() == wanted }.map(\.card.key)
      + ended.filter { $0.name.lowercased() == wanted }.map(\.key)
  }

  /// The keys that those of contacts have replaced, by the present key of the contact, in hex. A contact keeps their name as long as
  /// they are one, so it tells whose earlier keys they are; those of somebody who was removed are nobody's.
  package var replacedKeys: [String: [String]] {
    var byName: [String: [String]] = [:]
    for key in ended {
      switch key.reason {
      case .replaced: byName[key.name.lowercased(), default: []].append(key.key)
      case .removed: byName[key.name.lowercased()] = nil
      }
    }
    guard !byName.isEmpty else { return [:] }
    return all.reduce(into: [:]) { found, contact in
      if let keys = byName[contact.name.lowercased()] { found[contact.card.key] = keys }
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

  // MARK: Changing

  /// Keeps the card of somebody, or new keys that a contact proposes. Neither is trusted by that.
  ///
  /// - Parameters:
  ///   - text: A card or a rotation.
  ///   - name: What a new contact is to be called; nil for what the card says.
  ///   - own: The card of the person whose contacts these are; nil where there is none.
  ///   - time: The present time, in milliseconds since 1970.
  /// - Throws: `IdentityError`. Nothing has been changed then.
  package mutating func add(
    _ text: String, named name: String?, besides own: IdentityCard?, at time: Int64
  ) throws(IdentityError) -> Addition {
    let signed = try SignedText(text)
    guard signed.kind == .rotation else {
      return try add(IdentityCard(signed), named: name, besides: own, at: time)
    }
    guard name == nil else {
      throw IdentityError(.invalidName, "these are new keys of a contact, whose name stays; leave the name out")
    }
    return try propose(KeyRotation(signed), besides: own, at: time)
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
    if ended.contains(where: { $0.signingKey == rotation.endedKey && $0.reason == .replaced }),
      let contact = all.first(where: { $0.card == rotation.card })
    {
      return .known(contact)
    }
    try requireNotEnded(rotation.endedKey)
    try requireNew(rotation.card, besides: own)
    guard let index = all.firstIndex(where: { $0.card.signingKey == rotation.endedKey }) else {
      throw IdentityError(
        .noSuchContact, "it replaces keys that are no contact's; add the card of the person instead")
    }
    if let other = all.first(where: { $0.card.signingKey == rotation.card.signingKey }) {
      throw IdentityError(
        .contactExists, "its new keys are those of the contact \(EscapedText.quoted(other.name))")
    }
    if all[index].proposal?.rotation != rotation {
      all[index].proposal = Contact.Proposal(rotation: rotation, seenAt: time)
    }
    return .proposed(all[index])
  }

  /// Adds a contact who is only seen. The name must be free.
  mutating func append(
    _ card: IdentityCard, named name: String, at time: Int64
  ) throws(IdentityError) -> Contact {
    guard all.count < Self.limit else {
      throw IdentityError(.tooMany, "there are \(Self.limit) contacts already; remove some")
    }
    let contact = Contact(
      name: name, card: card, state: .seen, firstSeen: time, trustedAt: nil, grounds: nil, proposal: nil)
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

  /// Trusts a contact whose fingerprint somebody has compared. Where they propose new keys, those are confirmed, and the old ones
  /// end; whoever confirms the old ones instead drops the proposal.
  ///
  /// - Parameters:
  ///   - name: The contact.
  ///   - fingerprint: What was compared.
  ///   - time: The present time, in milliseconds since 1970.
  /// - Throws: `IdentityError` with code `noSuchContact` or `otherFingerprint`. Nothing has been changed then.
  package mutating func trust(
    _ name: String, fingerprint: Fingerprint, at time: Int64
  ) throws(IdentityError) -> Contact {
    let index = try requireIndex(of: name)
    var contact = all[index]
    if let new = contact.proposal?.rotation.card, new.fingerprint == fingerprint {
      try end(contact.card, of: contact.name, .replaced, at: time)
      contact.card = new
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

  /// Gives a contact another name. Their shares go on, under the name that these had first.
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
    try end(all[index].card, of: all[index].name, .removed, at: time)
    return all.remove(at: index)
  }

  private mutating func end(
    _ card: IdentityCard, of name: String, _ reason: EndedKey.Reason, at time: Int64
  ) throws(IdentityError) {
    // To forget one would let it in again.
    guard ended.count < Self.limit else {
      throw IdentityError(.tooMany, "\(Self.limit) keys have ended, and no more can be remembered")
    }
    ended.append(
      EndedKey(
        name: name, signingKey: card.signingKey, fingerprint: card.fingerprint, reason: reason, endedAt: time))
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
