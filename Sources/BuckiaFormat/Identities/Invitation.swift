import BuckiaBytes
import Crypto

/// Invites one person to receive a part of a database. It names the inviter and the scope, and contains a secret that
/// admits the first person who answers.
///
/// It is one line of text, for a file, a message or a QR code. Any holder can answer it, once, until it expires. It
/// must therefore be sent to one person, in a way that others cannot read.
///
/// ```swift
/// let invitation = try Invitation("buckia-invitation-1:eyJpZCI6…")
/// print(invitation.card.name, invitation.card.fingerprint)
/// ```
public struct Invitation: Equatable, Sendable {
  let id: InvitationID
  /// The inviter. Only the card's fingerprint, compared with its owner, proves whose card it is.
  public let card: IdentityCard
  /// The author's name for the intended recipient; nil if unspecified. Escape it before printing.
  public let recipient: String?
  /// What there is to get.
  public let scope: InvitedScope
  /// The place for the files of both: a folder or a URL; nil if unspecified. Escape it before printing.
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
  /// The invitation as one line of text, for passing on.
  public let text: String

  /// The maximum size of an invitation in bytes, and of the answer.
  package static let textByteLimit = Int64(SignedText.byteLimit)
  /// The beginning of the text.
  package static let label = "buckia-invitation-"
  /// The maximum size of a folder's path or of a URL in bytes.
  static let folderByteLimit = 1_024

  /// Its unique number: 32 hexadecimal digits.
  public var number: String { id.description }
  /// What names it in a database.
  package var idBytes: [UInt8] { id.bytes }
  /// The key for checking the answer.
  package var proofKey: InvitationProofKey { InvitationProofKey(of: secret) }

  /// Creates and signs an invitation.
  ///
  /// - Parameters:
  ///   - identity: The inviter.
  ///   - recipient: The intended recipient; nil for any holder.
  ///   - scope: What there is to get.
  ///   - folder: The place for the files.
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

  /// Reads and verifies an invitation. It does not check the expiry.
  ///
  /// - Throws: `IdentityError` with code `invalidInvitation`, `badSignature` or `unsupportedFormat`.
  package init(verifying text: String) throws(IdentityError) {
    try self.init(SignedText(text, as: [.invitation]))
  }

