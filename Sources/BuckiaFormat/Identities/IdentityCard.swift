import BuckiaBytes

/// What a person gives to others: their name and their public keys, signed by the signing key.
///
/// Anybody can make a card in any name. Whose it is tells only its ``fingerprint``, compared with its owner.
///
/// ```swift
/// let card = try IdentityCard("buckia-card-1:eyJuYW1l…")
/// print(card.fingerprint)
/// ```
public struct IdentityCard: Hashable, Sendable, CustomStringConvertible {
  /// What its owner calls themselves: 1 to 64 characters of any kind. To be escaped where it is shown.
  public let name: String
  /// The key that verifies what its owner signs.
  package let signingKey: SigningKey
  /// The key that encrypts what only its owner can read.
  package let encryptionKey: EncryptionKey
  /// When the keys were made, as their owner's clock had it, in milliseconds since 1970.
  public let madeAt: Int64
  /// The card as one line of text: this is what is passed on.
  public let text: String

  /// A card has at most so many bytes, and so has a rotation.
  package static let textByteLimit = Int64(SignedText.byteLimit)

  /// What to compare with its owner.
  public var fingerprint: Fingerprint { Fingerprint(signing: signingKey, encryption: encryptionKey) }
  /// The signing key as 64 hexadecimal digits, as reports name it.
  public var key: String { signingKey.description }
  /// The line of text.
  public var description: String { text }

  /// Makes and signs a card.
  init(
    name: String, signing: PrivateKey, encryption: PrivateKey, madeAt: Int64
  ) throws(IdentityError) {
    try PersonName.require(name)
    self.name = name
    signingKey = try signing.signingKey()
    encryptionKey = try encryption.encryptionKey()
    self.madeAt = madeAt
    let document: JSONValue = [
      "name": .string(name), "made": .number(madeAt), "signing": .string("\(signingKey)"),
      "encryption": .string("\(encryptionKey)"),
    ]
    text = try SignedText(.card, document.bytes(), signedBy: [signing]).text
  }

  /// Reads and verifies a card.
  ///
  /// - Throws: `IdentityError` with code `invalidCard`, `badSignature` or `unsupportedFormat`.
  package init(verifying text: String) throws(IdentityError) {
    try self.init(SignedText(text))
  }

  init(_ signed: SignedText) throws(IdentityError) {
    guard signed.kind == .card else {
      throw IdentityError(.invalidCard, "it is a rotation of keys and no card; `buckia contact add` takes both")
    }
    var fields = try DocumentFields(parsing: signed.document, of: "the card", .invalidCard)
    name = try fields.string("name")
    madeAt = try fields.time("made")
    signingKey = try fields.key("signing", as: SigningKey.self)
    encryptionKey = try fields.key("encryption", as: EncryptionKey.self)
    try fields.finish()
    guard PersonName.isBounded(name) else { throw fields.invalid("name", "is empty or too long") }
    try signed.requireSignature(0, by: signingKey)
    text = signed.text
  }
}
