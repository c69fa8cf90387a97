import BuckiaBytes
import Crypto

/// Invites one person to get a part of a database: who invites, what there is to get, and a secret that admits whoever answers first.
///
/// It is one line of text, for a file, a message or a QR code. Whoever has it can answer it, once, until it expires: so it is sent to
/// one person, by a way that others do not read.
///
/// ```swift
/// let invitation = try Invitation("buckia-invitation-1:eyJpZCI6…")
/// print(invitation.card.name, invitation.card.fingerprint)
/// ```
public struct Invitation: Equatable, Sendable {
  let id: InvitationID
  /// Who invites. Whose card it is tells only its fingerprint, compared with its owner.
  public let card: IdentityCard
  /// Whom it is meant for, as its author calls them; nil where it does not say. To be escaped where it is shown.
  public let recipient: String?
  /// What there is to get.
  public let scope: InvitedScope
  /// Where the files of both are going to be: a folder or a URL. To be escaped where it is shown. Nil where it does not say.
  public let folder: String?
  /// When it was made, as its author's clock had it, in milliseconds since 1970.
  public let madeAt: Int64
  /// From when on it is not taken any more, in milliseconds since 1970.
  public let expiresAt: Int64
  /// The stream that it offers.
  package let stream: InvitedStream
  private let secret: InvitationSecret
  /// SHA-256 of the document that was signed.
  package let digest: [UInt8]
  /// The invitation as one line of text: this is what is passed on.
  public let text: String

  /// An invitation has at most so many bytes, and so has the answer.
  package static let textByteLimit = Int64(SignedText.byteLimit)
  /// What the text begins with.
  package static let label = "buckia-invitation-"
  /// A folder or URL has at most so many bytes.
  static let folderByteLimit = 1_024

  /// What tells it from others: 32 hexadecimal digits.
  public var number: String { id.description }
  /// What names it in a database.
  package var idBytes: [UInt8] { id.bytes }
  /// What the answer is checked with.
  package var proofKey: InvitationProofKey { secret.proofKey }

  /// Makes and signs an invitation.
  ///
  /// - Parameters:
  ///   - identity: Who invites.
  ///   - recipient: Whom it is meant for; nil for whoever gets it.
  ///   - scope: What there is to get.
  ///   - folder: Where the files are going to be.
  ///   - stream: The stream in which it is sent.
  ///   - time: The present time, in milliseconds since 1970.
  ///   - expiry: When it ends, later than that.
  ///   - generator: One whose numbers nobody can guess.
  /// - Throws: `IdentityError` with code `invalidName` for the recipient's name, and `invalidInvitation` for what does not fit.
  package init(
    from identity: Identity, to recipient: String?, scope: InvitedScope, folder: String?, stream: InvitedStream,
    at time: Int64, until expiry: Int64, using generator: inout some RandomNumberGenerator
  ) throws(IdentityError) {
    if let recipient { try PersonName.require(recipient) }
    guard expiry > time else { throw IdentityError(.invalidInvitation, "it would have expired before it is made") }
    guard folder.map({ $0.utf8.count <= Self.folderByteLimit }) ?? true else {
      throw IdentityError(.invalidInvitation, "the folder is longer than \(Self.folderByteLimit) bytes")
    }
    guard let id = InvitationID.random(using: &generator) else {
      throw IdentityError(.invalidInvitation, "no id could be made")
    }
    let secret = InvitationSecret(using: &generator)
    let document: JSONValue = [
      "id": .string("\(id)"), "card": .string(identity.card.text), "to": .text(recipient), "scope": scope.json,
      "folder": .text(folder), "made": .number(time), "expires": .number(expiry),
      "stream": .string(HexText.lowercase(stream.stream)),
      "incarnation": .string(HexText.lowercase(stream.incarnation)),
      "secret": .string(HexText.lowercase(secret.bytes)),
    ]
    let signed = try SignedText(.invitation, document.bytes(), signedBy: [identity.signing])
    guard signed.text.utf8.count <= SignedText.byteLimit else {
      throw IdentityError(
        .invalidInvitation,
        "it would be \(signed.text.utf8.count) bytes long, and can be \(SignedText.byteLimit): say the scope in fewer words, "
          + "with fewer tables or shorter conditions")
    }
    try self.init(signed)
  }

  /// Reads and verifies an invitation. Whether it has expired is not looked at.
  ///
  /// - Throws: `IdentityError` with code `invalidInvitation`, `badSignature` or `unsupportedFormat`.
  package init(verifying text: String) throws(IdentityError) {
    try self.init(SignedText(text, as: [.invitation]))
  }

  private init(_ signed: SignedText) throws(IdentityError) {
    var fields = try DocumentFields(parsing: signed.document, of: "the invitation", .invalidInvitation)
    guard let id = InvitationID(try fields.sixteenBytes("id")) else { throw fields.invalid("id", "is none") }
    self.id = id
    card = try IdentityCard(verifying: fields.string("card"))
    recipient = try fields.optionalString("to")
    guard let scope = fields.take("scope") else { throw fields.invalid("scope", "is missing") }
    self.scope = try InvitedScope(scope)
    folder = try fields.optionalString("folder")
    madeAt = try fields.time("made")
    expiresAt = try fields.time("expires")
    stream = InvitedStream(
      stream: try fields.sixteenBytes("stream"), incarnation: try fields.sixteenBytes("incarnation"))
    guard let secret = InvitationSecret(hex: try fields.string("secret")) else {
      throw fields.invalid("secret", "is none")
    }
    self.secret = secret
    try fields.finish()
    guard recipient.map(PersonName.isBounded) ?? true else { throw fields.invalid("to", "is empty or too long") }
    guard folder.map({ !$0.isEmpty && $0.utf8.count <= Self.folderByteLimit }) ?? true else {
      throw fields.invalid("folder", "is empty or too long")
    }
    guard expiresAt > madeAt else { throw fields.invalid("expires", "is before it was made") }
    try signed.requireSignature(0, by: card.signingKey)
    digest = Array(SHA256.hash(data: signed.document))
    text = signed.text
  }

  /// Answers the invitation.
  ///
  /// - Parameters:
  ///   - identity: Who answers.
  ///   - replica: The replica that is going to apply what is sent: 16 bytes; nil where that is not known.
  ///   - time: The present time, in milliseconds since 1970.
  /// - Throws: `IdentityError` when nothing can be signed.
  package func answer(
    by identity: Identity, replica: [UInt8]?, at time: Int64
  ) throws(IdentityError) -> Acceptance {
    try Acceptance(
      of: id, proof: proofKey.proof(for: id, digest, identity.card), stream: stream, by: identity, replica: replica,
      at: time)
  }
}
