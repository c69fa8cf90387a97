import BuckiaBytes
import SQLiteSchemas

extension Contacts {
  /// Keeps and trusts the author of an invitation, whose fingerprint a person has confirmed.
  ///
  /// - Parameters:
  ///   - card: The card in the invitation.
  ///   - name: What a new contact is to be called; nil for what the card says.
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

  /// Keeps and trusts somebody.
  ///
  /// - Parameters:
  ///   - card: Their card.
  ///   - names: What a new contact may be called, the first one that is allowed. If another contact has the name, a number behind
  ///     it tells the two apart.
  ///   - grounds: Why they are trusted. A contact who is trusted already stays so for the reason that they are.
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

  /// Whether a key has ended, and why; nil if it has not.
  package func ending(of card: IdentityCard) -> EndedKey? { ended.first { $0.signingKey == card.signingKey } }

  /// The contact who has the keys of a card; nil for none.
  package func contact(with card: IdentityCard) -> Contact? { all.first { $0.card.signingKey == card.signingKey } }

  private func freeName(_ names: [String]) -> String {
    let name = names.first { PersonName.isAllowed($0) } ?? "guest"
    if contact(named: name) == nil { return name }
    // Short enough that a number fits behind it.
    var stem = name
    while stem.count + 6 > PersonName.characterLimit || stem.utf8.count + 6 > PersonName.byteLimit { stem.removeLast() }
    var number = 2
    while contact(named: "\(stem) \(number)") != nil { number += 1 }
    return "\(stem) \(number)"
  }
}
