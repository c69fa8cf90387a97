/// A person's keys: an Ed25519 key to sign and an X25519 key to read what is encrypted for them.
///
/// The secret halves stay in their file, which only its owner can read. What others get is the ``card``.
public struct Identity: Equatable, Sendable {
  /// Keys that were replaced.
  struct Former: Equatable, Sendable {
    /// What tells others of the keys after them.
    let rotation: KeyRotation
    /// Kept, since what is under way may still be encrypted for it. The key to sign is gone.
    let encryption: PrivateKey
    /// In milliseconds since 1970.
    let endedAt: Int64
  }

  /// What to give to others.
  public let card: IdentityCard
  let signing: PrivateKey
  let encryption: PrivateKey
  /// The keys before these, the newest last.
  let former: [Former]

  /// What its owner is called.
  public var name: String { card.name }
  /// What others compare.
  public var fingerprint: Fingerprint { card.fingerprint }

  /// What tells others that these keys have taken the place of earlier ones: the newest last. Whoever has missed one needs all that
  /// came after.
  public var rotations: [KeyRotation] { former.map(\.rotation) }

  /// The secret of the signing key: 32 bytes.
  package var signingSeed: [UInt8] { signing.bytes }
  /// The secrets of the keys to decrypt with, 32 bytes each: the present one first, then those before it, the newest first.
  package var decryptionSeeds: [[UInt8]] { [encryption.bytes] + former.reversed().map(\.encryption.bytes) }

  init(card: IdentityCard, signing: PrivateKey, encryption: PrivateKey, former: [Former]) {
    self.card = card
    self.signing = signing
    self.encryption = encryption
    self.former = former
  }

  /// Makes new keys.
  ///
  /// - Parameters:
  ///   - name: What their owner is called: 1 to 64 characters.
  ///   - time: The present time, in milliseconds since 1970.
  ///   - generator: One whose numbers nobody can guess.
  /// - Throws: `IdentityError` with code `invalidName`.
  package init(
    named name: String, at time: Int64, using generator: inout some RandomNumberGenerator
  ) throws(IdentityError) {
    signing = PrivateKey(using: &generator)
    encryption = PrivateKey(using: &generator)
    card = try IdentityCard(name: name, signing: signing, encryption: encryption, madeAt: time)
    former = []
  }

  /// How many keys before the present ones are kept.
  static let formerLimit = 64

  /// New keys in place of these, and what tells others.
  ///
  /// - Throws: `IdentityError` when nothing can be signed.
  package func rotated(
    at time: Int64, using generator: inout some RandomNumberGenerator
  ) throws(IdentityError) -> (identity: Identity, rotation: KeyRotation) {
    let signing = PrivateKey(using: &generator)
    let encryption = PrivateKey(using: &generator)
    let card = try IdentityCard(name: name, signing: signing, encryption: encryption, madeAt: time)
    let rotation = try KeyRotation(from: self.signing, to: signing, card: card)
    let ended = Former(rotation: rotation, encryption: self.encryption, endedAt: time)
    let former = (former + [ended]).suffix(Self.formerLimit)
    return (Identity(card: card, signing: signing, encryption: encryption, former: Array(former)), rotation)
  }
}
