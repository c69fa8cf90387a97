import BuckiaBytes

/// The answer to an invitation: the card of whoever accepts it, a proof that they have its secret, and the first acknowledgement of the
/// stream.
///
/// The proof is made with the secret and does not reveal it. It covers the card, and the card's key has signed all of it: nobody can put
/// another card in its place.
package struct Acceptance: Equatable, Sendable {
  /// The invitation: 16 bytes.
  package let invitation: InvitationID
  /// Who accepts it.
  package let card: IdentityCard
  /// HMAC-SHA-256: 32 bytes.
  let proof: [UInt8]
  /// The stream that it acknowledges, of which nothing has been applied yet.
  package let stream: InvitedStream
  /// The replica that is going to apply it: 16 bytes; nil where the answer does not say.
  package let replica: [UInt8]?
  /// When it was made, as its author's clock had it, in milliseconds since 1970.
  package let madeAt: Int64
  /// The answer as one line of text.
  package let text: String

  /// What the text begins with.
  package static let label = "buckia-acceptance-"

  init(
    of invitation: InvitationID, proof: [UInt8], stream: InvitedStream, by identity: Identity, replica: [UInt8]?,
    at time: Int64
  ) throws(IdentityError) {
    let document: JSONValue = [
      "invitation": .string("\(invitation)"), "card": .string(identity.card.text),
      "proof": .string(HexText.lowercase(proof)), "made": .number(time),
      "replica": .text(replica.map { HexText.lowercase($0) }),
      "acks": [
        [
          "stream": .string(HexText.lowercase(stream.stream)),
          "incarnation": .string(HexText.lowercase(stream.incarnation)), "through": 0,
        ]
      ],
    ]
    try self.init(SignedText(.acceptance, document.bytes(), signedBy: [identity.signing]))
  }

  /// Reads an answer and verifies its signature. What the proof is worth only the author of the invitation can tell.
  ///
  /// - Throws: `IdentityError` with code `invalidInvitation`, `badSignature` or `unsupportedFormat`.
  package init(verifying text: String) throws(IdentityError) {
    try self.init(SignedText(text, as: [.acceptance]))
  }

  private init(_ signed: SignedText) throws(IdentityError) {
    let subject = "the answer"
    var fields = try DocumentFields(parsing: signed.document, of: subject, .invalidInvitation)
    guard let invitation = InvitationID(try fields.sixteenBytes("invitation")) else {
      throw fields.invalid("invitation", "is none")
    }
    self.invitation = invitation
    card = try IdentityCard(verifying: fields.string("card"))
    guard let proof = HexText.bytes(try fields.string("proof")), proof.count == 32 else {
      throw fields.invalid("proof", "is not 64 hexadecimal digits")
    }
    self.proof = proof
    madeAt = try fields.time("made")
    var replica: [UInt8]?
    if let text = try fields.optionalString("replica") {
      guard let bytes = HexText.bytes(text), bytes.count == 16 else {
        throw fields.invalid("replica", "is not 32 hexadecimal digits")
      }
      replica = bytes
    }
    self.replica = replica
    let acks = try fields.list("acks", limit: 1)
    guard let first = acks.first else { throw fields.invalid("acks", "is empty") }
    var ack = try DocumentFields(first, of: subject, .invalidInvitation)
    stream = InvitedStream(
      stream: try ack.sixteenBytes("stream"), incarnation: try ack.sixteenBytes("incarnation"))
    guard ack.take("through") == .integer(0) else { throw ack.invalid("through", "is not 0") }
    try ack.finish()
    try fields.finish()
    try signed.requireSignature(0, by: card.signingKey)
    text = signed.text
  }

  /// Whether whoever made the answer had the secret of an invitation.
  ///
  /// - Parameters:
  ///   - key: What its author has kept of the secret.
  ///   - digest: SHA-256 of the invitation's document.
  package func proves(_ key: InvitationProofKey, ofInvitationWith digest: [UInt8]) -> Bool {
    key.isRight(proof, for: invitation, digest, card)
  }
}
