import BuckiaBytes
import Crypto

/// Invites one person to receive a part of a database. It names the inviter and the scope, and contains a secret that
/// admits the first person who answers.
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
  /// Whom it is meant for, as its author calls them; nil if it does not say. To be escaped where it is shown.
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
  /// The one-time secret, known only to its author and the holders of the invitation.
  private let secret: PrivateKey
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
  package var proofKey: InvitationProofKey { InvitationProofKey(of: secret) }

  /// Makes and signs an invitation.
  ///
  /// - Parameters:
  ///   - identity: Who invites.
  ///   - recipient: The intended recipient; nil for any holder.
  ///   - scope: What there is to get.
  ///   - folder: Where the files are going to be.
  ///   - stream: The stream in which it is sent.
  ///   - time: The present time, in milliseconds since 1970.
  ///   - expiry: When it ends, later than that.
  ///   - generator: A cryptographically secure generator.
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
    let secret = PrivateKey(using: &generator)
    let document: JSONValue = [
      "id": .string("\(id)"), "card": .string(identity.card.text), "to": .text(recipient), "scope": scope.json,
      "folder": .text(folder), "made": .number(time), "expires": .number(expiry),
      "stream": .string("\(stream.stream)"), "incarnation": .string("\(stream.incarnation)"),
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
    id = try fields.id("id")
    card = try IdentityCard(verifying: fields.string("card"))
    recipient = try fields.optionalString("to")
    guard let scope = fields.take("scope") else { throw fields.invalid("scope", "is missing") }
    self.scope = try InvitedScope(scope)
    folder = try fields.optionalString("folder")
    madeAt = try fields.time("made")
    expiresAt = try fields.time("expires")
    stream = InvitedStream(stream: try fields.id("stream"), incarnation: try fields.id("incarnation"))
    guard let secret = PrivateKey(hex: try fields.string("secret")) else {
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
  ///   - replica: The replica that is going to apply what is sent; nil if that is not known.
  ///   - time: The present time, in milliseconds since 1970.
  /// - Throws: `IdentityError` when nothing can be signed.
  package func answer(
    by identity: Identity, replica: ReplicaID?, at time: Int64
  ) throws(IdentityError) -> Acceptance {
    try Acceptance(
      of: id, proof: proofKey.proof(for: id, digest, identity.card), stream: stream, by: identity, replica: replica,
      at: time)
  }
}

/// Names an invitation: 16 random bytes.
package struct InvitationID: FixedBytes {
  /// 16
  package static let byteCount = 16
  /// The id.
  package let bytes: [UInt8]
  package init(checked bytes: [UInt8]) { self.bytes = bytes }
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

  /// What the author keeps of a secret, which itself is not kept.
  init(of secret: PrivateKey) {
    bytes = Array(SHA256.hash(data: Array("buckia/invitation-secret/v1\n".utf8) + secret.bytes))
  }

  /// The proof that somebody with a card has the secret: HMAC-SHA-256 over the invitation and the card, so that neither can be
  /// exchanged.
  func proof(for id: InvitationID, _ invitationDigest: [UInt8], _ card: IdentityCard) -> [UInt8] {
    Array(HMAC<SHA256>.authenticationCode(for: Self.message(id, invitationDigest, card), using: key))
  }

  /// True if a proof is right. How long that takes does not depend on where it is wrong.
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

/// What an invitation offers, in words: which rows and columns of which tables.
public struct InvitedScope: Equatable, Sendable {
  /// One table.
  public struct Table: Equatable, Sendable {
    /// The table's name.
    public let name: String
    /// Which of its rows, such as `all rows` or `rows where topic = 7`.
    public let rows: String
    /// The columns that are left out.
    public let omittedColumns: [String]
    /// The columns that are given another value.
    public let rewrittenColumns: [String]

    /// Describes a table.
    package init(name: String, rows: String, omittedColumns: [String], rewrittenColumns: [String]) {
      self.name = name
      self.rows = rows
      self.omittedColumns = omittedColumns
      self.rewrittenColumns = rewrittenColumns
    }
  }

  /// What the author calls it; nil for no name. To be escaped where it is shown, as all of it.
  public let name: String?
  /// The tables.
  public let tables: [Table]

  /// Describes a scope.
  package init(name: String?, tables: [Table]) {
    self.name = name
    self.tables = tables
  }

  /// The most tables, and the most columns of one of either kind.
  static let countLimit = 500

  var json: JSONValue {
    [
      "name": .text(name),
      "tables": .array(
        tables.map { table in
          [
            "table": .string(table.name), "rows": .string(table.rows),
            "omits": .strings(table.omittedColumns),
            "rewrites": .strings(table.rewrittenColumns),
          ]
        }),
    ]
  }

  init(_ value: JSONValue) throws(IdentityError) {
    var fields = try DocumentFields(value, of: "the scope", .invalidInvitation)
    name = try fields.optionalString("name")
    var tables: [Table] = []
    for value in try fields.list("tables", limit: Self.countLimit) {
      var table = try DocumentFields(value, of: "the scope", .invalidInvitation)
      tables.append(
        Table(
          name: try table.string("table"), rows: try table.string("rows"),
          omittedColumns: try table.strings("omits", limit: Self.countLimit),
          rewrittenColumns: try table.strings("rewrites", limit: Self.countLimit)))
      try table.finish()
    }
    try fields.finish()
    guard !tables.isEmpty else { throw fields.invalid("tables", "is empty") }
    self.tables = tables
  }
}

/// The stream that an invitation offers: what the author is going to send, and the answer acknowledges.
package struct InvitedStream: Equatable, Sendable {
  package let stream: StreamID
  /// The incarnation of the replica whose stream it is.
  package let incarnation: IncarnationID

  /// Names a stream.
  package init(stream: StreamID, incarnation: IncarnationID) {
    self.stream = stream
    self.incarnation = incarnation
  }
}

extension DocumentFields {
  /// An id in hex.
  mutating func id<ID: FixedBytes>(_ name: String) throws(IdentityError) -> ID {
    try id(name, try string(name))
  }

  /// The same where there need not be one.
  mutating func optionalID<ID: FixedBytes>(_ name: String) throws(IdentityError) -> ID? {
    guard let text = try optionalString(name) else { return nil }
    return try id(name, text)
  }

  private func id<ID: FixedBytes>(_ name: String, _ text: String) throws(IdentityError) -> ID {
    guard let id = ID(hex: text) else { throw invalid(name, "is not \(2 * ID.byteCount) hexadecimal digits") }
    return id
  }

  mutating func optionalString(_ name: String) throws(IdentityError) -> String? {
    switch take(name) {
    case nil: return nil
    case .string(let text)?: return text
    default: throw invalid(name, "is no text")
    }
  }

  mutating func strings(_ name: String, limit: Int) throws(IdentityError) -> [String] {
    var texts: [String] = []
    for value in try list(name, limit: limit) {
      guard case .string(let text) = value else { throw invalid(name, "has something other than texts") }
      texts.append(text)
    }
    return texts
  }
}

/// The answer to an invitation: the card of the person who accepts it, a proof of its secret, and the first
/// acknowledgement of the stream.
///
/// The proof is made with the secret and does not reveal it. It covers the card, and the card's key signs the whole
/// answer: the card in it cannot be exchanged.
package struct Acceptance: Equatable, Sendable {
  /// The invitation: 16 bytes.
  package let invitation: InvitationID
  /// Who accepts it.
  package let card: IdentityCard
  /// HMAC-SHA-256: 32 bytes.
  let proof: [UInt8]
  /// The stream that it acknowledges, of which nothing has been applied yet.
  package let stream: InvitedStream
  /// The replica that is going to apply it; nil if the answer does not say.
  package let replica: ReplicaID?
  /// When it was made, as its author's clock had it, in milliseconds since 1970.
  package let madeAt: Int64
  /// The answer as one line of text.
  package let text: String

  /// What the text begins with.
  package static let label = "buckia-acceptance-"

  init(
    of invitation: InvitationID, proof: [UInt8], stream: InvitedStream, by identity: Identity, replica: ReplicaID?,
    at time: Int64
  ) throws(IdentityError) {
    let document: JSONValue = [
      "invitation": .string("\(invitation)"), "card": .string(identity.card.text),
      "proof": .string(HexText.lowercase(proof)), "made": .number(time),
      "replica": .text(replica?.description),
      "acks": [
        ["stream": .string("\(stream.stream)"), "incarnation": .string("\(stream.incarnation)"), "through": 0]
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
    invitation = try fields.id("invitation")
    card = try IdentityCard(verifying: fields.string("card"))
    guard let proof = HexText.bytes(try fields.string("proof")), proof.count == 32 else {
      throw fields.invalid("proof", "is not 64 hexadecimal digits")
    }
    self.proof = proof
    madeAt = try fields.time("made")
    replica = try fields.optionalID("replica")
    let acks = try fields.list("acks", limit: 1)
    guard let first = acks.first else { throw fields.invalid("acks", "is empty") }
    var ack = try DocumentFields(first, of: subject, .invalidInvitation)
    stream = InvitedStream(stream: try ack.id("stream"), incarnation: try ack.id("incarnation"))
    guard ack.take("through") == .integer(0) else { throw ack.invalid("through", "is not 0") }
    try ack.finish()
    try fields.finish()
    try signed.requireSignature(0, by: card.signingKey)
    text = signed.text
  }

  /// True if the answer was made with the secret of an invitation.
  ///
  /// - Parameters:
  ///   - key: What its author has kept of the secret.
  ///   - digest: SHA-256 of the invitation's document.
  package func proves(_ key: InvitationProofKey, ofInvitationWith digest: [UInt8]) -> Bool {
    key.isRight(proof, for: invitation, digest, card)
  }
}
