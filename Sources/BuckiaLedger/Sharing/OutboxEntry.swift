import BuckiaBytes
import SQLiteConnections

/// A row of the table `buckia_outbox`: a diff of a share that was made, and has perhaps not been delivered yet.
///
/// Its files (``OutboxPart``) are kept until they are: a crash at any moment leaves a diff that was not made at all, or one that is
/// delivered by the next call, with the same id and the same bytes.
package struct OutboxEntry: Equatable, Sendable {
  static let definition = """
    CREATE TABLE main.buckia_outbox(
      diff TEXT PRIMARY KEY NOT NULL,
      share INTEGER NOT NULL,
      sequence INTEGER NOT NULL,
      digest BLOB NOT NULL,
      file TEXT NOT NULL,
      made_at INTEGER NOT NULL,
      is_delivered INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX main.buckia_outbox_share ON buckia_outbox(share, sequence);
    """

  /// The diff's id.
  package let id: KSUID
  /// The share that it belongs to.
  package let share: Int64
  /// Its number in the stream.
  package let sequence: Int64
  /// The digest of its manifest.
  package let digest: [UInt8]
  /// The name of its files, without a folder.
  package let file: String

  /// Describes a diff.
  package init(id: KSUID, share: Int64, sequence: Int64, digest: [UInt8], file: String) {
    self.id = id
    self.share = share
    self.sequence = sequence
    self.digest = digest
    self.file = file
  }

  /// Writes a diff down. Its files are written by themselves.
  ///
  /// - Parameter time: Milliseconds since 1970.
  /// - Throws: `SQLiteError`.
  package func write(at time: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: "INSERT INTO main.buckia_outbox VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0)", id.description, share, sequence,
      digest, file, time)
  }

  /// The newest diffs, the oldest of them first.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package static func newest(
    _ count: Int, on connection: borrowing SQLiteConnection
  ) throws -> [(entry: OutboxEntry, madeAt: Int64, isDelivered: Bool)] {
    guard try Ledger.exists(on: connection) else { return [] }
    let query = """
      SELECT diff, share, sequence, digest, file, made_at, is_delivered FROM main.buckia_outbox
      ORDER BY made_at DESC, diff DESC LIMIT \(count)
      """
    var found: [(entry: OutboxEntry, madeAt: Int64, isDelivered: Bool)] = []
    try connection.forEachRow(of: query) { row in
      guard let id = KSUID(row.text(at: 0) ?? "") else { return }
      let entry = OutboxEntry(
        id: id, share: row.integer(at: 1), sequence: row.integer(at: 2), digest: row.blob(at: 3),
        file: row.text(at: 4) ?? "")
      found.append((entry, row.integer(at: 5), row.integer(at: 6) != 0))
    }
    return found.reversed()
  }

  /// True if received changes have been applied since the last diff of a share. A diff that only acknowledges has no
  /// changes.
  ///
  /// - Throws: `SQLiteError`.
  package static func hasAppliedSince(_ share: Int64, on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.cachedInteger(
      """
      SELECT 1 FROM main.buckia_ledger AS l JOIN main.buckia_stream AS s ON s.entry = l.entry
      WHERE l.sender <> 'own' AND l.inserted + l.updated + l.deleted + l.omitted > 0
        AND l.recorded_at >= (SELECT max(made_at) FROM main.buckia_outbox WHERE share = \(share)) LIMIT 1
      """) != nil
  }

  /// The first diff of a share after a time that its receiver had not applied.
  ///
  /// - Parameters:
  ///   - share: The number of the share.
  ///   - time: Milliseconds since 1970.
  ///   - through: The number up to which its reader had applied all.
  /// - Returns: nil for none.
  /// - Throws: `SQLiteError`.
  package static func first(
    of share: Int64, madeAfter time: Int64, beyond through: Int64, on connection: borrowing SQLiteConnection
  ) throws -> KSUID? {
    let query =
      "SELECT diff, sequence FROM main.buckia_outbox WHERE share = ?1 AND made_at >= ?2 ORDER BY sequence LIMIT 1"
    return try connection.first(ofCached: query, share, time) {
      $0.integer(at: 1) > through ? KSUID($0.text(at: 0) ?? "") : nil
    } ?? nil
  }

  /// The diff with a number in the stream of a share; nil where there is none.
  ///
  /// - Throws: `SQLiteError`.
  package static func diff(
    _ sequence: Int64, of share: Int64, on connection: borrowing SQLiteConnection
  ) throws -> KSUID? {
    // A stream that begins again has the same numbers.
    let query = "SELECT max(diff) FROM main.buckia_outbox WHERE share = ?1 AND sequence = ?2"
    return try connection.first(ofCached: query, share, sequence) { KSUID($0.text(at: 0) ?? "") } ?? nil
  }

  /// The last diff of a share up to a number; nil for none.
  ///
  /// - Throws: `SQLiteError`.
  package static func last(
    of share: Int64, through number: Int64, on connection: borrowing SQLiteConnection
  ) throws -> KSUID? {
    try connection.first(
      ofCached: "SELECT max(diff) FROM main.buckia_outbox WHERE share = ?1 AND sequence <= ?2", share, number
    ) { KSUID($0.text(at: 0) ?? "") } ?? nil
  }

  /// True for a diff of a share that is not the first one of its stream.
  ///
  /// - Throws: `SQLiteError`.
  package static func isLater(_ diff: KSUID, on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.hasRow(
      cached: "SELECT 1 FROM main.buckia_outbox WHERE diff = ?1 AND sequence > 1", diff.description)
  }

  /// The number of the share that a diff is of; nil where it was not shared from here.
  ///
  /// - Throws: `SQLiteError`.
  package static func share(of diff: KSUID, on connection: borrowing SQLiteConnection) throws -> Int64? {
    try connection.cachedInteger("SELECT share FROM main.buckia_outbox WHERE diff = ?1", diff.description)
  }

  /// True if a diff was shared from here, or is a change that was recorded here.
  ///
  /// - Throws: `SQLiteError`.
  package static func isMadeHere(_ diff: KSUID, on connection: borrowing SQLiteConnection) throws -> Bool {
    try share(of: diff, on: connection) != nil
      || LedgerEntries.applied(diff, on: connection)?.sender == LedgerEntries.ownSender
  }
}

