import BuckiaBytes

extension Identity {
  /// An identity file has at most so many bytes.
  package static let documentByteLimit = 512 << 10
  private static let format: Int64 = 1

  /// The bytes of the identity file. Who protects them with a passphrase encrypts these.
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
    for value in try fields.list("former", limit: Self.formerLimit) {
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
