import BuckiaBytes
import Crypto

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The beginning of an encrypted file: the file key, wrapped for each recipient, and a MAC over that (the seal).
struct AgeHeader {
  /// The first line.
  static let intro = Array("age-encryption.org/v1".utf8)
  /// The beginning of the first line in every version.
  static let introPrefix = Array("age-encryption.org/".utf8)
  /// The beginning of the last line, at which the sealed bytes end.
  static let end = Array("---".utf8)
  /// The maximum number of recipients.
  static let maximumStanzas = 64
  /// The maximum size of a header in bytes: more than 64 recipients of the largest kind need.
  static let maximumBytes = 256 << 10

  /// The wrapped keys.
  let stanzas: [Stanza]
  /// The sealed bytes: everything up to and with the three dashes.
  let sealed: [UInt8]
  /// The seal.
  let seal: [UInt8]

}

extension AgeHeader {
  /// A new header.
  init(_ stanzas: [Stanza], of key: FileKey) {
    let sealed = Self.intro + [UInt8(ascii: "\n")] + stanzas.flatMap(\.text) + Self.end
    self.init(stanzas: stanzas, sealed: sealed, seal: key.seal(of: sealed))
  }

  /// The header's bytes in the file.
  var text: [UInt8] { sealed + [UInt8(ascii: " ")] + Base64.encode(seal) + [UInt8(ascii: "\n")] }
}

/// Reads a header strictly: nothing is accepted that would not be written the same way.
struct HeaderReader {
  private let input: LineInput
  private var line: [UInt8] = []
  private var sealed: [UInt8] = []

  /// Reads the header at the beginning of an input, and leaves the input after it.
  ///
  /// - Throws: `ByteStreamError` with code `notEncrypted` or `malformedHeader`, or the input's own.
  static func read(_ input: LineInput) throws(ByteStreamError) -> AgeHeader {
    var reader = HeaderReader(input: input)
    return try reader.header()
  }

  private mutating func header() throws(ByteStreamError) -> AgeHeader {
    try readIntro()
    var stanzas: [Stanza] = []
    while true {
      try readLine()
      if line.starts(with: AgeHeader.end) {
        guard !stanzas.isEmpty else { throw Self.malformed("it names no recipient") }
        sealed += AgeHeader.end
        return AgeHeader(stanzas: stanzas, sealed: sealed, seal: try seal())
      }
      guard stanzas.count < AgeHeader.maximumStanzas else {
        throw Self.malformed("it names more than \(AgeHeader.maximumStanzas) recipients")
      }
      stanzas.append(try stanza())
    }
  }

  private mutating func readIntro() throws(ByteStreamError) {
    let ending = try input.readLine(into: &line, limit: 128)
    guard line.starts(with: AgeHeader.introPrefix) else {
      throw ByteStreamError(.notEncrypted, "it is no file that was encrypted with age")
    }
    guard line == AgeHeader.intro else {
      throw ByteStreamError(.notEncrypted, "it is encrypted in another version of age's format than v1, or damaged")
    }
    guard case .newline = ending else { throw Self.malformed("it is cut off") }
    keepLine()
  }

  /// Reads the wrapped key that begins with the current line.
  private mutating func stanza() throws(ByteStreamError) -> Stanza {
    let words = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
    guard words.count >= 2, words[0].elementsEqual("->".utf8),
      words.dropFirst().allSatisfy({ word in !word.isEmpty && word.allSatisfy { (33...126).contains($0) } })
    else { throw Self.malformed("a recipient's line is not as it must be") }
    let texts = words.dropFirst().map { String(decoding: $0, as: UTF8.self) }
    var stanza = Stanza(kind: texts[0], arguments: Array(texts.dropFirst()), body: [])
    keepLine()
    repeat {
      try readLine()
      guard line.count <= Base64.lineLength, Base64.decode(line, into: &stanza.body) else {
        throw Self.malformed("a wrapped key is not as it must be")
      }
      keepLine()
    } while line.count == Base64.lineLength
    return stanza
  }

  /// Reads the seal in the current line.
  private func seal() throws(ByteStreamError) -> [UInt8] {
    let prefix = AgeHeader.end + [UInt8(ascii: " ")]
    guard line.starts(with: prefix), let seal = Base64.decode(line[prefix.count...]), seal.count == 32 else {
      throw Self.malformed("its last line is not as it must be")
    }
    return seal
  }

