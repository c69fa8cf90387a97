import BuckiaBytes
import Crypto
import CryptoExtras

/// A passphrase, which both wraps and unwraps the key of a file.
struct Passphrase: RecipientKind, IdentityKind {
  static let stanzaKind = "scrypt"
  /// What is asked of those who decrypt unless told otherwise: 256 MB, and about a second.
  static let defaultWorkFactor = 18
  /// What a file may ask of us at most: 1 GB.
  static let maximumWorkFactor = 20
  private static let saltByteCount = 16
  private static let label = Array("age-encryption.org/v1/scrypt".utf8)

  private let secret: SymmetricKey
  /// The logarithm to base 2 of what wrapping a key costs.
  private let workFactor: Int

  /// - Throws: `AgeError` with code `emptyPassphrase`.
  init(_ bytes: [UInt8], workFactor: Int = defaultWorkFactor) throws(AgeError) {
    guard !bytes.isEmpty else { throw AgeError(.emptyPassphrase, "the passphrase is empty") }
    secret = SymmetricKey(data: bytes)
    self.workFactor = workFactor
  }

  func wrap(_ key: FileKey) throws(AgeError) -> Stanza {
    do {
      let salt = SymmetricKey(size: .bits128).withUnsafeBytes { Array($0) }
      let body = try KeyWrapping.wrap(key, with: wrappingKey(salt: salt, workFactor: workFactor))
      let saltText = String(decoding: Base64.encode(salt), as: UTF8.self)
      return Stanza(kind: Self.stanzaKind, arguments: [saltText, "\(workFactor)"], body: body)
    } catch { throw AgeError(.encryptionFailed, "no key can be made of the passphrase: \(error)") }
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
    return KeyWrapping.unwrap(stanza.body, with: wrappingKey)
  }

  private func wrappingKey(salt: [UInt8], workFactor: Int) throws -> SymmetricKey {
    let bytes = secret.withUnsafeBytes { Array($0) }
    return try KDF.Scrypt.deriveKey(
      from: bytes, salt: Self.label + salt, outputByteCount: 32, rounds: 1 << workFactor, blockSize: 8, parallelism: 1)
  }
}
