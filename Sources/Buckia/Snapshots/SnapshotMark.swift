import BuckiaLedger
import SQLiteConnections

/// What a snapshot says of itself, in its table `buckia_snapshot`.
struct SnapshotMark {
  /// Tells it apart from other snapshots of the same database. The ones that replace it have the same id.
  var id: String
  /// The newest entry of the ledger that the database had when the snapshot was made; 0 for none.
  var through: Int64

  /// The mark of a new snapshot.
  ///
  /// - Parameters:
  ///   - copy: The copy of the database, with its ledger.
  ///   - previous: The mark of the snapshot that it replaces; nil for none.
  init(of copy: borrowing SQLiteConnection, replacing previous: SnapshotMark?) throws {
    id = previous?.id ?? String(UInt64.random(in: .min ... .max), radix: 16)
    through =
      try Ledger.exists(on: copy) ? copy.integer("SELECT max(entry) FROM main.buckia_ledger") ?? 0 : 0
  }

  /// Reads the mark of a snapshot; nil for other databases, and those that have none yet.
  init?(in snapshot: borrowing SQLiteConnection) throws {
    let table = "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = 'buckia_snapshot'"
    guard try snapshot.integer(table) != nil else { return nil }
    let query = try snapshot.prepare("SELECT id, through FROM main.buckia_snapshot")
    guard try query.step(), let id = query.text(at: 0) else { return nil }
    self.id = id
    through = query.integer(at: 1)
  }

  /// Reads the mark of the snapshot at a path.
  init?(at path: String) throws {
    guard FileSystem.exists(path), FileKind(of: path) == .sqlite else { return nil }
    try self.init(in: .reading(path))
  }

  /// Reads the mark of the snapshot at a path that a new one replaces; nil where there is no file, or an empty one.
  ///
  /// - Throws: `BuckiaError` with `notReplaceable` for a database that is no snapshot.
  init?(replacedAt path: String) throws {
    if let mark = try SnapshotMark(at: path) {
      self = mark
      return
    }
    guard FileSystem.exists(path), FileKind(of: path) != .empty else { return nil }
    throw BuckiaError(
      .notReplaceable,
      "it is a database that is no snapshot of Buckia's, which a snapshot does not replace; if it is the database as others "
        + "know it, make a snapshot of it, and name that", path: path)
  }

  /// Writes the mark.
  func write(to snapshot: borrowing SQLiteConnection) throws {
    try snapshot.execute(
      """
      CREATE TABLE IF NOT EXISTS main.buckia_snapshot(id TEXT NOT NULL, through INTEGER NOT NULL);
      DELETE FROM main.buckia_snapshot
      """)
    try snapshot.run(cached: "INSERT INTO main.buckia_snapshot VALUES (?1, ?2)", id, through)
  }
}
