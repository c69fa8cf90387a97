import SQLiteConnections

/// A row of the table `buckia_accepted`: an invitation of somebody else that was accepted for this database, with the answer.
///
/// The answer is kept until it is delivered: a crash at any moment leaves an invitation that is not accepted, or an answer that the
/// next call delivers.
package struct AcceptedEntry: Equatable, Sendable {
  static let definition = """
    CREATE TABLE main.buckia_accepted(
      invitation BLOB PRIMARY KEY NOT NULL,
      digest BLOB NOT NULL,
      inviter TEXT NOT NULL,
      stream BLOB NOT NULL,
      accepted_at INTEGER NOT NULL,
      file TEXT NOT NULL,
      answer TEXT NOT NULL,
      is_delivered INTEGER NOT NULL
    ) WITHOUT ROWID;
    """

  /// The invitation: 16 bytes.
  package let invitation: [UInt8]
  /// SHA-256 of the invitation's document.
  package let digest: [UInt8]
  /// The signing key of its author, in hex.
  package let inviter: String
  /// The stream that it offers: 16 bytes.
  package let stream: [UInt8]
  /// When it was accepted, in milliseconds since 1970.
  package let acceptedAt: Int64
  /// The name of the answer's file, without a folder.
  package let file: String
  /// The answer.
  package let answer: String
  /// Whether the answer is where it goes.
  package private(set) var isDelivered = false

  /// Describes an invitation that is being accepted.
  package init(
    invitation: [UInt8], digest: [UInt8], inviter: String, stream: [UInt8], acceptedAt: Int64, file: String,
    answer: String
  ) {
    self.invitation = invitation
    self.digest = digest
    self.inviter = inviter
    self.stream = stream
    self.acceptedAt = acceptedAt
    self.file = file
    self.answer = answer
  }

  /// The entry of an invitation; nil where it was not accepted.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package static func find(_ invitation: [UInt8], on connection: borrowing SQLiteConnection) throws -> AcceptedEntry? {
    guard try Ledger.exists(on: connection) else { return nil }
    let query = try connection.prepare(
      """
      SELECT digest, inviter, stream, accepted_at, file, answer, is_delivered FROM main.buckia_accepted
      WHERE invitation = ?1
      """)
    try query.bind(invitation, at: 0)
    guard try query.step() else { return nil }
    var entry = AcceptedEntry(
      invitation: invitation, digest: query.blob(at: 0), inviter: query.text(at: 1) ?? "", stream: query.blob(at: 2),
      acceptedAt: query.integer(at: 3), file: query.text(at: 4) ?? "", answer: query.text(at: 5) ?? "")
    entry.isDelivered = query.integer(at: 6) != 0
    return entry
  }

  /// Writes it down.
  ///
  /// - Throws: `SQLiteError`.
  package func insert(on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: "INSERT INTO main.buckia_accepted VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0)", invitation, digest, inviter,
      stream, acceptedAt, file, answer)
  }

  /// Notes that the answer is where it goes.
  ///
  /// - Throws: `SQLiteError`.
  package func markDelivered(on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: "UPDATE main.buckia_accepted SET is_delivered = 1 WHERE invitation = ?1", invitation)
  }
}
