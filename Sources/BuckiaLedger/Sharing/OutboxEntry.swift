import BuckiaByteStreams
import BuckiaKSUID
import SQLiteConnections

/// A row of the table `buckia_outbox`: a diff of a share that was made, and has perhaps not been delivered yet.
///
/// The file is kept until it is: a crash at any moment leaves a diff that was not made at all, or one that is delivered by the next
/// call, with the same id and the same bytes.
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
    CREATE TABLE main.buckia_outbox_piece(
      piece INTEGER PRIMARY KEY,
      diff TEXT NOT NULL,
      bytes BLOB NOT NULL
    );
    """

  /// How many bytes of a file are in one row.
  private static let pieceBytes = 1 << 20

  /// The diff's id.
  package let id: KSUID
  /// The share that it belongs to.
  package let share: Int64
  /// Its number in the stream.
  package let sequence: Int64
  /// The digest of its manifest.
  package let digest: [UInt8]
  /// The file's name, without a folder.
  package let file: String

  /// Describes a diff.
  package init(id: KSUID, share: Int64, sequence: Int64, digest: [UInt8], file: String) {
    self.id = id
    self.share = share
    self.sequence = sequence
    self.digest = digest
    self.file = file
  }

  /// Writes a diff down, with its file.
  ///
  /// - Parameter time: Milliseconds since 1970.
  /// - Throws: `SQLiteError`; `ByteStreamError` when the file cannot be read.
  package func write(_ contents: TemporaryBuffer, at time: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: "INSERT INTO main.buckia_outbox VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0)", id.description, share, sequence,
      digest, file, time)
    let insert = try connection.prepare("INSERT INTO main.buckia_outbox_piece(diff, bytes) VALUES (?1, ?2)")
    try insert.bind(id.description, at: 0)
    try contents.forEachPiece { bytes in
      for start in stride(from: 0, to: bytes.count, by: Self.pieceBytes) {
        let piece = UnsafeRawBufferPointer(rebasing: bytes[start..<min(bytes.count, start + Self.pieceBytes)])
        try insert.bind(blobCopying: piece, at: 1)
        try insert.run()
      }
    }
  }

  /// The diffs of a share that were not delivered, in order.
  ///
  /// - Throws: `SQLiteError`.
  package static func undelivered(
    of share: Int64, on connection: borrowing SQLiteConnection
  ) throws -> [OutboxEntry] {
    let query = try connection.prepare(
      "SELECT diff, sequence, digest, file FROM main.buckia_outbox WHERE share = ?1 AND NOT is_delivered ORDER BY sequence"
    )
    try query.bind(share, at: 0)
    var found: [OutboxEntry] = []
    while try query.step() {
      guard let id = KSUID(query.text(at: 0) ?? "") else { continue }
      found.append(
        OutboxEntry(
          id: id, share: share, sequence: query.integer(at: 1), digest: query.blob(at: 2), file: query.text(at: 3) ?? ""
        ))
    }
    return found
  }

  /// The number of the share that a diff is of; nil where it was not shared from here.
  ///
  /// - Throws: `SQLiteError`.
  package static func share(of diff: KSUID, on connection: borrowing SQLiteConnection) throws -> Int64? {
    let query = try connection.cached("SELECT share FROM main.buckia_outbox WHERE diff = ?1")
    defer { query.statement.reset() }
    try query.statement.bind(diff.description, at: 0)
    return try query.statement.step() ? query.statement.integer(at: 0) : nil
  }

  /// The file.
  ///
  /// - Throws: `SQLiteError`; `ByteStreamError` when there is no room for it.
  package func contents(on connection: borrowing SQLiteConnection) throws -> TemporaryBuffer {
    let buffer = TemporaryBuffer()
    let query = "SELECT bytes FROM main.buckia_outbox_piece WHERE diff = ?1 ORDER BY piece"
    try connection.forEachRow(of: query, binding: [id.description]) { try buffer.write($0.blobBytes(at: 0)) }
    return buffer
  }

  /// Notes that the file was delivered, and lets go of it.
  ///
  /// - Throws: `SQLiteError`.
  package func markDelivered(on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "UPDATE main.buckia_outbox SET is_delivered = 1 WHERE diff = ?1", id.description)
    try connection.run(cached: "DELETE FROM main.buckia_outbox_piece WHERE diff = ?1", id.description)
  }
}
