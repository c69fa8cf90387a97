import BuckiaBytes

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