/// A row of the table `buckia_outbox_part`: a file of a diff that has not been delivered.
///
/// A diff is one file for all its recipients, or several of the same contents, each of which some of them can open.
package struct OutboxPart: Equatable, Sendable {
  static let definition = """
    CREATE TABLE main.buckia_outbox_piece(
      piece INTEGER PRIMARY KEY,
      diff TEXT NOT NULL,
      part INTEGER NOT NULL,
      bytes BLOB NOT NULL
    );
    CREATE TABLE main.buckia_outbox_part(
      diff TEXT NOT NULL,
      part INTEGER NOT NULL,
      recipients TEXT NOT NULL,
      PRIMARY KEY (diff, part)
    ) WITHOUT ROWID;
    """

  /// The number of bytes of a file in one row.
  private static let pieceBytes = 1 << 20

  /// The diff's id.
  package let id: KSUID
  /// The name of the diff's files, without a folder.
  package let file: String
  /// The number of the file, from 1.
  package let number: Int
  /// The names of the recipients, as a document.
  package let recipients: String

  /// Describes a file of a diff.
  package init(_ number: Int, of id: KSUID, named file: String, for recipients: String) {
    self.id = id
    self.file = file
    self.number = number
    self.recipients = recipients
  }

  // MARK: Writing

  /// Writes the file down.
  ///
  /// - Throws: `SQLiteError`; `ByteStreamError` when the file cannot be read.
  package func write(_ contents: TemporaryBuffer, on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: "INSERT INTO main.buckia_outbox_part VALUES (?1, ?2, ?3)", id.description, Int64(number), recipients)
    let insert = try connection.prepare("INSERT INTO main.buckia_outbox_piece(diff, part, bytes) VALUES (?1, ?2, ?3)")
    try insert.bind(id.description, at: 0)
    try insert.bind(Int64(number), at: 1)
    try contents.forEachPiece { bytes in
      for start in stride(from: 0, to: bytes.count, by: Self.pieceBytes) {
        let piece = UnsafeRawBufferPointer(rebasing: bytes[start..<min(bytes.count, start + Self.pieceBytes)])
        try insert.bind(blobCopying: piece, at: 2)
        try insert.run()
      }
    }
  }
  /// Removes the files of a share that have not been delivered.
  ///
  /// - Throws: `SQLiteError`.
  package static func removeAll(of share: Int64, on connection: borrowing SQLiteConnection) throws {
    for table in ["buckia_outbox_part", "buckia_outbox_piece"] {
      try connection.run(
        cached: "DELETE FROM main.\(table) WHERE diff IN (SELECT diff FROM main.buckia_outbox WHERE share = ?1)", share)
    }
  }

  /// Records the delivery of the file, and deletes its bytes.
  ///
  /// - Throws: `SQLiteError`.
  package func markDelivered(on connection: borrowing SQLiteConnection) throws {
    for table in ["buckia_outbox_part", "buckia_outbox_piece"] {
      try connection.run(
        cached: "DELETE FROM main.\(table) WHERE diff = ?1 AND part = ?2", id.description, Int64(number))
    }
    try connection.run(
      cached: """
        UPDATE main.buckia_outbox SET is_delivered = 1
        WHERE diff = ?1 AND NOT EXISTS (SELECT 1 FROM main.buckia_outbox_part WHERE diff = ?1)
        """, id.description)
  }

  // MARK: Reading

  /// The files of a share that were not delivered, in order.
  ///
  /// - Throws: `SQLiteError`.
  package static func undelivered(of share: Int64, on connection: borrowing SQLiteConnection) throws -> [OutboxPart] {
    try connection.rows(
      of: """
        SELECT o.diff, o.file, p.part, p.recipients FROM main.buckia_outbox AS o
        JOIN main.buckia_outbox_part AS p ON p.diff = o.diff
        WHERE o.share = ?1 AND NOT o.is_delivered ORDER BY o.sequence, p.part
        """, share
    ) { row in
      KSUID(row.text(at: 0) ?? "").map { id in
        OutboxPart(Int(row.integer(at: 2)), of: id, named: row.text(at: 1) ?? "", for: row.text(at: 3) ?? "")
      }
    }.compactMap { $0 }
  }

  /// The file.
  ///
  /// - Throws: `SQLiteError`; `ByteStreamError` when there is no room for it.
  package func contents(on connection: borrowing SQLiteConnection) throws -> TemporaryBuffer {
    let buffer = TemporaryBuffer()
    try connection.forEachRow(
      of: "SELECT bytes FROM main.buckia_outbox_piece WHERE diff = ?1 AND part = ?2 ORDER BY piece",
      binding: [id.description, Int64(number)]
    ) { try buffer.write($0.blobBytes(at: 0)) }
    return buffer
  }
}
