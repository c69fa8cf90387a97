import BuckiaBytes
import SQLiteSchemas

/// A person's name and public keys, signed by the signing key, for passing on to others.
///
/// Anybody can make a card with any name. Only its ``fingerprint``, compared with its owner, proves whose it is.
///
/// ```swift
/// let card = try IdentityCard("buckia-card-1:eyJuYW1l…")
/// print(card.fingerprint)
/// ```
public struct IdentityCard: Hashable, Sendable, CustomStringConvertible {
  /// The name that the owner chose: 1 to 64 characters of any kind. Escape it before printing.
  public let name: String
  /// The key that verifies the owner's signatures.
  package let signingKey: SigningKey
  /// The key for encrypting to its owner.
  package let encryptionKey: EncryptionKey
  /// When the keys were made, as their owner's clock had it, in milliseconds since 1970.
  public let madeAt: Int64
  /// The card as one line of text, for passing on.
  public let text: String

  /// The maximum size of a card in bytes, and of all rotations that lead to one.
  package static let textByteLimit = Int64(Contact.Proposal.limit * SignedText.byteLimit)

  /// The fingerprint to compare with its owner.
  public var fingerprint: Fingerprint { Fingerprint(signing: signingKey, encryption: encryptionKey) }
  /// The signing key as 64 hexadecimal digits, as reports name it.
  public var key: String { signingKey.description }
  /// The line of text.
  public var description: String { text }

  /// Creates and signs a card.
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
    signingKey = try fields.bytes("signing", as: SigningKey.self)
    encryptionKey = try fields.bytes("encryption", as: EncryptionKey.self)
    try fields.finish()
    guard PersonName.isBounded(name) else { throw fields.invalid("name", "is empty or too long") }
    try signed.requireSignature(0, by: signingKey)
    text = signed.text
  }
}

/// Announces a person's new keys. The old and the new signing key both sign it: the old key because only its owner may
/// announce a successor, the new key because only its owner may be named as one.
///
/// A thief of the old key can make one, too. A rotation is therefore only a proposal, until the new fingerprint was
/// compared.
public struct KeyRotation: Hashable, Sendable, CustomStringConvertible {
  /// The signing key that ends.
  package let endedKey: SigningKey
  /// The keys from now on.
  public let card: IdentityCard
  /// The rotation as one line of text, for passing on.
  public let text: String

  /// The line of text.
  public var description: String { text }

  /// Creates and signs a rotation.
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
    endedKey = try fields.bytes("ends", as: SigningKey.self)
    card = try IdentityCard(verifying: fields.string("card"))
    try fields.finish()
    guard card.signingKey != endedKey else { throw fields.invalid("ends", "is the new key, too") }
    try signed.requireSignature(0, by: endedKey)
    try signed.requireSignature(1, by: card.signingKey)
    text = signed.text
  }
}

/// The rule for names of local identities and contacts. Names that others chose may break it, and are escaped before
/// printing.
enum PersonName {
  static let characterLimit = 64
  /// Letters of many marks have no end otherwise.
  static let byteLimit = 256

  /// What reports call senders that are no contacts.
  private static let reserved: Set<String> = ["unsigned", "unknown", "you", "own", "merge", "this database", "a merge"]

  /// Requires a name that can be printed, distinguished from others, and written on a command line.
  ///
  /// - Throws: `IdentityError` with code `invalidName`.
  static func require(_ name: String) throws(IdentityError) {
    guard isBounded(name) else {
      throw IdentityError(
        .invalidName, "a name has 1 to \(characterLimit) characters (and at most \(byteLimit) bytes); choose another")
    }
    guard name.unicodeScalars.allSatisfy(EscapedText.isHarmless) else {
      throw IdentityError(
        .invalidName,
        "the name \(EscapedText.quoted(name)) has characters that cannot be seen or turn text around; choose another")
    }
    guard name.first != " ", name.last != " " else {
      throw IdentityError(.invalidName, "a name neither begins nor ends with a space; choose another")
    }
    let lowercased = name.lowercased()
    guard !reserved.contains(lowercased), !lowercased.hasPrefix("key ") else {
      throw IdentityError(
        .invalidName, "reports say \(EscapedText.quoted(name)) of something else; choose another name")
    }
    // In an argument for a contact, these mean a file, a key or an option.
    guard !name.utf8.contains(UInt8(ascii: "/")), !name.hasPrefix("-"), !lowercased.hasPrefix("age1") else {
      throw IdentityError(
        .invalidName,
        "the name \(EscapedText.quoted(name)) could be taken for a file, an option or a key: it has a / or begins with - or "
          + "age1; choose another")
    }
  }

  /// True if ``require(_:)`` takes a name.
  static func isAllowed(_ name: String) -> Bool {
    do throws(IdentityError) {
      try require(name)
      return true
    } catch {
      return false
    }
  }

  static func isBounded(_ name: String) -> Bool {
    !name.isEmpty && name.utf8.count <= byteLimit && name.count <= characterLimit
  }
}

extension IdentityCard: Codable {
  /// Reads and verifies the line of text.
  public init(from decoder: any Decoder) throws {
    try self.init(verifying: decoder.singleValueContainer().decode(String.self))
  }

  /// Writes the line of text.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}

extension KeyRotation: Codable {
  /// Reads and verifies the line of text.
  public init(from decoder: any Decoder) throws {
    try self.init(verifying: decoder.singleValueContainer().decode(String.self))
  }

  /// Writes the line of text.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}
