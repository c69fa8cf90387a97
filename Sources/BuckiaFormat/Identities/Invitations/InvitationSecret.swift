import BuckiaBytes
import Crypto

/// The one-time secret of an invitation: 32 random bytes that only its author and whoever holds the invitation know. It never shows
/// in a message.
struct InvitationSecret: Equatable, Sendable, CustomStringConvertible, CustomReflectable {
  static let byteCount = 32
  /// The secret.
  let bytes: [UInt8]

  init?(hex: String) {
    guard hex.utf8.count == 2 * Self.byteCount, let bytes = HexText.bytes(hex) else { return nil }
    self.bytes = bytes
  }

  /// A new one.
  ///
  /// - Parameter generator: One whose numbers nobody can guess.
  init(using generator: inout some RandomNumberGenerator) {
    bytes = (0..<Self.byteCount).map { _ in UInt8.random(in: 0...255, using: &generator) }
  }

  /// What proofs are made and checked with. The secret itself is not kept by the author.
  var proofKey: InvitationProofKey {
    InvitationProofKey(digestOf: Array("buckia/invitation-secret/v1\n".utf8) + bytes)
  }

  var description: String { "(secret)" }
  /// Nothing: a dump shows no secret either.
  var customMirror: Mirror { Mirror(self, children: []) }
}

/// What the author of an invitation keeps of its secret, to check the proof in the answer: SHA-256 of it, with a prefix of its own.
package struct InvitationProofKey: Equatable, Sendable, CustomStringConvertible, CustomReflectable {
  /// 32 bytes.
  package let bytes: [UInt8]

  /// Takes 32 bytes.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count == SHA256.byteCount else { return nil }
    self.bytes = bytes
  }

  fileprivate init(digestOf secret: [UInt8]) { bytes = Array(SHA256.hash(data: secret)) }

  /// The proof that somebody with a card has the secret: HMAC-SHA-256 over the invitation and the card, so that neither can be
  /// exchanged.
  func proof(for id: InvitationID, _ invitationDigest: [UInt8], _ card: IdentityCard) -> [UInt8] {
    Array(HMAC<SHA256>.authenticationCode(for: Self.message(id, invitationDigest, card), using: key))
  }

  /// Whether a proof is right. How long that takes does not depend on where it is wrong.
  func isRight(
    _ proof: [UInt8], for id: InvitationID, _ invitationDigest: [UInt8], _ card: IdentityCard
  ) -> Bool {
    HMAC<SHA256>.isValidAuthenticationCode(
      proof, authenticating: Self.message(id, invitationDigest, card), using: key)
  }

  private var key: SymmetricKey { SymmetricKey(data: bytes) }

  private static func message(_ id: InvitationID, _ invitationDigest: [UInt8], _ card: IdentityCard) -> [UInt8] {
    Array("buckia/acceptance-proof/v1\n".utf8) + id.bytes + invitationDigest + Array(card.text.utf8)
  }

  package var description: String { "(secret)" }
  /// Nothing: a dump shows no secret either.
  package var customMirror: Mirror { Mirror(self, children: []) }
}
