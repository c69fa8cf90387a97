import BuckiaBytes
import Testing

@testable import BuckiaFormat

struct RotationTests {
  @Test
  func `a rotation names the old key and the new card`() throws {
    let anna = try person("Anna")
    let (next, rotation) = try rotated(anna)
    let read = try KeyRotation(verifying: rotation.text)
    #expect(read == rotation)
    #expect(read.endedKey == anna.card.signingKey)
    #expect(read.card == next.card)
    #expect(next.name == "Anna")
    #expect(next.fingerprint != anna.fingerprint)
  }

  @Test
  func `the old decryption key is kept, the old signing key is not`() throws {
    let anna = try person("Anna")
    let next = try rotated(anna).identity
    #expect(next.decryptionSeeds == [next.encryption.bytes, anna.encryption.bytes])
    let document = String(decoding: next.document, as: UTF8.self)
    #expect(!document.contains(HexText.lowercase(anna.signing.bytes)))
    #expect(try Identity(document: next.document) == next)
  }

  @Test
  func `no one can claim another's key as their next`() throws {
    // Otherwise Mallory's contacts would attribute to her what Anna signs.
    let anna = try person("Anna")
    let mallory = try person("Mallory", 2)
    let document: JSONValue = ["ends": .string(mallory.card.key), "card": .string(anna.card.text)]
    let forged = try SignedText(.rotation, document.bytes(), signedBy: [mallory.signing, mallory.signing])
    #expect(code { _ = try KeyRotation(verifying: forged.text) } == .badSignature)
  }

  @Test
  func `no one can end another's key`() throws {
    let anna = try person("Anna")
    let mallory = try person("Mallory", 2)
    let document: JSONValue = ["ends": .string(anna.card.key), "card": .string(mallory.card.text)]
    let forged = try SignedText(.rotation, document.bytes(), signedBy: [mallory.signing, mallory.signing])
    #expect(code { _ = try KeyRotation(verifying: forged.text) } == .badSignature)
  }

  @Test
  func `a card is not a rotation, and a rotation not a card`() throws {
    let (next, rotation) = try rotated(person("Anna"))
    #expect(code { _ = try KeyRotation(verifying: next.card.text) } == .invalidCard)
    #expect(code { _ = try IdentityCard(verifying: rotation.text) } == .invalidCard)
  }
}
