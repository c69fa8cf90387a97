import SQLiteChangesets
import SQLiteConnections

/// Many new rows: what a first share or a long time apart comes down to.
public final class InsertWorkload: Sendable {
  /// How the table finds its rows.
  public let shape: TableShape
  /// How many rows.
  public let rows: Int
  /// The changeset as SQLite's session extension records it, in hash order.
  public let recorded: [UInt8]
  /// The same changes by key, as Buckia's own diffs hold them.
  public let sorted: [UInt8]

  /// Makes the rows in a database in memory while a session records them.
  ///
  /// - Throws: `SQLiteError`.
  public init(_ shape: TableShape, rows: Int) throws {
    self.shape = shape
    self.rows = rows
    let author = try SQLiteConnection(opening: ":memory:", as: .create)
    try author.execute(shape.definition)
    let session = try SQLiteSession(on: author)
    try session.attach()
    try author.execute(
      """
      WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
      INSERT INTO t SELECT \(shape.key), i, 'the text of row ' || i, i * 0.5, zeroblob(50) FROM n
      """)
    let changeset = try session.changeset()
    recorded = changeset
    sorted = try changeset.withRawSpan { try Changesets.sorted($0) }.withBytes { $0.array(0..<$0.byteCount) }
  }

  /// An empty database of this shape: a file in WAL mode, SQLite's default cache.
  public func emptyDatabase(in folder: ScratchFolder) throws -> SQLiteConnection {
    let connection = try SQLiteConnection(opening: folder.newFile(), as: .create)
    try connection.execute("PRAGMA journal_mode = WAL")
    try connection.execute(shape.definition)
    return connection
  }
}
