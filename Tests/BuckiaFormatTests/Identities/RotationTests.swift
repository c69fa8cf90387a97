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
  func `the old key to decrypt is kept, the old key to sign is not`() throws {
    let anna = try person("Anna")
    let next = try rotated(anna).identity
    #expect(next.decryptionSeeds == [next.encryption.bytes, anna.encryption.bytes])
    let document = String(decoding: next.document, as: UTF8.self)
    #expect(!document.contains(HexText.lowercase(anna.signing.bytes)))
    #expect(try Identity(document: next.document) == next)
  }

  @Test
  func `no one takes another's key for their next`() throws {
    // Mallory's contact would then be believed what Anna signs.
    let anna = try person("Anna")
    let mallory = try person("Mallory", 2)
    let document: JSONValue = ["ends": .string(mallory.card.key), "card": .string(anna.card.text)]
    let forged = try SignedText(.rotation, document.bytes(), signedBy: [mallory.signing, mallory.signing])
    #expect(code { _ = try KeyRotation(verifying: forged.text) } == .badSignature)
  }

  @Test
  func `no one ends another's key`() throws {
    let anna = try person("Anna")
    let mallory = try person("Mallory", 2)
    let document: JSONValue = ["ends": .string(anna.card.key), "card": .string(mallory.card.text)]
    let forged = try SignedText(.rotation, document.bytes(), signedBy: [mallory.signing, mallory.signing])
    #expect(code { _ = try KeyRotation(verifying: forged.text) } == .badSignature)
  }

  @Test
  func `a card is no rotation and a rotation no card`() throws {
    let (next, rotation) = try rotated(person("Anna"))
    #expect(code { _ = try KeyRotation(verifying: next.card.text) } == .invalidCard)
    #expect(code { _ = try IdentityCard(verifying: rotation.text) } == .invalidCard)
  }
}
