import SQLiteChangesets
import SQLiteConnections

/// A changeset in two orders.
struct RecordedChanges {
  /// As SQLite's session extension writes it: in the order of its hash table.
  let recorded: StockChangeset
  /// By operation and key, as Buckia writes it.
  let sorted: [UInt8]

  /// Takes a changeset that a session recorded.
  ///
  /// - Throws: `ChangesetError`, `ByteStreamError`.
  init(_ recorded: [UInt8]) throws {
    self.recorded = StockChangeset(recorded)
    sorted = try Changesets.sorted(recorded)
  }

  /// Runs statements and records their changes with a session.
  ///
  /// - Throws: `SQLiteError` and as ``init(_:)``.
  init(of statements: String, on connection: borrowing SQLiteConnection) throws {
    let session = try SQLiteSession(on: connection)
    try session.attach(TableShape.table)
    try connection.execute(statements)
    self = try RecordedChanges(try session.changeset())
  }

  /// Its size, for people.
  var size: String { Quantity.size(recorded.count) }
}
