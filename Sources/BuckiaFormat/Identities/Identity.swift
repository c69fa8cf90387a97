import BuckiaBytes

/// A person's keys: an Ed25519 key for signing and an X25519 key for decrypting.
///
/// The secret keys stay in their file, which only its owner can read. Others get the ``card``.
public struct Identity: Equatable, Sendable {
  /// Keys that were replaced.
  struct Former: Equatable, Sendable {
    /// The announcement of the next keys.
    let rotation: KeyRotation
    /// Kept, since files that are under way may be encrypted for it. The former signing key is deleted.
    let encryption: PrivateKey
    /// In milliseconds since 1970.
    let endedAt: Int64
  }

  /// The card for others.
  public let card: IdentityCard
  let signing: PrivateKey
  let encryption: PrivateKey
  /// The keys before these, the newest last.
  let former: [Former]

  /// What its owner is called.
  public var name: String { card.name }
  /// The fingerprint that others compare.
  public var fingerprint: Fingerprint { card.fingerprint }

  /// The announcements that these keys have replaced earlier ones, the newest last.
  public var rotations: [KeyRotation] { former.map(\.rotation) }

  /// The secret of the signing key: 32 bytes.
  package var signingSeed: [UInt8] { signing.bytes }
  /// The secret decryption keys, 32 bytes each: the present one first, then the earlier ones, the newest first.
  package var decryptionSeeds: [[UInt8]] { [encryption.bytes] + former.reversed().map(\.encryption.bytes) }

}

extension Identity {
  /// Generates new keys.
  ///
  /// - Parameters:
  ///   - name: What their owner is called: 1 to 64 characters.
  ///   - time: The present time, in milliseconds since 1970.
  ///   - generator: A cryptographically secure generator.
  /// - Throws: `IdentityError` with code `invalidName`.
  package init(
    named name: String, at time: Int64, using generator: inout some RandomNumberGenerator
  ) throws(IdentityError) {
    let signing = PrivateKey(using: &generator)
    let encryption = PrivateKey(using: &generator)
    let card = try IdentityCard(name: name, signing: signing, encryption: encryption, madeAt: time)
    self.init(card: card, signing: signing, encryption: encryption, former: [])
  }

  /// The maximum number of earlier keys that are kept.
  static let formerLimit = 64

  /// The identity with new keys, and the announcement of them.
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

extension Identity {
  /// The maximum size of an identity file in bytes.
  package static let documentByteLimit = 512 << 10
  private static let format: Int64 = 1

  /// The bytes of the identity file, before any encryption with a passphrase.
  package var document: [UInt8] {
    let former = former.map { keys -> JSONValue in
      [
        "rotation": .string(keys.rotation.text), "encryption": .string(HexText.lowercase(keys.encryption.bytes)),
        "ended": .number(keys.endedAt),
      ]
    }
    let document: JSONValue = [
      "format": .number(Self.format), "card": .string(card.text),
      "signing": .string(HexText.lowercase(signing.bytes)),
      "encryption": .string(HexText.lowercase(encryption.bytes)), "former": .array(former),
    ]
    return Array((document.prettyText() + "\n").utf8)
  }

  /// Reads the bytes of an identity file.
  ///
  /// - Throws: `IdentityError` with code `invalidFile` or `unsupportedFormat`. No message repeats what was read.
  package init(document: [UInt8]) throws(IdentityError) {
    guard document.count <= Self.documentByteLimit else {
      throw IdentityError(.invalidFile, "it is larger than an identity file can be")
    }
    var fields = try DocumentFields(parsing: document, of: "the identity file", .invalidFile)
    try fields.requireFormat(Self.format)
    let card = try IdentityCard(verifying: fields.string("card"))
    let signing = try fields.secret("signing")
    let encryption = try fields.secret("encryption")
    var former: [Former] = []
    for value in try fields.values("former", limit: Self.formerLimit) {
      var keys = try DocumentFields(value, of: "the identity file", .invalidFile)
      former.append(
        Former(
          rotation: try KeyRotation(verifying: keys.string("rotation")), encryption: try keys.secret("encryption"),
          endedAt: try keys.time("ended")))
      try keys.finish()
    }
    try fields.finish()
    guard former.last.map({ $0.rotation.card == card }) ?? true else {
      throw IdentityError(.invalidFile, "its newest rotation is not to the keys of its card")
    }
    guard try signing.signingKey() == card.signingKey, try encryption.encryptionKey() == card.encryptionKey else {
      throw IdentityError(.invalidFile, "its secret keys are not those of its card")
    }
    self.init(card: card, signing: signing, encryption: encryption, former: former)
  }
}

/// The public part of an identity, which also shows which files are encrypted for it.
///
/// It is stored next to a protected identity, for operations that need no secret and should not ask for the passphrase.
public struct PublicIdentity: Equatable, Sendable {
  /// The card for others.
  public let card: IdentityCard
  /// The announcements that these keys have replaced earlier ones, the newest last.
  public let rotations: [KeyRotation]
  /// The public keys for which files may be encrypted: the present one first, then the earlier ones, the newest first.
  package let encryptionKeys: [EncryptionKey]
}

extension Identity {
  /// The public part of the identity.
  ///
  /// - Throws: `IdentityError` when it holds bytes that are no key.
  package func publicPart() throws(IdentityError) -> PublicIdentity {
    var keys = [card.encryptionKey]
    for former in former.reversed() { keys.append(try former.encryption.encryptionKey()) }
    return PublicIdentity(card: card, rotations: rotations, encryptionKeys: keys)
  }
}

extension PublicIdentity {
  private static let format: Int64 = 1

