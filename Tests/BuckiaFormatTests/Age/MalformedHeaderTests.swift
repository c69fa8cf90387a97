import BuckiaFormat
import BuckiaBytes
import Foundation
import Testing

/// Each rule of the header, violated once in a file with a right seal.
@Suite("Malformed headers")
struct MalformedHeaderTests {
  private static func decryption() throws -> Decryption {
    let identity = try AgeIdentity(parsing: KeyTests.identity)
    return try Decryption(identities: [identity], passphrase: Array(AgeFileBuilder.passphrase.utf8))
  }

  private static func code(_ file: AgeFileBuilder) throws -> String? {
    let (plain, error) = try Ciphers.released(file.bytes, with: decryption())
    #expect(error == nil || plain.isEmpty)
    return error?.code.rawValue
  }

  @Test("the builder's own files can be opened")
  func wellFormed() throws {
    #expect(try Self.code(.x25519()) == nil)
    #expect(try Self.code(.scrypt()) == nil)
    #expect(try Ciphers.decrypt(AgeFileBuilder.scrypt().bytes, with: Self.decryption()) == Array("hello".utf8))
  }

  private static let wrapped = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
  private static let fullLine = String(repeating: "A", count: 64)

  @Test(
    "stanzas of other kinds are skipped, whatever they contain",
    arguments: [
      "-> grease\n\n", "-> !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ a\n\(wrapped)\n", "-> x\n\(fullLine)\n\n",
      "-> x\n\(fullLine)\n\(fullLine)\nAA\n", "-> x25519 \(wrapped)\n\(wrapped)\n", "-> Scrypt a b c\n\n",
      "-> mlkem768x25519 x\n\n",
    ])
  func others(stanza: String) throws {
    var file = try AgeFileBuilder.x25519()
    file.stanzas = stanza + file.stanzas
    #expect(try Self.code(file) == nil)
    file.stanzas = try file.x25519Stanza() + stanza
    #expect(try Self.code(file) == nil)
  }

  @Test(
    "a malformed stanza is refused",
    arguments: [
      "-> \n\n", "->\n\n", "->x\n\n", "->  x\n\n", "-> x \n\n", "-> x  y\n\n", "-> x\r\n\n", "-> x\ty\n\n", "-> é\n\n",
      "-> x\nAA==\n", "-> x\nAB\n", "-> x\nA\n", "-> x\nA A\n", "-> x\nAA\r\n", "-> x\n\(fullLine)A\n",
      "-> x\nAA\nAA\n",
      "-> x\n\(fullLine)\n", "-> x\n", "\n", "x\n", "-> x\nA_\n", "-> x\n=\n",
    ])
  func grammar(stanza: String) throws {
    var file = try AgeFileBuilder.x25519()
    file.stanzas = stanza + file.stanzas
    #expect(try Self.code(file) == "malformedHeader")
  }

  @Test(
    "a wrong first line is refused",
    arguments: [
      ("age-encryption.org/v2\n", "notEncrypted"), ("age-encryption.org/v1\r\n", "notEncrypted"),
      ("age-encryption.org/v1 \n", "notEncrypted"), ("age-encryption.org/v\n", "notEncrypted"), ("", "malformedArmor"),
      ("Age-encryption.org/v1\n", "notEncrypted"), ("age-encryption.org/v1\n\n", "malformedHeader"),
    ])
  func intro(line: String, code: String) throws {
    var file = try AgeFileBuilder.x25519()
    file.intro = line
    #expect(try Self.code(file) == code)
  }

  @Test(
    "a malformed last line is refused",
    arguments: [
      "\n", " \n", " \(wrapped)A\n", "\(wrapped)\n", "  \(wrapped)\n", " \(wrapped) \n", " \(wrapped)\r\n",
      " \(wrapped) x\n",
      " \(wrapped)=\n", " \(wrapped.dropLast())B\n", " \(wrapped.dropLast(3))\n",
    ])
  func end(seal: String) throws {
    var file = try AgeFileBuilder.x25519()
    file.seal = seal
    #expect(try Self.code(file) == "malformedHeader")
  }

  @Test("a wrong seal has its own error")
  func seal() throws {
    var file = try AgeFileBuilder.x25519()
    file.seal = " \(Self.wrapped)\n"
    #expect(try Self.code(file) == "alteredHeader")
  }

  @Test("a header without a recipient, or with more than 64, is refused")
  func counts() throws {
    var file = try AgeFileBuilder.x25519()
    file.stanzas = ""
    #expect(try Self.code(file) == "malformedHeader")
    let others = String(repeating: "-> x\n\n", count: 63)
    file.stanzas = try others + file.x25519Stanza()
    #expect(try Self.code(file) == nil)
    file.stanzas = try others + "-> x\n\n" + file.x25519Stanza()
    #expect(try Self.code(file) == "malformedHeader")
  }

