import BuckiaBytes
import BuckiaDiff
import SQLiteConnections

/// What was sent since a snapshot was made, which the snapshot itself keeps: together they are what the others know.
///
/// Without it nobody could tell changes that were sent from those that were not, when the next files are applied.
struct SentChanges {
  /// The table is in snapshots only, and marks them as such.
  private static let table = "main.buckia_sent"
  private static let pieceBytes = 1 << 20

  /// Makes the table in a new snapshot: nothing was sent since.
  static func begin(in snapshot: borrowing SQLiteConnection) throws {
    try snapshot.execute("CREATE TABLE \(table)(piece INTEGER PRIMARY KEY, bytes BLOB NOT NULL)")
  }

  /// Whether a database is a snapshot that Buckia has made.
  static func areKept(in database: borrowing SQLiteConnection) throws -> Bool {
    try database.integer("SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = 'buckia_sent'") != nil
  }

  /// Notes what was sent: everything from the snapshot to what the database was then.
  ///
  /// - Parameter snapshot: The side of the comparison that the snapshot was.
  static func note(_ changeset: TemporaryBuffer, in snapshot: RowSource) throws {
    // A file is compared through a connection that only reads.
    guard snapshot.isFile else { return try note(changeset, in: snapshot.connection) }
    try note(changeset, in: SQLiteConnection(opening: snapshot.connection.path, as: .readWrite))
  }

  private static func note(_ changeset: TemporaryBuffer, in snapshot: borrowing SQLiteConnection) throws {
    let transaction = try SQLiteTransaction(on: snapshot)
    try snapshot.execute("DELETE FROM \(table)")
    let insert = try snapshot.prepare("INSERT INTO \(table)(bytes) VALUES (?1)", isPersistent: true)
    try changeset.forEachPiece { bytes in
      for start in stride(from: 0, to: bytes.count, by: pieceBytes) {
        let piece = UnsafeRawBufferPointer(rebasing: bytes[start..<min(bytes.count, start + pieceBytes)])
        try insert.bind(blobCopying: piece, at: 0)
        try insert.run()
      }
    }
    try transaction.commit()
  }

  /// Forgets what was sent: it is part of the snapshot now.
  static func clear(in snapshot: borrowing SQLiteConnection) throws { try snapshot.execute("DELETE FROM \(table)") }

  /// What was noted last, as a changeset; empty when nothing was sent since the snapshot was made.
  static func read(from snapshot: borrowing SQLiteConnection) throws -> TemporaryBuffer {
    let changeset = TemporaryBuffer()
    try snapshot.forEachRow(of: "SELECT bytes FROM \(table) ORDER BY piece") {
      try changeset.write($0.blobBytes(at: 0))
    }
    return changeset
  }
}
