import SQLiteConnections

/// A row of the table `buckia_invitation`: an invitation to get a part of this database.
///
/// It does not contain the secret of the invitation, only the key for checking the proof in the answer.
package struct InvitationEntry: Equatable, Sendable {
  static let definition = """
    CREATE TABLE main.buckia_invitation(
      invitation BLOB PRIMARY KEY NOT NULL,
      digest BLOB NOT NULL,
      proof_key BLOB NOT NULL,
      recipient TEXT,
      scope TEXT NOT NULL,
      stream BLOB NOT NULL,
      incarnation BLOB NOT NULL,
      made_at INTEGER NOT NULL,
      expires_at INTEGER NOT NULL,
      used_at INTEGER,
      used_by TEXT
    ) WITHOUT ROWID;
    """

  /// The invitation: 16 bytes.
  package let id: [UInt8]
  /// SHA-256 of the document that was signed.
  package let digest: [UInt8]
  /// The key for checking the proof in an answer.
  package let proofKey: [UInt8]
  /// The name of the invited person; nil for the name on their card.
  package let recipient: String?
  /// The scope as a document.
  package let scope: String
  /// The stream that was offered: 16 bytes.
  package let stream: [UInt8]
  /// The incarnation of the replica when it was made: 16 bytes.
  package let incarnation: [UInt8]
  /// When it was made, in milliseconds since 1970.
  package let madeAt: Int64
  /// When it ends, in milliseconds since 1970.
  package let expiresAt: Int64
  /// The use of the invitation; nil while it is open.
  package private(set) var use: Use?

  /// The key that has used an invitation, and the time.
  package struct Use: Equatable, Sendable {
    /// In milliseconds since 1970.
    package let time: Int64
    /// The signing key in hex.
    package let key: String
  }

  /// Describes an invitation that is open.
  package init(
    id: [UInt8], digest: [UInt8], proofKey: [UInt8], recipient: String?, scope: String, stream: [UInt8],
    incarnation: [UInt8], madeAt: Int64, expiresAt: Int64
  ) {
    self.id = id
    self.digest = digest
    self.proofKey = proofKey
    self.recipient = recipient
    self.scope = scope
    self.stream = stream
    self.incarnation = incarnation
    self.madeAt = madeAt
    self.expiresAt = expiresAt
  }

  // MARK: Reading

  /// The invitation with this id; nil for none.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package static func find(_ id: [UInt8], on connection: borrowing SQLiteConnection) throws -> InvitationEntry? {
    guard try Ledger.exists(on: connection) else { return nil }
    return try connection.first(
      ofCached: """
        SELECT digest, proof_key, recipient, scope, stream, incarnation, made_at, expires_at, used_at, used_by
        FROM main.buckia_invitation WHERE invitation = ?1
        """, id
    ) { row in
      var entry = InvitationEntry(
        id: id, digest: row.blob(at: 0), proofKey: row.blob(at: 1), recipient: row.text(at: 2),
        scope: row.text(at: 3) ?? "", stream: row.blob(at: 4), incarnation: row.blob(at: 5),
        madeAt: row.integer(at: 6), expiresAt: row.integer(at: 7))
      if !row.isNull(at: 8) { entry.use = Use(time: row.integer(at: 8), key: row.text(at: 9) ?? "") }
      return entry
    }
  }

  // MARK: Writing

  /// Writes a new invitation down.
  ///
  /// - Throws: `SQLiteError`.
  package func insert(on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: "INSERT INTO main.buckia_invitation VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, NULL, NULL)", id, digest,
      proofKey, recipient, scope, stream, incarnation, madeAt, expiresAt)
  }

  /// Records the use of the invitation.
  ///
  /// - Parameters:
  ///   - key: Their signing key in hex.
  ///   - time: In milliseconds since 1970.
  /// - Throws: `SQLiteError`.
  package func markUsed(by key: String, at time: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: "UPDATE main.buckia_invitation SET used_at = ?2, used_by = ?3 WHERE invitation = ?1", id, time, key)
  }
}

/// A row of the table `buckia_accepted`: another person's invitation that was accepted for this database, with the
/// answer.
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
  /// True if the answer was delivered.
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

  /// The entry of an invitation; nil if it was not accepted.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package static func find(_ invitation: [UInt8], on connection: borrowing SQLiteConnection) throws -> AcceptedEntry? {
    guard try Ledger.exists(on: connection) else { return nil }
    return try connection.first(
      ofCached: """
        SELECT digest, inviter, stream, accepted_at, file, answer, is_delivered FROM main.buckia_accepted
        WHERE invitation = ?1
        """, invitation
    ) { row in
      var entry = AcceptedEntry(
        invitation: invitation, digest: row.blob(at: 0), inviter: row.text(at: 1) ?? "", stream: row.blob(at: 2),
        acceptedAt: row.integer(at: 3), file: row.text(at: 4) ?? "", answer: row.text(at: 5) ?? "")
      entry.isDelivered = row.integer(at: 6) != 0
      return entry
    }
  }

  /// Writes it down.
  ///
  /// - Throws: `SQLiteError`.
  package func insert(on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: "INSERT INTO main.buckia_accepted VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0)", invitation, digest, inviter,
      stream, acceptedAt, file, answer)
  }

  /// Records the delivery of the answer.
  ///
  /// - Throws: `SQLiteError`.
  package func markDelivered(on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "UPDATE main.buckia_accepted SET is_delivered = 1 WHERE invitation = ?1", invitation)
  }
}
