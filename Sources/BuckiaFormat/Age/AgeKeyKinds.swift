import BuckiaBytes
import Crypto
import CryptoExtras

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// One kind of identity: how it unwraps the key of a file.
protocol IdentityKind: Sendable {
  /// The kind of its stanzas; it ignores all others.
  static var stanzaKind: String { get }

  /// Throws for a stanza of its kind that breaks a rule, also for one of another recipient.
  ///
  /// - Throws: `ByteStreamError`.
  static func check(_ stanza: Stanza) throws(ByteStreamError)

  /// Unwraps the key from a stanza of its kind that was checked.
  ///
  /// - Returns: The key; nil if the stanza is for somebody else.
  /// - Throws: `ByteStreamError`.
  func unwrap(_ stanza: Stanza) throws(ByteStreamError) -> FileKey?
}

extension IdentityKind {
  /// Looks through all stanzas of a header.
  func unwrap(_ stanzas: [Stanza]) throws(ByteStreamError) -> FileKey? {
    let mine = stanzas.filter { $0.kind == Self.stanzaKind }
    for stanza in mine { try Self.check(stanza) }
    for stanza in mine {
      if let key = try unwrap(stanza) { return key }
    }
    return nil
  }

  /// An argument that is bytes of a certain length.
  static func bytes(_ argument: String, count: Int) -> [UInt8]? {
    guard let bytes = Base64.decode(argument.utf8), bytes.count == count else { return nil }
    return bytes
  }

  /// A stanza that breaks a rule.
  static func malformed(_ what: String) -> ByteStreamError {
    HeaderReader.malformed("the key wrapped for \(stanzaKind) \(what)")
  }

  /// Refuses a wrapped key of any other length than that of a file's key: a longer one could open with several keys.
  static func checkBody(of stanza: Stanza) throws(ByteStreamError) {
    guard stanza.body.count == FileKey.wrappedByteCount else { throw malformed("has the wrong length") }
  }
}

/// One kind of recipient: how it wraps the key of a file.
protocol RecipientKind: Sendable {
  /// Wraps the key of a file.
  ///
  /// - Throws: `IdentityError`.
  func wrap(_ key: FileKey) throws(IdentityError) -> Stanza
}

/// A private key on Curve25519.
struct X25519Identity: IdentityKind {
  static let stanzaKind = "X25519"
  /// The prefix of the text, in lowercase.
  static let prefix = "age-secret-key-"

  private let key: Curve25519.KeyAgreement.PrivateKey

  /// A new key.
  init() { key = Curve25519.KeyAgreement.PrivateKey() }

  /// Creates the key from its 32 bytes; nil for another number.
  init?(_ bytes: [UInt8]) {
    guard bytes.count == X25519Recipient.byteCount else { return nil }
    do { key = try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: bytes) } catch { return nil }
  }

  var bytes: [UInt8] { Array(key.rawRepresentation) }

  var recipient: X25519Recipient { X25519Recipient(bytes: Array(key.publicKey.rawRepresentation)) }

  static func check(_ stanza: Stanza) throws(ByteStreamError) {
    guard stanza.arguments.count == 1, bytes(stanza.arguments[0], count: X25519Recipient.byteCount) != nil else {
      throw malformed("does not name one share of 32 bytes")
    }
    try checkBody(of: stanza)
  }

  func unwrap(_ stanza: Stanza) throws(ByteStreamError) -> FileKey? {
    guard let share = Self.bytes(stanza.arguments[0], count: X25519Recipient.byteCount),
      let wrappingKey = X25519Recipient.wrappingKey(of: key, with: share, share: share, recipient: recipient.bytes)
    else { throw Self.malformed("has a share that hides nothing") }
    return FileKey(unwrapping: stanza.body, with: wrappingKey)
  }
}

/// A public key on Curve25519.
struct X25519Recipient: RecipientKind, Equatable {
  static let prefix = "age"
  static let byteCount = 32
  private static let info = Array("age-encryption.org/v1/X25519".utf8)

  let bytes: [UInt8]

  func wrap(_ key: FileKey) throws(IdentityError) -> Stanza {
    let ephemeral = Curve25519.KeyAgreement.PrivateKey()
    let share = Array(ephemeral.publicKey.rawRepresentation)
    guard let wrappingKey = Self.wrappingKey(of: ephemeral, with: bytes, share: share, recipient: bytes) else {
      throw IdentityError(
        .invalidRecipient, "\(Bech32.encode(bytes, prefix: Self.prefix)) is a key that hides nothing: ask for another")
    }
    do {
      let body = try key.wrapped(with: wrappingKey)
      return Stanza(
        kind: X25519Identity.stanzaKind, arguments: [String(decoding: Base64.encode(share), as: UTF8.self)], body: body)
    } catch { throw IdentityError(.encryptionFailed, "the file's key cannot be wrapped: \(error)") }
  }

