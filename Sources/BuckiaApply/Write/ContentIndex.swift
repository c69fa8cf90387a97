import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Finds the rows of a table by a hash of their content.
///
/// The hashes are in a TEMP table, with 16 bytes for each row beside the b-tree, which SQLite keeps in a file if there
/// are many. TEMP triggers record each written row, also of other statements, and its new hash is added before the next
/// search. A rolled-back savepoint rolls all of this back with the rows. Every row has an entry with the hash of its
/// content. Other entries can be of deleted or changed rows, which is why each hit must be checked.
final class ContentIndex {
  private struct Entry: Comparable {
    let hash: Int64
    let row: Int64

    static func < (one: Entry, other: Entry) -> Bool {
      one.hash == other.hash ? one.row < other.row : one.hash < other.hash
    }
  }

  private static let prefix = "\(SQLiteConnection.temporaryPrefix)content_"
  /// The number of entries that are sorted and written together: 16 MiB. In order they are written many times faster.
  private static let batchSize = 1 << 20

  private let connection: SQLiteConnection
  private let affinities: [Affinity]
  /// The names of the TEMP tables and of the triggers.
  private let store: String
  private let written: String
  private let triggers: [(event: String, name: String)]
  private let insertion: PreparedStatement
  private let removal: PreparedStatement
  private let candidates: PreparedStatement
  private let writtenRows: PreparedStatement
  /// The hashed values of the row with a rowid.
  private let content: PreparedStatement
  private var entries: [Entry] = []

  /// Creates the index of a table.
  ///
  /// - Parameters:
  ///   - slot: Tells the indexes apart that are there at the same time.
  ///   - statements: The statements of the table, which must be an ordinary one.
  ///   - columns: The columns of the changeset that are hashed, no more than a query may return.
  ///   - poll: Called every few thousand rows. May throw to stop.
  /// - Throws: `SQLiteError`; what `poll` throws. The transaction or savepoint must be rolled back then.
  init(slot: Int, of statements: TableStatements, _ columns: [Int], poll: () throws -> Void) throws {
    connection = SQLiteConnection(sharing: statements.connection)
    affinities = columns.map { statements.affinities[statements.match.columns[$0]] }
    store = "\(Self.prefix)\(slot)"
    written = "\(Self.prefix)written_\(slot)"
    triggers = ["INSERT", "UPDATE"].map { ($0, "\(Self.prefix)\($0.lowercased())_\(slot)") }
    let rowID = statements.rowID ?? "rowid"
    // A table that is there already was left, empty, by an earlier file.
    try connection.execute(
      """
      CREATE TEMP TABLE IF NOT EXISTS \(store)(hash INTEGER NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (hash, row))
        WITHOUT ROWID;
      CREATE TEMP TABLE IF NOT EXISTS \(written)(row INTEGER PRIMARY KEY);
      DELETE FROM temp.\(store); DELETE FROM temp.\(written)
      """)
    for (event, name) in triggers {
      // Not OR IGNORE, because the outer statement's clause overrides it inside a trigger.
      try connection.execute(
        """
        DROP TRIGGER IF EXISTS temp.\(name);
        CREATE TEMP TRIGGER \(name) AFTER \(event) ON \(statements.table) BEGIN
          INSERT INTO \(written) VALUES (NEW.\(rowID)) ON CONFLICT DO NOTHING;
        END
        """)
    }
    func prepare(_ sql: String) throws -> PreparedStatement {
      PreparedStatement(try statements.connection.prepare(sql, isPersistent: true))
    }
    insertion = try prepare("INSERT INTO temp.\(store) VALUES (?1, ?2) ON CONFLICT DO NOTHING")
    removal = try prepare("DELETE FROM temp.\(store) WHERE hash = ?1 AND row = ?2")
    candidates = try prepare("SELECT row FROM temp.\(store) WHERE hash = ?1 ORDER BY row")
    writtenRows = try prepare("SELECT row FROM temp.\(written)")
    let names = columns.map { statements.columns[$0] }.joined(separator: ", ")
    content = try prepare("SELECT \(names) FROM \(statements.table) WHERE \(rowID) = ?1")
    let all = try prepare("SELECT \(names), \(rowID) FROM \(statements.table)\(Self.condition(statements))")
    var count = 0
    while try all.statement.step() {
      try add(all.statement.integer(at: columns.count), hash(of: all.statement))
      count += 1
      if count.isMultiple(of: 4_096) { try poll() }
    }
    try addEntries()
  }

  /// An SQL condition for the searched rows: in a table with a key, those with NULL in it.
  static func condition(_ statements: TableStatements) -> String {
    statements.match.local.hasNullKeySQL.map { " WHERE \($0)" } ?? ""
  }

