import BuckiaBytes
import Crypto
import Foundation
import Testing

@testable import BuckiaFormat

struct CardTests {
  @Test
  func `a card is written and read unchanged`() throws {
    let anna = try person("Anna")
    let card = try IdentityCard(verifying: anna.card.text)
    #expect(card == anna.card)
    #expect(card.name == "Anna")
    #expect(card.madeAt == 1_700_000_000_000)
    #expect(card.text.hasPrefix("buckia-card-1:"))
  }

  @Test
  func `a card survives line breaks`() throws {
    let card = try person("Anna").card
    let lines = card.text.enumerated().map { $0.offset % 60 == 59 ? "\($0.element)\r\n " : "\($0.element)" }.joined()
    #expect(try IdentityCard(verifying: "\n\(lines)\n") == card)
  }

  @Test
  func `any changed character of a card is detected`() throws {
    let text = Array(try person("Anna").card.text.utf8)
    for index in text.indices {
      var changed = text
      changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
      #expect(throws: IdentityError.self, "byte \(index)") {
        try IdentityCard(verifying: String(decoding: changed, as: UTF8.self))
      }
    }
  }

  @Test
  func `a card with another's keys needs their signature`() throws {
    let anna = try person("Anna")
    let mallory = try person("Mallory", 2)
    let document: JSONValue = [
      "name": "Mallory", "made": 1, "signing": .string(anna.card.key),
      "encryption": .string("\(mallory.card.encryptionKey)"),
    ]
    let forged = try SignedText(.card, document.bytes(), signedBy: [mallory.signing])
    #expect(code { _ = try IdentityCard(verifying: forged.text) } == .badSignature)
  }

  @Test(arguments: ["", "buckia-card-1", "buckia-card-1:", "buckia-card-1:e30", "age1xyz", "buckia-card-1:e30.e30.e30"])
  func `a text that is no card is refused`(_ text: String) {
    #expect(code { _ = try IdentityCard(verifying: text) } == .invalidCard)
  }

  @Test
  func `a card of a newer version is named as such`() throws {
    let text = try person("Anna").card.text.replacingOccurrences(of: "card-1", with: "card-2")
    #expect(code { _ = try IdentityCard(verifying: text) } == .unsupportedFormat)
  }

  @Test
  func `a card with an unknown member is refused, even if it is signed`() throws {
    let anna = try person("Anna")
    let document: JSONValue = [
      "name": "Anna", "made": 1, "signing": .string(anna.card.key),
      "encryption": .string("\(anna.card.encryptionKey)"), "admin": true,
    ]
    let signed = try SignedText(.card, document.bytes(), signedBy: [anna.signing])
    #expect(code { _ = try IdentityCard(verifying: signed.text) } == .invalidCard)
  }

  @Test
  func `a card's signature is not valid for a rotation or a manifest`() throws {
    let anna = try person("Anna")
    let signed = try SignedText(anna.card.text)
    let key = try Curve25519.Signing.PublicKey(rawRepresentation: anna.card.signingKey.bytes)
    #expect(key.isValidSignature(signed.signatures[0], for: Array("buckia/card/v1\n".utf8) + signed.document))
    for prefix in ["buckia/rotation/v1\n", "buckia/manifest/v1\n", ""] {
      #expect(!key.isValidSignature(signed.signatures[0], for: Array(prefix.utf8) + signed.document))
    }
  }

  @Test
  func `the fingerprint has twenty unambiguous letters, and both keys change it`() throws {
    let anna = try person("Anna").card
    let other = try person("Anna", 2).card
    let text = anna.fingerprint.description
    #expect(text.split(separator: "-").map(\.count) == [4, 4, 4, 4, 4])
    #expect(text.allSatisfy { "abcdefghijklmnopqrstuvwxyz234567-".contains($0) })
    #expect(Fingerprint(signing: anna.signingKey, encryption: other.encryptionKey) != anna.fingerprint)
    #expect(Fingerprint(signing: other.signingKey, encryption: anna.encryptionKey) != anna.fingerprint)
    #expect(Fingerprint(text.uppercased().replacingOccurrences(of: "-", with: " ")) == anna.fingerprint)
    #expect(Fingerprint("abcd-efgh") == nil)
  }

  @Test
  func `the fingerprint of given keys never changes`() throws {
    let signing = try #require(SigningKey(Array(0..<32)))
    let encryption = try #require(EncryptionKey(Array(32..<64)))
    let digest = Array(SHA256.hash(data: Array("buckia/fingerprint/v1\n".utf8) + Array(0..<64)))
    // The same bits, computed another way.
    let bits = digest.flatMap { byte in (0..<8).map { byte >> (7 - $0) & 1 } }
    let letters = Array("abcdefghijklmnopqrstuvwxyz234567")
    let expected = (0..<20).map { place in
      letters[bits[(5 * place)..<(5 * place + 5)].reduce(0) { 2 * $0 + Int($1) }]
    }
    let shown = Fingerprint(signing: signing, encryption: encryption).description.filter { $0 != "-" }
    #expect(shown == String(expected))
  }

  @Test(arguments: [
    "", " Anna", "Anna ", "An\u{202E}na", "An\nna", "\u{1B}[31mAnna", "-a", "a/b", "age1abc", "unsigned", "You",
    "key 12",
    String(repeating: "a", count: 65), "a" + String(repeating: "\u{301}", count: 200),
  ])
  func `misleading names are refused`(_ name: String) {
    #expect(code { _ = try person(name) } == .invalidName)
  }

  @Test(arguments: ["Anna", "Jörg Müller", "安娜", "👩‍👩‍👧", String(repeating: "ä", count: 64)])
  func `names in all scripts are accepted`(_ name: String) throws {
    #expect(try IdentityCard(verifying: person(name).card.text).name == name)
  }
}
