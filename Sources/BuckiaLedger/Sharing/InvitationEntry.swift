import SQLiteConnections

/// A row of the table `buckia_invitation`: somebody was invited to get a part of this database.
///
/// The secret of an invitation is not in it, only what the proof in the answer is checked with.
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
  /// What the proof in an answer is checked with.
  package let proofKey: [UInt8]
  /// Whom it is meant for; nil for whoever answers.
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
  /// When it was used, and the key of whoever has, in hex; nil while it is open.
  package private(set) var use: Use?

  /// Who has used an invitation, and when.
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

  /// The invitation with this id; nil where this database has made none.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package static func find(_ id: [UInt8], on connection: borrowing SQLiteConnection) throws -> InvitationEntry? {
    guard try Ledger.exists(on: connection) else { return nil }
    let query = try connection.prepare(
      """
      SELECT digest, proof_key, recipient, scope, stream, incarnation, made_at, expires_at, used_at, used_by
      FROM main.buckia_invitation WHERE invitation = ?1
      """)
    try query.bind(id, at: 0)
    guard try query.step() else { return nil }
    var entry = InvitationEntry(
      id: id, digest: query.blob(at: 0), proofKey: query.blob(at: 1),
      recipient: query.isNull(at: 2) ? nil : query.text(at: 2), scope: query.text(at: 3) ?? "",
      stream: query.blob(at: 4), incarnation: query.blob(at: 5), madeAt: query.integer(at: 6),
      expiresAt: query.integer(at: 7))
    if !query.isNull(at: 8) { entry.use = Use(time: query.integer(at: 8), key: query.text(at: 9) ?? "") }
    return entry
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

  /// Notes that somebody has used it.
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