  /// Finds the first row, by rowid, that is the same as that of a change.
  ///
  /// - Parameters:
  ///   - hash: The hash of the change's values.
  ///   - isSame: True if the row with a rowid is the same.
  func row(_ hash: Int64, where isSame: (Int64) throws -> Bool) throws -> Int64? {
    try addWrittenRows()
    var found: Int64?
    var others: [Int64] = []
    try candidates.statement.bind(hash, at: 0)
    defer { candidates.statement.reset() }
    while found == nil, try candidates.statement.step() {
      let row = candidates.statement.integer(at: 0)
      if try isSame(row) { found = row } else { others.append(row) }
    }
    candidates.statement.reset()
    // Entries of deleted rows would be found again by each search for equal rows.
    for row in others where try self.hash(ofRow: row) != hash {
      try removal.statement.bind(hash, at: 0)
      try removal.statement.bind(row, at: 1)
      try removal.statement.run()
    }
    return found
  }

  /// Drops the triggers, and empties the tables.
  func end() throws {
    for trigger in triggers { try connection.execute("DROP TRIGGER IF EXISTS temp.\(trigger.name)") }
    try connection.execute("DELETE FROM temp.\(store); DELETE FROM temp.\(written)")
  }

  // MARK: Entries

  private func addWrittenRows() throws {
    var isEmpty = true
    defer { writtenRows.statement.reset() }
    while try writtenRows.statement.step() {
      let row = writtenRows.statement.integer(at: 0)
      if let hash = try hash(ofRow: row) { try add(row, hash) }
      isEmpty = false
    }
    if isEmpty { return }
    writtenRows.statement.reset()
    try addEntries()
    try connection.run(cached: "DELETE FROM temp.\(written)")
  }

  private func add(_ row: Int64, _ hash: Int64) throws {
    entries.append(Entry(hash: hash, row: row))
    if entries.count == Self.batchSize { try addEntries() }
  }

  private func addEntries() throws {
    entries.sort()
    for entry in entries {
      try insertion.statement.bind(entry.hash, at: 0)
      try insertion.statement.bind(entry.row, at: 1)
      try insertion.statement.run()
    }
    entries.removeAll(keepingCapacity: entries.count < 4_096)
  }

  // MARK: Hashes

  /// The hash of the row with a rowid; nil for none.
  private func hash(ofRow row: Int64) throws -> Int64? {
    try content.statement.bind(row, at: 0)
    defer { content.statement.reset() }
    return try content.statement.step() ? hash(of: content.statement) : nil
  }

  private func hash(of row: borrowing SQLiteStatement) -> Int64 {
    var hash = ContentHash()
    for column in affinities.indices { hash.add(column, of: row, affinities[column]) }
    return hash.value
  }
}

/// A hash of values that is equal wherever a search by content takes them for equal.
///
/// In a column with an affinity, numbers hash by their value, whatever their storage class. In a column without
/// affinity, 1 and 1.0 hash differently, as do 0.0 and -0.0. The hash is seeded again in each process, which keeps
/// senders from choosing rows that collide.
struct ContentHash {
  private var hasher = Hasher()

  /// The hash of all values that were added.
  var value: Int64 { Int64(hasher.finalize()) }

  private enum Kind: UInt8 { case null, integer, real, text, blob }

  /// Adds a value of a stored row.
  ///
  /// - Parameters:
  ///   - column: The place in the statement's row.
  ///   - affinity: The column's affinity.
  mutating func add(_ column: Int, of row: borrowing SQLiteStatement, _ affinity: Affinity) {
    switch row.storageClass(at: column) {
    case .null: addNull()
    case .integer: add(row.integer(at: column), affinity)
    case .real: add(row.real(at: column), affinity)
    case .text: add(.text, row.textBytes(at: column))
    case .blob: add(.blob, row.blobBytes(at: column))
    }
  }

  /// Adds a value of a change, which the column would store unchanged, or as an equal number.
  mutating func add(_ value: ValueSlice, in bytes: RawSpan, _ affinity: Affinity) {
    switch value.kind {
    case .undefined, .null: addNull()
    case .integer: add(value.integer(in: bytes), affinity)
    case .real: add(value.real(in: bytes), affinity)
    case .text: bytes.extracting(value.payloadRange).withUnsafeBytes { add(.text, $0) }
    case .blob: bytes.extracting(value.payloadRange).withUnsafeBytes { add(.blob, $0) }
    }
  }

  private mutating func addNull() { hasher.combine(Kind.null.rawValue) }

  private mutating func add(_ number: Int64, _ affinity: Affinity) {
    if affinity != .blob, Int64(exactly: Double(number)) == number { return add(Double(number), affinity) }
    hasher.combine(Kind.integer.rawValue)
    hasher.combine(number)
  }

  private mutating func add(_ number: Double, _ affinity: Affinity) {
    // SQLite takes NaN for NULL.
    if number.isNaN { return addNull() }
    hasher.combine(Kind.real.rawValue)
    hasher.combine(number == 0 && affinity != .blob ? 0 : number.bitPattern)
  }

  private mutating func add(_ kind: Kind, _ bytes: UnsafeRawBufferPointer) {
    hasher.combine(kind.rawValue)
    hasher.combine(bytes.count)
    hasher.combine(bytes: bytes)
  }
}