  /// The bytes of the file `identity.public`.
  var document: [UInt8] {
    let document: JSONValue = [
      "format": .number(Self.format), "card": .string(card.text),
      "rotations": .array(rotations.map { .string($0.text) }),
      "encryption": .array(encryptionKeys.dropFirst().map { .string("\($0)") }),
    ]
    return Array((document.prettyText() + "\n").utf8)
  }

  /// Reads the bytes of the file. Each signature in it is verified.
  ///
  /// - Throws: `IdentityError` with code `invalidFile` or `unsupportedFormat`.
  init(document: [UInt8]) throws(IdentityError) {
    let subject = "the public part of the identity"
    var fields = try DocumentFields(parsing: document, of: subject, .invalidFile)
    try fields.requireFormat(Self.format)
    let card = try IdentityCard(verifying: fields.string("card"))
    var rotations: [KeyRotation] = []
    for text in try fields.strings("rotations", limit: Identity.formerLimit) {
      rotations.append(try KeyRotation(verifying: text))
    }
    var keys = [card.encryptionKey]
    for text in try fields.strings("encryption", limit: Identity.formerLimit) {
      guard let key = EncryptionKey(hex: text) else {
        throw fields.invalid("encryption", "has something that is no key")
      }
      keys.append(key)
    }
    try fields.finish()
    guard rotations.last.map({ $0.card == card }) ?? true, rotations.count + 1 == keys.count else {
      throw fields.invalid("rotations", "contradicts the card")
    }
    self.init(card: card, rotations: rotations, encryptionKeys: keys)
  }
}

extension IdentityError.Code {
  /// No identity has been made.
  package static let noIdentity = Self(rawValue: "no-identity")
  /// There is an identity already.
  package static let identityExists = Self(rawValue: "identity-exists")
  /// Others than its owner can read or change a file that must be private.
  package static let notPrivate = Self(rawValue: "not-private")
  /// The identity is protected by a passphrase, which was not given.
  package static let passphraseNeeded = Self(rawValue: "passphrase-needed")
  /// A file of ours is not as Buckia writes it.
  package static let invalidFile = Self(rawValue: "invalid-file")
  /// A card or rotation is not in order.
  package static let invalidCard = Self(rawValue: "invalid-card")
  /// An invitation, or the answer to one, is not in order.
  package static let invalidInvitation = Self(rawValue: "invalid-invitation")
  /// The signature of a card or rotation is not its key's.
  package static let badSignature = Self(rawValue: "badSignature")
  /// A newer version made it.
  package static let unsupportedFormat = Self(rawValue: "unsupportedFormat")
  /// A name that is not allowed.
  package static let invalidName = Self(rawValue: "invalid-name")
  /// No contact has this name.
  package static let noSuchContact = Self(rawValue: "no-such-contact")
  /// Another contact has this name or key.
  package static let contactExists = Self(rawValue: "contact-exists")
  /// The key was removed, or has been replaced: that is final.
  package static let endedKey = Self(rawValue: "ended-key")
  /// It is the reader's own.
  package static let ownKey = Self(rawValue: "own-key")
  /// The contact is not the one that was shown: the fingerprint differs.
  package static let otherFingerprint = Self(rawValue: "other-fingerprint")
  /// There are as many as there may be.
  package static let tooMany = Self(rawValue: "too-many")
  /// The contacts cannot be locked against other programs.
  package static let notLocked = Self(rawValue: "not-locked")

  // MARK: Keys in age's format

  /// It is no recipient, or one of a kind that is not known here.
  package static let invalidRecipient = Self(rawValue: "invalidRecipient")
  /// It is no identity, or one of a kind that is not known here.
  package static let invalidIdentity = Self(rawValue: "invalidIdentity")
  /// A file without recipients could never be read.
  package static let noRecipients = Self(rawValue: "noRecipients")
  /// There are more recipients than a file may have.
  package static let tooManyRecipients = Self(rawValue: "tooManyRecipients")
  /// The recipients may not share a file.
  package static let mixedRecipients = Self(rawValue: "mixedRecipients")
  /// A passphrase without a character.
  package static let emptyPassphrase = Self(rawValue: "emptyPassphrase")
  /// The system's cryptography lacks what this kind of key needs.
  package static let unsupportedKey = Self(rawValue: "unsupportedKey")
  /// The cryptographic library has failed.
  package static let encryptionFailed = Self(rawValue: "encryptionFailed")
}
