import SQLiteConnections
import SQLiteSchemas

/// The table `buckia_contested_key`: keys that a local row and a row of a sender's have in common, although they are two rows.
///
/// An INSERT met a local row with its key. Its author goes on to change its own row, and names it by that key: here such a
/// change would reach the other row. Whoever applies it looks here first.
package final class ContestedKeys {
  static let definition = """
    CREATE TABLE main.buckia_contested_key(
      sender TEXT NOT NULL,
      table_name TEXT NOT NULL COLLATE NOCASE,
      key BLOB NOT NULL,
      PRIMARY KEY (sender, table_name, key)
    ) WITHOUT ROWID;
    """

  /// How many keys one statement writes: conflicts can come by the million.
  private static let batchSize = 16
  private static let insertOne = insertion(of: 1)
  private static let insertBatch = insertion(of: batchSize)

  private let sender: String
  private let connection: SQLiteConnection
  /// Keys that are not written yet.
  private var pending: [(table: String, key: [UInt8])] = []

  /// Begins to look at the keys that a sender contests.
  ///
  /// - Parameter sender: The verified key of the sender in hex, or empty for unsigned files, which all count as one sender.
  package init(of sender: String, on connection: borrowing SQLiteConnection) {
    self.sender = sender
    self.connection = SQLiteConnection(sharing: connection)
  }

  private static func insertion(of count: Int) -> String {
    let rows = [String](repeating: "(?, ?, ?)", count: count).joined(separator: ", ")
    return "INSERT INTO main.buckia_contested_key VALUES \(rows) ON CONFLICT DO NOTHING"
  }

  /// Whether any key is contested, whoever the sender.
  package static func exist(on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.cachedInteger("SELECT 1 FROM main.buckia_contested_key LIMIT 1") != nil
  }

  /// Whether the sender contests any key of a table.
  package func exist(in table: TableName) throws -> Bool {
    let query = try connection.cached(
      "SELECT 1 FROM main.buckia_contested_key WHERE sender = ?1 AND table_name = ?2 LIMIT 1")
    defer { query.statement.reset() }
    try query.statement.bind(sender, at: 0)
    try query.statement.bind(table.text, at: 1)
    return try query.statement.step()
  }

  /// Whether the sender contests a key.
  package func contains(_ key: [UInt8], of table: TableName) throws -> Bool {
    let query = try connection.cached(
      "SELECT 1 FROM main.buckia_contested_key WHERE sender = ?1 AND table_name = ?2 AND key = ?3")
    defer { query.statement.reset() }
    try query.statement.bind(sender, at: 0)
    try query.statement.bind(table.text, at: 1)
    try query.statement.bind(key, at: 2)
    return try query.statement.step()
  }

  /// Adds a key; ``flush()`` writes the last ones.
  ///
  /// - Parameter key: The values of its columns in the order of the key, as a record of the changeset format.
  package func add(_ key: [UInt8], of table: TableName) throws {
    pending.append((table.text, key))
    if pending.count == Self.batchSize { try flush() }
  }

  /// Writes what has been gathered.
  package func flush() throws {
    guard !pending.isEmpty else { return }
    let isBatch = pending.count == Self.batchSize
    let insert = try connection.cached(isBatch ? Self.insertBatch : Self.insertOne)
    for (index, item) in pending.enumerated() {
      let start = isBatch ? 3 * index : 0
      try insert.statement.bind(sender, at: start)
      try insert.statement.bind(item.table, at: start + 1)
      try insert.statement.bind(item.key, at: start + 2)
      if !isBatch { try insert.statement.run() }
    }
    if isBatch { try insert.statement.run() }
    insert.statement.clearBindings()
    pending.removeAll(keepingCapacity: true)
  }

  /// Forgets what has been added since the last ``flush()``, because a savepoint has been rolled back.
  package func rewind() { pending.removeAll(keepingCapacity: true) }

  /// Removes a key: from now on it means one row to both sides, or none here.
  package func remove(_ key: [UInt8], of table: TableName) throws {
    try connection.run(
      cached: "DELETE FROM main.buckia_contested_key WHERE sender = ?1 AND table_name = ?2 AND key = ?3", sender,
      table.text, key)
  }
}