  /// The key that wraps a file's key.
  ///
  /// - Parameters:
  ///   - mine: The private key.
  ///   - other: The other's public key.
  ///   - share: The sender's public key, made for this file.
  ///   - recipient: The recipient's public key.
  /// - Returns: The key; nil if the public key is one of the few that yield the same whatever the private key is.
  static func wrappingKey(
    of mine: Curve25519.KeyAgreement.PrivateKey, with other: [UInt8], share: [UInt8], recipient: [UInt8]
  ) -> SymmetricKey? {
    do {
      let key = try Curve25519.KeyAgreement.PublicKey(rawRepresentation: other)
      let secret = try mine.sharedSecretFromKeyAgreement(with: key)
      guard secret.withUnsafeBytes({ bytes in bytes.contains { $0 != 0 } }) else { return nil }
      return secret.hkdfDerivedSymmetricKey(
        using: SHA256.self, salt: share + recipient, sharedInfo: info, outputByteCount: 32)
    } catch {
      // The libraries refuse such keys, too.
      return nil
    }
  }
}

/// The private key of a ``HybridRecipient``: the 32 bytes that X-Wing makes both of its keys from.
struct HybridIdentity: IdentityKind {
  static let stanzaKind = "mlkem768x25519"
  /// The prefix of the text, in lowercase.
  static let prefix = "age-secret-key-pq-"
  /// The number of bytes of a sender's share.
  static let shareByteCount = 1120

  private let seed: SymmetricKey

  /// A new key.
  init() { seed = SymmetricKey(size: .bits256) }

  /// Creates the key from its 32 bytes; nil for another number.
  init?(_ bytes: [UInt8]) {
    guard bytes.count == 32 else { return nil }
    seed = SymmetricKey(data: bytes)
  }

  var bytes: [UInt8] { seed.withUnsafeBytes { Array($0) } }

  /// The public key.
  ///
  /// - Throws: `IdentityError` with code `unsupportedKey`.
  func recipient() throws(IdentityError) -> HybridRecipient {
    guard #available(macOS 26, iOS 26, *) else {
      throw IdentityError(.unsupportedKey, "identities that begin with AGE-SECRET-KEY-PQ-1 need macOS 26 or iOS 26")
    }
    do { return HybridRecipient(bytes: Array(try privateKey().publicKey.rawRepresentation)) } catch {
      throw IdentityError(
        .invalidIdentity, "an identity that begins with AGE-SECRET-KEY-PQ-1 has no valid key: \(error)")
    }
  }

  @available(macOS 26, iOS 26, *)
  private func privateKey() throws -> XWingMLKEM768X25519.PrivateKey {
    try XWingMLKEM768X25519.PrivateKey(seedRepresentation: bytes, publicKey: nil)
  }

  static func check(_ stanza: Stanza) throws(ByteStreamError) {
    guard stanza.arguments.count == 1, bytes(stanza.arguments[0], count: shareByteCount) != nil else {
      throw malformed("does not name one share of \(shareByteCount) bytes")
    }
    try checkBody(of: stanza)
  }

  func unwrap(_ stanza: Stanza) throws(ByteStreamError) -> FileKey? {
    guard #available(macOS 26, iOS 26, *) else {
      throw ByteStreamError(
        .unsupportedEncryption, "it is encrypted for quantum-safe keys, which need macOS 26 or iOS 26")
    }
    guard let share = Self.bytes(stanza.arguments[0], count: Self.shareByteCount) else { return nil }
    var recipient: HPKE.Recipient
    do {
      recipient = try HPKE.Recipient(
        privateKey: privateKey(), ciphersuite: HybridRecipient.suite, info: HybridRecipient.info,
        encapsulatedKey: Data(share))
    } catch { throw Self.malformed("has a share that is none") }
    do { return FileKey(SymmetricKey(data: try recipient.open(Data(stanza.body)))) } catch {
      // Decapsulating a share for another key also yields a key, which then fails to decrypt.
      return nil
    }
  }
}

/// A public key that stays safe when there are quantum computers: X-Wing, which is ML-KEM-768 and X25519 in one.
struct HybridRecipient: RecipientKind, Equatable {
  static let prefix = "age1pq"
  static let byteCount = 1216
  static let info = Data("age-encryption.org/mlkem768x25519".utf8)

  let bytes: [UInt8]

