import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The table `buckia_contested_key`: keys that a local row and a row of a sender's have in common, although they are two rows.
///
/// An INSERT met a local row with its key. The author continues to change that row by its key, and here such a change
/// would reach the other row. Therefore changes are checked against these keys.
///
/// Two sides that count up from the same number have whole runs of integers in common, which is why a run is one row of
/// the table. Runs never overlap.
package final class ContestedKeys {
  static let definition = """
    CREATE TABLE main.buckia_contested_key(
      sender TEXT NOT NULL,
      table_name TEXT NOT NULL COLLATE NOCASE,
      key NOT NULL,
      last INTEGER,
      entry INTEGER NOT NULL,
      is_taken INTEGER NOT NULL,
      PRIMARY KEY (sender, table_name, key)
    ) WITHOUT ROWID;
    """

  /// A row of the table: a key of one integer, or several that follow each other.
  private struct Run {
    let keys: ClosedRange<Int64>
    /// The number of the diff in the ledger that put the keys there last.
    let entry: Int64
    /// True if its row has the key here.
    let isTaken: Bool
  }

  /// The purpose of a lookup.
  package enum Purpose {
    /// A change of the row with the key: contested are also keys of rows that this diff has left out.
    case change
    /// A reference to the row with the key. Rows that the diff itself has left out are known in other ways.
    case reference
  }

  /// The number of keys that one statement writes, because there can be millions of conflicts.
  private static let batchSize = 16
  private static let insertOne = insertion(of: 1)
  private static let insertBatch = insertion(of: batchSize)
  private static let deletion =
    "DELETE FROM main.buckia_contested_key WHERE sender = ?1 AND table_name = ?2 AND key = ?3"
  /// The number of integers that are collected, to find runs even if they arrive in another order.
  private static let integerLimit = 1 << 16

  private let sender: String
  private let entry: Int64
  private let isResumed: Bool
  private let connection: SQLiteConnection
  /// True if keys have been added.
  package private(set) var hasGrown = false
  /// The table of the keys that are not written yet.
  private var table = TableName("")
  /// True if the collected keys belong to the sender's rows here.
  private var areTaken = false
  /// The collected integer keys.
  private var integers: [Int64] = []
  /// The least and the greatest of them.
  private var span: ClosedRange<Int64>?
  /// The other collected keys.
  private var records: [[UInt8]] = []

  /// Begins to look at the keys that a sender contests.
  ///
  /// - Parameters:
  ///   - sender: The verified key of the sender in hex, or empty for unsigned files, which all count as one sender.
  ///   - entry: The number of the diff in the ledger; 0 for one that is refused.
  ///   - isResumed: True for changes that were held when the others of the diff were applied.
  package init(of sender: String, entry: Int64, isResumed: Bool = false, on connection: borrowing SQLiteConnection) {
    self.sender = sender
    self.entry = entry
    self.isResumed = isResumed
    self.connection = SQLiteConnection(sharing: connection)
  }

  private static func insertion(of count: Int) -> String {
    let rows = (0..<count).map { "(?1, ?2, ?\($0 + 5), NULL, ?3, ?4)" }.joined(separator: ", ")
    return """
      INSERT INTO main.buckia_contested_key VALUES \(rows)
      ON CONFLICT DO UPDATE SET entry = excluded.entry, is_taken = excluded.is_taken
      """
  }

  /// The value of a key of one integer; nil for others.
  private static func integer(_ key: [UInt8]) -> Int64? {
    guard key.count == 9, key[0] == ValueKind.integer.rawValue else { return nil }
    return Int64(bitPattern: key[1...].reduce(0) { $0 << 8 | UInt64($1) })
  }

  // MARK: Looking

  /// True if any key is contested by any sender.
  package static func exist(on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.cachedInteger("SELECT 1 FROM main.buckia_contested_key LIMIT 1") != nil
  }

  /// True if the sender contests any key of a table.
  package func exist(in table: TableName) throws -> Bool {
    try flush()
    return try connection.hasRow(
      cached: "SELECT 1 FROM main.buckia_contested_key WHERE sender = ?1 AND table_name = ?2 LIMIT 1", sender,
      table.text)
  }

  /// True if the sender's row with a key is not the local one.
  ///
  /// - Parameter key: The values of its columns in the order of the key, as a record of the changeset format.
  package func contains(_ key: [UInt8], of table: TableName, for purpose: Purpose) throws -> Bool {
    if mayBePending(key, of: table) { try flush() }
    guard let origin = try origin(of: key, in: table) else { return false }
    guard origin.entry == entry else { return true }
    // The row came with this diff, or with an earlier part of it.
    return !origin.isTaken && (purpose == .change || isResumed)
  }

  private func origin(of key: [UInt8], in table: TableName) throws -> (entry: Int64, isTaken: Bool)? {
    if let integer = Self.integer(key) { return try run(around: integer, in: table).map { ($0.entry, $0.isTaken) } }
    return try connection.first(
      ofCached:
        "SELECT entry, is_taken FROM main.buckia_contested_key WHERE sender = ?1 AND table_name = ?2 AND key = ?3",
      sender, table.text, key
    ) { ($0.integer(at: 0), $0.integer(at: 1) != 0) }
  }

  /// The row of the table with a key of one integer.
  private func run(around key: Int64, in table: TableName) throws -> Run? {
    guard let run = try lastRun(upTo: key, in: table), run.keys.contains(key) else { return nil }
    return run
  }

  /// The last row of the table that does not begin after a key.
  private func lastRun(upTo key: Int64, in table: TableName) throws -> Run? {
    // Blobs come after all integers.
    return try connection.first(
      ofCached: """
        SELECT key, last, entry, is_taken FROM main.buckia_contested_key WHERE sender = ?1 AND table_name = ?2 AND key <= ?3
        ORDER BY key DESC LIMIT 1
        """, sender, table.text, key
    ) { row in
      let first = row.integer(at: 0)
      return Run(
        keys: first...max(first, row.integer(at: 1)), entry: row.integer(at: 2), isTaken: row.integer(at: 3) != 0)
    }
  }

  /// Deletes all keys that a sender contests.
  package static func forget(sender: String, on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "DELETE FROM main.buckia_contested_key WHERE sender = ?1", sender)
  }

  // MARK: Adding

  /// Adds a key; ``flush()`` writes the last ones.
  ///
  /// - Parameters:
  ///   - key: The values of its columns in the order of the key, as a record of the changeset format.
  ///   - isTaken: True if the sender's row is the local one from now on. For the rest of this diff the key means that
  ///     row. For the next diff that is unknown, because the other side may have taken the local row.
  package func add(_ key: [UInt8], of table: TableName, isTaken: Bool) throws {
    if table != self.table || isTaken != areTaken {
      try flush()
      self.table = table
      areTaken = isTaken
    }
    hasGrown = true
    if let integer = Self.integer(key) {
      integers.append(integer)
      span = min(span?.lowerBound ?? integer, integer)...max(span?.upperBound ?? integer, integer)
    } else {
      records.append(key)
    }
    if integers.count == Self.integerLimit || records.count == Self.batchSize { try flush() }
  }

  /// Writes the collected keys.
  package func flush() throws {
    if !integers.isEmpty { try writeIntegers() }
    if !records.isEmpty { try writeRecords() }
    rewind()
  }

  /// Discards the keys since the last ``flush()``, because a savepoint has been rolled back.
  package func rewind() {
    integers.removeAll(keepingCapacity: true)
    span = nil
    records.removeAll(keepingCapacity: true)
  }

  /// True if a key may be one that is not written yet.
  private func mayBePending(_ key: [UInt8], of table: TableName) -> Bool {
    guard !integers.isEmpty || !records.isEmpty, table == self.table else { return false }
    if let integer = Self.integer(key) { return span?.contains(integer) == true }
    return records.contains(key)
  }

  private func writeRecords() throws {
    let isBatch = records.count == Self.batchSize
    let insert = try connection.cached(isBatch ? Self.insertBatch : Self.insertOne)
    try insert.statement.bind(sender, at: 0)
    try insert.statement.bind(table.text, at: 1)
    try insert.statement.bind(entry, at: 2)
    try insert.statement.bind(Int64(areTaken ? 1 : 0), at: 3)
    for (index, record) in records.enumerated() {
      try insert.statement.bind(record, at: isBatch ? 4 + index : 4)
      if !isBatch { try insert.statement.run() }
    }
    if isBatch { try insert.statement.run() }
    insert.statement.clearBindings()
  }

  private func writeIntegers() throws {
    integers.sort()
    var start = 0
    for end in integers.indices where end + 1 == integers.count || integers[end + 1] > integers[end] &+ 1 {
      let keys = integers[start]...integers[end]
      try cut(keys, of: table)
      try write(Run(keys: keys, entry: entry, isTaken: areTaken), of: table)
      start = end + 1
    }
  }

  private func write(_ run: Run, of table: TableName) throws {
    try connection.run(
      cached: "INSERT INTO main.buckia_contested_key VALUES (?1, ?2, ?3, ?4, ?5, ?6)", sender, table.text,
      run.keys.lowerBound, run.keys.upperBound, run.entry, Int64(run.isTaken ? 1 : 0))
  }

  // MARK: Removing

  /// Removes a key: from now on it means one row to both sides, or none here.
  package func remove(_ key: [UInt8], of table: TableName) throws {
    if mayBePending(key, of: table) { try flush() }
    guard let integer = Self.integer(key) else {
      return try connection.run(cached: Self.deletion, sender, table.text, key)
    }
    try cut(integer...integer, of: table)
  }

  /// Removes keys from the runs that contain them; the rest of those stays.
  private func cut(_ keys: ClosedRange<Int64>, of table: TableName) throws {
    while let run = try lastRun(upTo: keys.upperBound, in: table), run.keys.overlaps(keys) {
      try connection.run(cached: Self.deletion, sender, table.text, run.keys.lowerBound)
      if run.keys.lowerBound < keys.lowerBound {
        try write(
          Run(keys: run.keys.lowerBound...(keys.lowerBound - 1), entry: run.entry, isTaken: run.isTaken), of: table)
      }
      if run.keys.upperBound > keys.upperBound {
        try write(
          Run(keys: (keys.upperBound + 1)...run.keys.upperBound, entry: run.entry, isTaken: run.isTaken), of: table)
      }
    }
  }
}
