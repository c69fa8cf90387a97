import BuckiaBytes
import SQLiteConnections

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

  /// How many bytes of a file are in one row.
  private static let pieceBytes = 1 << 20

  /// The diff's id.
  package let id: KSUID
  /// The name of the diff's files, without a folder.
  package let file: String
  /// Which of them it is, from 1.
  package let number: Int
  /// The names of those it is for, as a document.
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

  /// Notes that the file was delivered, and lets go of it.
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
  package static func undelivered(
    of share: Int64, on connection: borrowing SQLiteConnection
  ) throws -> [OutboxPart] {
    let query = try connection.prepare(
      """
      SELECT o.diff, o.file, p.part, p.recipients FROM main.buckia_outbox AS o
      JOIN main.buckia_outbox_part AS p ON p.diff = o.diff
      WHERE o.share = ?1 AND NOT o.is_delivered ORDER BY o.sequence, p.part
      """)
    try query.bind(share, at: 0)
    var found: [OutboxPart] = []
    while try query.step() {
      guard let id = KSUID(query.text(at: 0) ?? "") else { continue }
      found.append(
        OutboxPart(
          Int(query.integer(at: 2)), of: id, named: query.text(at: 1) ?? "", for: query.text(at: 3) ?? ""))
    }
    return found
  }

  /// The file.
  ///
  /// - Throws: `SQLiteError`; `ByteStreamError` when there is no room for it.
  package func contents(on connection: borrowing SQLiteConnection) throws -> TemporaryBuffer {
    let buffer = TemporaryBuffer()
    let query = try connection.prepare(
      "SELECT bytes FROM main.buckia_outbox_piece WHERE diff = ?1 AND part = ?2 ORDER BY piece")
    try query.bind(id.description, at: 0)
    try query.bind(Int64(number), at: 1)
    while try query.step() { try buffer.write(query.blobBytes(at: 0)) }
    return buffer
  }
}