  @available(macOS 26, iOS 26, *)
  static var suite: HPKE.Ciphersuite { .init(kem: .XWingMLKEM768X25519, kdf: .HKDF_SHA256, aead: .chaChaPoly) }

  func wrap(_ key: FileKey) throws(IdentityError) -> Stanza {
    guard #available(macOS 26, iOS 26, *) else {
      throw IdentityError(.unsupportedKey, "recipients that begin with age1pq1 need macOS 26 or iOS 26")
    }
    do {
      let recipient = try XWingMLKEM768X25519.PublicKey(rawRepresentation: bytes)
      var sender = try HPKE.Sender(recipientKey: recipient, ciphersuite: Self.suite, info: Self.info)
      let body = try sender.seal(key.secret.withUnsafeBytes { Data($0) })
      let share = String(decoding: Base64.encode(sender.encapsulatedKey), as: UTF8.self)
      return Stanza(kind: HybridIdentity.stanzaKind, arguments: [share], body: Array(body))
    } catch {
      throw IdentityError(.invalidRecipient, "a recipient that begins with age1pq1 has no valid key: \(error)")
    }
  }
}

/// A passphrase, which both wraps and unwraps the key of a file.
struct Passphrase: RecipientKind, IdentityKind {
  static let stanzaKind = "scrypt"
  /// The default cost of decrypting: 256 MB, and about a second.
  static let defaultWorkFactor = 18
  /// The highest accepted cost: 1 GB.
  static let maximumWorkFactor = 20
  private static let saltByteCount = 16
  private static let label = Array("age-encryption.org/v1/scrypt".utf8)

  private let secret: SymmetricKey
  /// The base-2 logarithm of the cost of wrapping a key.
  private let workFactor: Int

  /// - Throws: `IdentityError` with code `emptyPassphrase`.
  init(_ bytes: [UInt8], workFactor: Int = defaultWorkFactor) throws(IdentityError) {
    guard !bytes.isEmpty else { throw IdentityError(.emptyPassphrase, "the passphrase is empty") }
    secret = SymmetricKey(data: bytes)
    self.workFactor = workFactor
  }

  func wrap(_ key: FileKey) throws(IdentityError) -> Stanza {
    do {
      let salt = SymmetricKey(size: .bits128).withUnsafeBytes { Array($0) }
      let body = try key.wrapped(with: wrappingKey(salt: salt, workFactor: workFactor))
      let saltText = String(decoding: Base64.encode(salt), as: UTF8.self)
      return Stanza(kind: Self.stanzaKind, arguments: [saltText, "\(workFactor)"], body: body)
    } catch { throw IdentityError(.encryptionFailed, "no key can be made of the passphrase: \(error)") }
  }

  static func check(_ stanza: Stanza) throws(ByteStreamError) {
    guard stanza.arguments.count == 2, bytes(stanza.arguments[0], count: saltByteCount) != nil else {
      throw malformed("does not name one salt of \(saltByteCount) bytes and a work factor")
    }
    try checkBody(of: stanza)
    let digits = Array(stanza.arguments[1].utf8)
    guard digits.first != UInt8(ascii: "0"), digits.allSatisfy({ (48...57).contains($0) }) else {
      throw malformed("has a work factor that is no number")
    }
    // One that is too large for a number is too large in any case.
    guard let factor = Int(stanza.arguments[1]), factor <= maximumWorkFactor else {
      throw ByteStreamError(
        .excessiveWorkFactor,
        "its passphrase has a work factor of \(digits.count > 9 ? "billions" : stanza.arguments[1]), and no more than "
          + "\(maximumWorkFactor) is accepted; ask for a file with less")
    }
  }

  func unwrap(_ stanza: Stanza) throws(ByteStreamError) -> FileKey? {
    guard let salt = Self.bytes(stanza.arguments[0], count: Self.saltByteCount), let factor = Int(stanza.arguments[1])
    else { return nil }
    let wrappingKey: SymmetricKey
    do { wrappingKey = try self.wrappingKey(salt: salt, workFactor: factor) } catch {
      throw ByteStreamError(.outOfMemory, "the work factor \(factor) of its passphrase needs more memory than there is")
    }
    return FileKey(unwrapping: stanza.body, with: wrappingKey)
  }

  private func wrappingKey(salt: [UInt8], workFactor: Int) throws -> SymmetricKey {
    let bytes = secret.withUnsafeBytes { Array($0) }
    return try KDF.Scrypt.deriveKey(
      from: bytes, salt: Self.label + salt, outputByteCount: 32, rounds: 1 << workFactor, blockSize: 8, parallelism: 1)
  }
}
