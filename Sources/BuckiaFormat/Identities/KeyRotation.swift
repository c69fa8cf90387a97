import BuckiaBytes

/// Says that a person has new keys. It is signed by the old and by the new signing key: by the old one, since nobody else may say
/// so; by the new one, since nobody may claim somebody else's key as their next.
///
/// Whoever has stolen the old key can make one, too. So it is only a proposal, until the new fingerprint was compared.
public struct KeyRotation: Hashable, Sendable, CustomStringConvertible {
  /// The signing key that ends.
  package let endedKey: SigningKey
  /// The keys from now on.
  public let card: IdentityCard
  /// The rotation as one line of text: this is what is passed on.
  public let text: String

  /// The line of text.
  public var description: String { text }

  /// Makes and signs a rotation.
  init(from old: PrivateKey, to new: PrivateKey, card: IdentityCard) throws(IdentityError) {
    endedKey = try old.signingKey()
    self.card = card
    let document: JSONValue = ["ends": .string("\(endedKey)"), "card": .string(card.text)]
    text = try SignedText(.rotation, document.bytes(), signedBy: [old, new]).text
  }

  /// Reads and verifies a rotation.
  ///
  /// - Throws: `IdentityError` with code `invalidCard`, `badSignature` or `unsupportedFormat`.
  package init(verifying text: String) throws(IdentityError) {
    try self.init(SignedText(text))
  }

  init(_ signed: SignedText) throws(IdentityError) {
    guard signed.kind == .rotation else { throw IdentityError(.invalidCard, "it is a card and no rotation of keys") }
    var fields = try DocumentFields(parsing: signed.document, of: "the rotation", .invalidCard)
    endedKey = try fields.key("ends", as: SigningKey.self)
    card = try IdentityCard(verifying: fields.string("card"))
    try fields.finish()
    guard card.signingKey != endedKey else { throw fields.invalid("ends", "is the new key, too") }
    try signed.requireSignature(0, by: endedKey)
    try signed.requireSignature(1, by: card.signingKey)
    text = signed.text
  }
}
