/// What is public of an identity: what others may see, and what tells which files are for it.
///
/// It is kept beside an identity that a passphrase protects, so that what needs no secret does not ask for it.
public struct PublicIdentity: Equatable, Sendable {
  /// What to give to others.
  public let card: IdentityCard
  /// What tells others that these keys have taken the place of earlier ones: the newest last.
  public let rotations: [KeyRotation]
  /// The public keys that files may be encrypted for: the present one first, then those before it, the newest first.
  package let encryptionKeys: [EncryptionKey]

  init(card: IdentityCard, rotations: [KeyRotation], encryptionKeys: [EncryptionKey]) {
    self.card = card
    self.rotations = rotations
    self.encryptionKeys = encryptionKeys
  }
}

extension Identity {
  /// What is public of it.
  ///
  /// - Throws: `IdentityError` when it holds bytes that are no key.
  package func publicPart() throws(IdentityError) -> PublicIdentity {
    var keys = [card.encryptionKey]
    for former in former.reversed() { keys.append(try former.encryption.encryptionKey()) }
    return PublicIdentity(card: card, rotations: rotations, encryptionKeys: keys)
  }
}
