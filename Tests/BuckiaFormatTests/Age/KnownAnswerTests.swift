import BuckiaFormat
import BuckiaBytes
import Foundation
import Testing

/// Stanzas of the specification, <https://c2sp.org/age>. Their file keys are not published, so the tests only show that
/// a stanza opens: the seal, made by us with another key, is then wrong, which is only reported after a stanza has
/// opened.
@Suite("The specification's examples")
struct KnownAnswerTests {
  private static func code(_ stanzas: String, identity: String) throws -> String? {
    var file = AgeFileBuilder()
    file.stanzas = stanzas
    let decryption = try Decryption(identities: [AgeIdentity(parsing: identity)])
    return try Ciphers.released(file.bytes, with: decryption).error?.code.rawValue
  }

  @Test("the X25519 stanza opens with its identity")
  func x25519() throws {
    let stanza = """
      -> X25519 O6DLx/wDIawpUC978NSPjYvrfDtJVnZApXKp4FMPHCY
      3aKjozt9agh7jGmvOKvR4iax41Wl4zj95MKK4X9JuWc

      """
    #expect(try Self.code(stanza, identity: KeyTests.identity) == "alteredHeader")
    #expect(try Self.code(stanza, identity: AgeIdentity().secretText) == "noMatchingIdentity")
  }

  private static let hybridIdentity = "AGE-SECRET-KEY-PQ-1XX76JRALNLXDMEW0CRK45QMCCH4X06SE84UN3VPM33W6HWDX0H3SK3ZQFR"

  @Test("the hybrid identity has its recipient")
  func hybridPair() throws {
    let recipient = try AgeIdentity(parsing: Self.hybridIdentity).makeRecipient().description
    // It ends with the checksum of everything before.
    #expect(recipient.hasPrefix("age1pq1x34nzsvr0rxjsgdn8zgyhfe8j7ceq5r9rdelkjuh3y235jzxshfg87pzf5zrqtzdxz95paef6"))
    #expect(recipient.hasSuffix("3tlhl53k2ykx3qheyty7saeq0d3fzv49zc0k"))
    #expect(recipient.utf8.count == 1959)
  }

  @Test("the hybrid stanza opens with its identity")
  func hybrid() throws {
    let share = """
      U7E10Aon27j1oDrH7fP3B++SPROSnDVvQpBemzOM+ZcsojxJifUbeeYWejMYKNB+H3rlXNvgtDKfSCkt78oqncr3faY1JtMj0GQP\
      BZ2g6t8o1cMzZgyLMepeVuTQKxLqnM6L48n8dJL2y0N3i7WSOV6csB79r9tcIs88Al9iCwVLpt74OzDXAIwD1QlCAvj75ZEnwtgP\
      6Xr6s+wHg9hLD0OSSQOaTdCqzR5shQWyrjVs7GCqd/5WbNGYNaolPQJBu9wTNhHjP9XGCTv8iKXkYwXDYujInkF5hOjpCHE8Vu+9\
      UeMI+l0GJAEervT51bwaf288GiqgapP5g4HF8V4P0+03B/SwXhvxxZpKjTU2OcFS8I9chtEZ7Ucw5bvPkC1lyjNnqQXZyc4JnAqb\
      FQTlPGnwbEsm0UGE+v0FOxTBznIivHoPHV++5PuYpombiV/lfYy8BFx0Hk1igNI3iLNjlIg4MLXNWjN3VROlXIiSsWNXjr/Frh/O\
      E87PXoaKhsDPWfv6akd9PxSDqJMQ4j8k11kCSOnnU8Rw4TSVnTpt7gfYzBULrMr7qDgyH/TYvp0o7mAq4IaraFJmTqm+LjfAJT4P\
      CQOpnMNRHLyXZn6mtMUujNv7+zR/I9Vqi+bJdQBwNWdJcUQVarqx2zxV2rM7l+j0gsmxjxp5yAPyALzla7XzVvbboLMnHeM+CzN4\
      GoB2PC4neVDSw7Dfs8vbm7f9CeDGvhjWrzcSCOsUCalvH1WkbpE0b9cE/TSJqwXFXEc8npTSQWH58RXDALNF3qCbW5LaboD4wClo\
      ClEakgljT0s0mTdqIwzj4xtdlX0S2dCtaV5MHQJiQHGwPvBSCiIsh8ZWJPwZ7Ron7xoWgNI0lXRqhKm7fvFNCzF+Ray2kOyKWHbs\
      My3a5Zx3yZxCGFwexAxgYfAH9HJ1raHi1XYGpNpBlDXg47U1y4uU7RBeBb4ewETv/B/p8sGW88tIY87dHM2xHjnntGXLvkCIkmjX\
      GNULAVYHxDPJTygxSF7uTVPYCBUk5KeLnDVcgWF8p/wxigza47ptMtpVtm9ZrSEu9vzOnaTN3KO75RkkLuZszhXfmMZ46NQrdS7Y\
      6duCiN501BnR5BUC4dX4iMxchix6aLN3pKv6UOEwwcx2aSF4Ib963MAtTPEjhqe+dt0VcTar/08uLWv1kQQueFaEGet4KQ975Zqa\
      oU3PmZH9gqTOumX1EKf0Pnl0F3NMW+lEOlnCEce99zHBwBf7LV0pLNLDONBxpQySrZUQsNfhAq2Ktf5nG2hcGAMFMWIsEOuOyzEe\
      +l2aHW4/ojOjU1Oqy4TLzVVRlWmPxQde7qKbvBN7CQhDqJHJA2nphQT/4DOdLqkwRiauMmnfx9FI3+hYnX25NpnyvM/Pt94vpsRk\
      hcuttu4/G4xOYTNQd2YWjGwhypZ0oPSiriuTbhj6y2qm33jiwxvegeDz8CmAIhOEY2JoVpjjX9XzuNR2f5KTLmLzEkOcJQ
      """
    let stanza = "-> mlkem768x25519 \(share)\nc/k+TjhBA6Je1DF8rxZhe2Jm8CN0zbkV9rre6nA8g98\n"
    #expect(try Self.code(stanza, identity: Self.hybridIdentity) == "alteredHeader")
    #expect(try Self.code(stanza, identity: AgeIdentity(quantumSafe: true).secretText) == "noMatchingIdentity")
    for broken in [
      stanza.replacingOccurrences(of: " U7", with: " x U7"), stanza.replacingOccurrences(of: " U7", with: " "),
      stanza.replacingOccurrences(of: "A8g98", with: "A8g98AA"), "-> mlkem768x25519\n\n",
    ] { #expect(try Self.code(broken, identity: Self.hybridIdentity) == "malformedHeader") }
  }
}
