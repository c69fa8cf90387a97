import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The tables `buckia_effect` and `buckia_undo`: what applying a diff did to the rows here, and which diffs have been taken back.
///
/// What a diff did is not what its author did: conflicts, columns that only exist here and triggers make a difference. So it is
/// kept as changes of the local rows, from which those are made that take it back. Only so much is kept.
package enum AppliedEffects {
  static let definition = """
    CREATE TABLE main.buckia_effect(
      effect INTEGER PRIMARY KEY,
      entry INTEGER NOT NULL,
      tables BLOB NOT NULL,
      changes BLOB NOT NULL
    );
    CREATE INDEX main.buckia_effect_entry ON buckia_effect(entry);
    CREATE TABLE main.buckia_undo(
      entry INTEGER PRIMARY KEY,
      undone INTEGER NOT NULL,
      is_active INTEGER NOT NULL
    );
    CREATE INDEX main.buckia_undo_undone ON buckia_undo(undone);
    """

  /// How much is kept.
  package struct Retention: Sendable, Equatable {
    /// How many bytes of changes are kept of all diffs together; the oldest go first. 0: nothing is kept.
    package var bytes: Int
    /// For how many days.
    package var days: Int

    /// Makes a retention.
    package init(bytes: Int, days: Int) {
      self.bytes = bytes
      self.days = days
    }

    /// 4 MiB, 30 days.
    package static let standard = Retention(bytes: 4 << 20, days: 30)

    /// How many bytes are kept while they are not too old.
    package var byteLimit: Int { days > 0 ? bytes : 0 }
  }

  /// What was done to the rows of one table: how its changes are laid out.
  package struct Table: Equatable, Sendable {
    /// The local table.
    package let name: String
    /// The columns of its changes, by their local names; the rowid first where the table is keyed by it.
    package let columns: [String]

    /// Names a table and its columns.
    package init(name: String, columns: [String]) {
      self.name = name
      self.columns = columns
    }
  }

  /// What one part of a diff did.
  package struct Part: Sendable {
    /// The tables.
    package let tables: [Table]
    /// The changes, as a changeset.
    package let changes: [UInt8]
  }

  // MARK: Keeping

  /// Keeps what applying a diff, or one part of it, did.
  package static func record(
    _ changes: [UInt8], of tables: [Table], entry: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    var writer = ChangesetWriter()
    for table in tables {
      writer.append(text: table.name)
      writer.append(integer: Int64(table.columns.count))
      for column in table.columns { writer.append(text: column) }
    }
    try connection.run(
      cached: "INSERT INTO main.buckia_effect(entry, tables, changes) VALUES (?1, ?2, ?3)", entry, writer.bytes, changes
    )
  }

  /// Forgets what a diff did.
  package static func remove(entry: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "DELETE FROM main.buckia_effect WHERE entry = ?1", entry)
  }

  /// Whether anything is kept of what a diff did.
  package static func exist(of entry: Int64, on connection: borrowing SQLiteConnection) throws -> Bool {
    let query = try connection.cached("SELECT 1 FROM main.buckia_effect WHERE entry = ?1")
    defer { query.statement.reset() }
    try query.statement.bind(entry, at: 0)
    return try query.statement.step()
  }

  /// Forgets what is too old or too much.
  ///
  /// - Parameter time: The present time, in milliseconds since 1970.
  package static func prune(
    to retention: Retention, at time: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    let (age, isForEver) = Int64(clamping: retention.days).multipliedReportingOverflow(by: 86_400_000)
    if !isForEver {
      try connection.run(
        cached: """
          DELETE FROM main.buckia_effect
          WHERE (SELECT recorded_at FROM main.buckia_ledger AS l WHERE l.entry = buckia_effect.entry) < ?1
          """, time &- age)
    }
    try connection.run(
      cached: """
        DELETE FROM main.buckia_effect WHERE entry <= (
          SELECT max(entry) FROM (
            SELECT entry, sum(length(changes)) OVER (ORDER BY entry DESC) AS kept FROM main.buckia_effect)
          WHERE kept > ?1)
        """, Int64(retention.bytes))
  }

  /// What is kept of what a diff did, in the order in which it was done.
  ///
  /// - Throws: `SQLiteError`; `ChangesetError` when the tables have been written by somebody else.
  package static func parts(of entry: Int64, on connection: borrowing SQLiteConnection) throws -> [Part] {
    let query = try connection.cached("SELECT tables, changes FROM main.buckia_effect WHERE entry = ?1 ORDER BY effect")
    defer { query.statement.reset() }
    try query.statement.bind(entry, at: 0)
    var parts: [Part] = []
    while try query.statement.step() {
      parts.append(Part(tables: try tables(query.statement.blob(at: 0)), changes: query.statement.blob(at: 1)))
    }
    return parts
  }

  private static func tables(_ record: [UInt8]) throws -> [Table] {
    var values = try ChangesetValue.record(record).compactMap { $0 }[...]
    var tables: [Table] = []
    while case .text(let name)? = values.popFirst(), case .integer(let count)? = values.popFirst() {
      let columns = values.prefix(Int(clamping: max(0, count))).compactMap { value in
        if case .text(let column) = value { column } else { nil }
      }
      values = values.dropFirst(columns.count)
      tables.append(Table(name: name, columns: columns))
    }
    return tables
  }

  // MARK: Taking back

  /// The ledger entry that has taken a diff back; nil when the diff stands.
  package static func undo(of entry: Int64, on connection: borrowing SQLiteConnection) throws -> Int64? {
    let query = try connection.cached("SELECT entry FROM main.buckia_undo WHERE undone = ?1 AND is_active")
    defer { query.statement.reset() }
    try query.statement.bind(entry, at: 0)
    return try query.statement.step() ? query.statement.integer(at: 0) : nil
  }

  /// The diff that an entry has taken back; nil for all entries that are no undo.
  package static func undone(by entry: Int64, on connection: borrowing SQLiteConnection) throws -> AppliedDiff? {
    let query = try connection.cached("SELECT undone FROM main.buckia_undo WHERE entry = ?1 AND is_active")
    defer { query.statement.reset() }
    try query.statement.bind(entry, at: 0)
    guard try query.statement.step() else { return nil }
    return AppliedDiff(entry: query.statement.integer(at: 0), id: nil, digest: "")
  }

  /// The entries before another one that have been taken back, the newest first; not the one that this itself takes back.
  package static func undone(before entry: Int64, on connection: borrowing SQLiteConnection) throws -> [Int64] {
    let query = try connection.cached(
      "SELECT undone FROM main.buckia_undo WHERE is_active AND undone < ?1 AND entry <> ?1 ORDER BY undone DESC")
    defer { query.statement.reset() }
    try query.statement.bind(entry, at: 0)
    var entries: [Int64] = []
    while try query.statement.step() { entries.append(query.statement.integer(at: 0)) }
    return entries
  }

  /// Notes that one entry takes another back. Where that one took back a third, the third stands again.
  package static func recordUndo(
    _ entry: Int64, of undone: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(cached: "UPDATE main.buckia_undo SET is_active = 0 WHERE entry = ?1", undone)
    try connection.run(cached: "INSERT INTO main.buckia_undo VALUES (?1, ?2, 1)", entry, undone)
  }
}