  @Test("the length of a header is limited")
  func length() throws {
    var file = try AgeFileBuilder.x25519()
    file.stanzas = "-> x \(String(repeating: "y", count: 300_000))\n\n" + file.stanzas
    #expect(try Self.code(file) == "malformedHeader")
    file.stanzas = "-> x\n" + String(repeating: "\(Self.fullLine)\n", count: 5000) + "\n" + file.stanzas
    #expect(try Self.code(file) == "malformedHeader")
  }

  @Test("a truncated header is refused")
  func truncated() throws {
    let bytes = try AgeFileBuilder.x25519().bytes
    let end = bytes.count - 5 - 16
    for count in 0..<end {
      let (plain, error) = try Ciphers.released(Array(bytes[..<count]), with: Self.decryption())
      #expect(plain.isEmpty)
      #expect(error?.code == (count < 21 ? .notEncrypted : .malformedHeader), "\(count)")
    }
  }

  @Test("an X25519 stanza that violates a rule is refused")
  func x25519() throws {
    let good = try AgeFileBuilder.x25519()
    let (share, body) = try good.x25519Parts()
    let (shareText, bodyText) = (AgeFileBuilder.base64(share), AgeFileBuilder.base64(body))
    var low = Data(count: 32)
    let zero = AgeFileBuilder.base64(low)
    low[0] = 1
    let longKey = try AgeFileBuilder.wrap(Data(count: 17), .init(size: .bits256))
    let broken = [
      "-> X25519\n\(bodyText)\n", "-> X25519 \(shareText) x\n\(bodyText)\n",
      "-> X25519 \(AgeFileBuilder.base64(share.dropLast()))\n\(bodyText)\n",
      "-> X25519 \(AgeFileBuilder.base64(share + [0]))\n\(bodyText)\n", "-> X25519 \(shareText)=\n\(bodyText)\n",
      "-> X25519 \(Self.wrapped.dropLast())B\n\(bodyText)\n", "-> X25519 \(zero)\n\(bodyText)\n",
      "-> X25519 \(AgeFileBuilder.base64(low))\n\(bodyText)\n", "-> X25519 \(shareText)\n\n",
      "-> X25519 \(shareText)\n\(AgeFileBuilder.base64(body.dropLast()))\n",
      "-> X25519 \(shareText)\n\(AgeFileBuilder.base64(longKey))\n",
    ]
    for stanza in broken {
      var file = good
      file.stanzas = stanza
      #expect(try Self.code(file) == "malformedHeader", "\(stanza)")
    }
    var other = good
    other.stanzas = "-> X25519 \(shareText)\n\(Self.wrapped)\n"
    #expect(try Self.code(other) == "noMatchingIdentity")
  }

  @Test(
    "a malformed work factor is refused",
    arguments: [
      ("0", "malformedHeader"), ("010", "malformedHeader"), ("+10", "malformedHeader"), ("-10", "malformedHeader"),
      ("0xa", "malformedHeader"), ("10x", "malformedHeader"), ("1e1", "malformedHeader"), ("21", "excessiveWorkFactor"),
      ("99999999999999999999999999", "excessiveWorkFactor"), ("11", "noMatchingIdentity"),
    ])
  func workFactor(text: String, code: String) throws {
    var file = try AgeFileBuilder.scrypt()
    file.stanzas = "-> scrypt \(AgeFileBuilder.scryptSalt) \(text)\n\(AgeFileBuilder.scryptBody)\n"
    #expect(try Self.code(file) == code)
  }

  @Test(
    "a scrypt stanza that violates a rule is refused",
    arguments: [
      "-> scrypt AAAAAAAAAAAAAAAAAAAAAA\n\(wrapped)\n", "-> scrypt AAAAAAAAAAAAAAAAAAAAAA 10 x\n\(wrapped)\n",
      "-> scrypt AAAAAAAAAAAAAAAAAAAAAAAA 10\n\(wrapped)\n", "-> scrypt AAAAAAAAAAAAAAAAAAAA 10\n\(wrapped)\n",
      "-> scrypt AAAAAAAAAAAAAAAAAAAAAB 10\n\(wrapped)\n", "-> scrypt AAAAAAAAAAAAAAAAAAAAAA 10\n\(wrapped)A\n",
      "-> scrypt AAAAAAAAAAAAAAAAAAAAAA 10\n\n",
    ])
  func scrypt(stanza: String) throws {
    var file = try AgeFileBuilder.scrypt()
    file.stanzas = stanza
    #expect(try Self.code(file) == "malformedHeader")
  }

  @Test("a passphrase cannot be combined with another recipient")
  func scryptAlone() throws {
    var file = try AgeFileBuilder.scrypt()
    for other in [file.scryptStanza, try file.x25519Stanza(), "-> grease\n\n"] {
      for stanzas in [other + file.scryptStanza, file.scryptStanza + other] {
        file.stanzas = stanzas
        #expect(try Self.code(file) == "malformedHeader")
      }
    }
  }
}