  private init(_ signed: SignedText) throws(IdentityError) {
    var fields = try DocumentFields(parsing: signed.document, of: "the invitation", .invalidInvitation)
    id = try fields.bytes("id", as: InvitationID.self)
    card = try IdentityCard(verifying: fields.string("card"))
    recipient = try fields.optionalString("to")
    guard let scope = fields.take("scope") else { throw fields.invalid("scope", "is missing") }
    self.scope = try InvitedScope(scope)
    folder = try fields.optionalString("folder")
    madeAt = try fields.time("made")
    expiresAt = try fields.time("expires")
    stream = InvitedStream(
      stream: try fields.bytes("stream", as: StreamID.self),
      incarnation: try fields.bytes("incarnation", as: IncarnationID.self))
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
  ///   - identity: The person who answers.
  ///   - replica: The replica that will apply the diffs; nil if unknown.
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

/// The part of an invitation's secret that its author keeps, for checking the proof in the answer: its SHA-256, with a
/// prefix.
package struct InvitationProofKey: Equatable, Sendable, CustomStringConvertible, CustomReflectable {
  /// 32 bytes.
  package let bytes: [UInt8]

  /// Creates the key from its 32 bytes; nil for another number.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count == SHA256.byteCount else { return nil }
    self.bytes = bytes
  }

  /// The key of a secret, which itself is not kept.
  init(of secret: PrivateKey) {
    bytes = Array(SHA256.hash(data: Array("buckia/invitation-secret/v1\n".utf8) + secret.bytes))
  }

  /// The proof that the owner of a card has the secret: HMAC-SHA-256 over the invitation and the card, neither of which
  /// can then be exchanged.
  func proof(for id: InvitationID, _ invitationDigest: [UInt8], _ card: IdentityCard) -> [UInt8] {
    Array(HMAC<SHA256>.authenticationCode(for: Self.message(id, invitationDigest, card), using: key))
  }

  /// True if a proof is right. The comparison takes constant time.
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

/// A description of the offered rows and columns, by table.
public struct InvitedScope: Equatable, Sendable {
  /// One table.
  public struct Table: Equatable, Sendable {
    /// The table's name.
    public let name: String
    /// Its offered rows, such as `all rows` or `rows where topic = 7`.
    public let rows: String
    /// The columns that are left out.
    public let omittedColumns: [String]
    /// The columns whose values are replaced.
    public let rewrittenColumns: [String]

    /// Describes a table.
    package init(name: String, rows: String, omittedColumns: [String], rewrittenColumns: [String]) {
      self.name = name
      self.rows = rows
      self.omittedColumns = omittedColumns
      self.rewrittenColumns = rewrittenColumns
    }
  }

  /// The author's name for it; nil for none. Escape it and the rest before printing.
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
    for value in try fields.values("tables", limit: Self.countLimit) {
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

/// The stream that an invitation offers: the author will send it, and the answer acknowledges it.
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

/// The answer to an invitation: the card of the person who accepts it, a proof that they have its secret, and the first acknowledgement of the
/// stream.
///
/// The proof is made with the secret and does not reveal it. It covers the card, and the card's key signs the whole
/// answer: the card in it cannot be exchanged.
package struct Acceptance: Equatable, Sendable {
  /// The invitation: 16 bytes.
  package let invitation: InvitationID
  /// The person who accepts it.
  package let card: IdentityCard
  /// HMAC-SHA-256: 32 bytes.
  let proof: [UInt8]
  /// The stream that it acknowledges, of which nothing has been applied yet.
  package let stream: InvitedStream
  /// The replica that will apply it; nil if unspecified.
  package let replica: ReplicaID?
  /// When it was made, as its author's clock had it, in milliseconds since 1970.
  package let madeAt: Int64
  /// The answer as one line of text.
  package let text: String

  /// The beginning of the text.
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

  /// Reads an answer and verifies its signature. Only the author of the invitation can check the proof.
  ///
  /// - Throws: `IdentityError` with code `invalidInvitation`, `badSignature` or `unsupportedFormat`.
  package init(verifying text: String) throws(IdentityError) {
    try self.init(SignedText(text, as: [.acceptance]))
  }

  private init(_ signed: SignedText) throws(IdentityError) {
    let subject = "the answer"
    var fields = try DocumentFields(parsing: signed.document, of: subject, .invalidInvitation)
    invitation = try fields.bytes("invitation", as: InvitationID.self)
    card = try IdentityCard(verifying: fields.string("card"))
    guard let proof = HexText.bytes(try fields.string("proof")), proof.count == 32 else {
      throw fields.invalid("proof", "is not 64 hexadecimal digits")
    }
    self.proof = proof
    madeAt = try fields.time("made")
    replica = try fields.optionalBytes("replica", as: ReplicaID.self)
    let acks = try fields.values("acks", limit: 1)
    guard let first = acks.first else { throw fields.invalid("acks", "is empty") }
    var ack = try DocumentFields(first, of: subject, .invalidInvitation)
    stream = InvitedStream(
      stream: try ack.bytes("stream", as: StreamID.self),
      incarnation: try ack.bytes("incarnation", as: IncarnationID.self))
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

extension Invitation: Hashable, Codable {
  /// Reads an invitation from its line of text, and verifies it.
  public init(from decoder: any Decoder) throws {
    try self.init(verifying: decoder.singleValueContainer().decode(String.self))
  }

  /// Writes its line of text, which has the secret.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }

  /// Hashes the line, which has all the rest.
  public func hash(into hasher: inout Hasher) { hasher.combine(text) }
}