  private mutating func readLine() throws(ByteStreamError) {
    switch try input.readLine(into: &line, limit: AgeHeader.maximumBytes - sealed.count) {
    case .newline: return
    case .end: throw Self.malformed("it is cut off")
    case .tooLong: throw Self.malformed("it is longer than \(AgeHeader.maximumBytes >> 10) KB")
    }
  }

  private mutating func keepLine() {
    sealed += line
    sealed.append(UInt8(ascii: "\n"))
  }

  /// A header that breaks a rule.
  static func malformed(_ what: String) -> ByteStreamError {
    ByteStreamError(.malformedHeader, "its header is damaged: \(what)")
  }
}

/// The key of a file, as one recipient can unwrap it.
struct Stanza: Equatable, Sendable {
  /// The recipient's kind: the first word.
  var kind: String
  /// What follows it.
  var arguments: [String]
  /// The wrapped key.
  var body: [UInt8]

  /// The stanza as a header has it, with the line feed at its end.
  var text: [UInt8] {
    var text = Array("-> \(([kind] + arguments).joined(separator: " "))\n".utf8)
    let encoded = Base64.encode(body)
    // The last line is shorter than the others, and empty if they have all bytes.
    for start in stride(from: 0, through: encoded.count, by: Base64.lineLength) {
      text += encoded[start..<min(encoded.count, start + Base64.lineLength)]
      text.append(UInt8(ascii: "\n"))
    }
    return text
  }
}

/// The key that one file is encrypted with and that its header wraps for each recipient.
struct FileKey {
  /// Its length.
  static let byteCount = 16

  /// The bytes, wiped when the last copy goes.
  let secret: SymmetricKey

  /// A new key, from the system's randomness: no other source is good enough for a key.
  init() { secret = SymmetricKey(size: .bits128) }

  /// A key that was unwrapped.
  init(_ secret: SymmetricKey) { self.secret = secret }

  /// The seal of a header.
  func seal(of header: [UInt8]) -> [UInt8] {
    Array(HMAC<SHA256>.authenticationCode(for: header, using: derivedKey(salt: [], info: "header")))
  }

  /// True if the header's MAC was made with this file key.
  func hasSealed(_ header: AgeHeader) -> Bool {
    // Compared in constant time.
    HMAC<SHA256>.isValidAuthenticationCode(
      header.seal, authenticating: header.sealed, using: derivedKey(salt: [], info: "header"))
  }

  /// The key of the bytes after the header.
  ///
  /// - Parameter nonce: What follows the header.
  func payloadKey(nonce: [UInt8]) -> SymmetricKey { derivedKey(salt: nonce, info: "payload") }

  private func derivedKey(salt: [UInt8], info: String) -> SymmetricKey {
    HKDF<SHA256>.deriveKey(inputKeyMaterial: secret, salt: salt, info: Array(info.utf8), outputByteCount: 32)
  }
}

/// The wrapped file key of a stanza: encrypted once, with a key for only this purpose.
extension FileKey {
  /// The number of bytes of a wrapped key.
  static let wrappedByteCount = byteCount + 16

  // The wrapping key is new for each file and stanza, which is why a constant nonce is safe.
  private static let nonce = [UInt8](repeating: 0, count: 12)

  func wrapped(with wrappingKey: SymmetricKey) throws -> [UInt8] {
    let nonce = try ChaChaPoly.Nonce(data: Self.nonce)
    let box = try ChaChaPoly.seal(secret.withUnsafeBytes { Data($0) }, using: wrappingKey, nonce: nonce)
    return Array(box.ciphertext + box.tag)
  }

  /// Unwraps the key in a stanza's body; nil if it was wrapped with another key.
  init?(unwrapping body: [UInt8], with wrappingKey: SymmetricKey) {
    do {
      let box = try ChaChaPoly.SealedBox(combined: Self.nonce + body)
      self.init(SymmetricKey(data: try ChaChaPoly.open(box, using: wrappingKey)))
    } catch {
      // The only reason: it was not wrapped with this key.
      return nil
    }
  }
}
