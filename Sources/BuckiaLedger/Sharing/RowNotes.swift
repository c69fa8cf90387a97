import SQLiteConnections
import SQLiteSchemas

/// Notes of one kind about single rows of a table, in the table `buckia_note`. A row of which there is nothing to say has none.
package struct RowNotes {
  static let definition = """
    CREATE TABLE main.buckia_note(
      kind TEXT NOT NULL,
      owner NOT NULL,
      table_name TEXT NOT NULL COLLATE NOCASE,
      key BLOB NOT NULL,
      value INTEGER,
      PRIMARY KEY (kind, owner, table_name, key)
    ) WITHOUT ROWID;
    """

  /// What a note says, and who owns it.
  package enum Kind: String, Sendable {
    /// A diff was to delete the row, which stayed because rows here refer to it. It counts as inserted by this database since.
    case kept
    /// The sender of the row has withdrawn it. It may come back.
    case withdrawn
    /// The row went because its sender has withdrawn it or a diff was undone; it was not deleted here. Owned by a share whose
    /// recipients have the row, or by ``RowNotes/laterShares``.
    case takenBack = "taken-back"
    /// A recipient has brought the row since the last diff of the share that owns the note, and its baseline does not have it. The next diff
    /// says what has become of it. If only its content identifies the row, the value is how many of them the recipient has.
    case unsent
    /// The stream of the share that owns the note says something else of the row than the baseline, which has followed what the recipients
    /// have said. The value is the hash of the row in the stream; NULL for none.
    case aside
    /// What a stream has said last of the row was not taken here because of a conflict. The value is the hash of the version that was
    /// taken before; NULL for none. Owned by a ``ProvenanceEntry``, which also says the table.
    case untaken
    /// The sender who owns the note has changed the row without being known to have it.
    case widening
    /// The sender who owns the note has set what the row refers to.
    case wideningReference = "widening-reference"
  }

  /// Owns the notes of shares that are not made yet.
  package static let laterShares: Int64 = 0

  private let kind: Kind
  private let owner: Int64
  private let table: TableName

  /// The notes of a kind about a table.
  ///
  /// - Parameter owner: The number of the share that owns them.
  package init(_ kind: Kind, of table: TableName, for owner: Int64 = 0) {
    self.kind = kind
    self.table = table
    self.owner = owner
  }

  /// The rows whose last version in a stream was not taken.
  ///
  /// - Parameter provenance: The number of the ``ProvenanceEntry``.
  package init(untakenFrom provenance: Int64) { self.init(.untaken, of: TableName(""), for: provenance) }

  /// True if there are notes of a kind about any row.
  ///
  /// - Throws: `SQLiteError`.
  package static func exist(_ kind: Kind, on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.hasRow(cached: "SELECT 1 FROM main.buckia_note WHERE kind = ?1 LIMIT 1", kind.rawValue)
  }

  /// True if there are any.
  ///
  /// - Throws: `SQLiteError`.
  package func exist(on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.hasRow(
      cached: "SELECT 1 FROM main.buckia_note WHERE kind = ?1 AND owner = ?2 AND table_name = ?3 LIMIT 1",
      kind.rawValue, owner, table.text)
  }

  /// True if there is one about a row.
  ///
  /// - Parameter key: The values of its key, in the format of changesets; its content where that alone identifies it.
  /// - Throws: `SQLiteError`.
  package func contain(_ key: [UInt8], on connection: borrowing SQLiteConnection) throws -> Bool {
    try state(of: key, on: connection) != nil
  }

  /// The hash that is noted of a row; nil where there is no note.
  ///
  /// - Throws: `SQLiteError`.
  package func state(of key: [UInt8], on connection: borrowing SQLiteConnection) throws -> RowState? {
    try connection.first(
      ofCached: "SELECT value FROM main.buckia_note WHERE kind = ?1 AND owner = ?2 AND table_name = ?3 AND key = ?4",
      kind.rawValue, owner, table.text, key
    ) { RowState($0.hash(at: 0)) }
  }

  /// The hashes that are noted.
  ///
  /// - Throws: `SQLiteError`.
  package func states(on connection: borrowing SQLiteConnection) throws -> [[UInt8]: RowState] {
    var found: [[UInt8]: RowState] = [:]
    try connection.forEachRow(
      ofCached: "SELECT key, value FROM main.buckia_note WHERE kind = ?1 AND owner = ?2 AND table_name = ?3",
      binding: [kind.rawValue, owner, table.text]
    ) { row in
      found[row.blob(at: 0)] = RowState(row.hash(at: 1))
    }
    return found
  }

  /// Notes a row, in the place of what was noted of it before.
  ///
  /// - Throws: `SQLiteError`.
  package func note(_ key: [UInt8], _ value: Int64? = nil, on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: "INSERT OR REPLACE INTO main.buckia_note VALUES (?1, ?2, ?3, ?4, ?5)", kind.rawValue, owner, table.text,
      key, value)
  }

  /// Notes the hash of a row; nil removes the note.
  ///
  /// - Throws: `SQLiteError`.
  package func note(_ state: RowState?, of key: [UInt8], on connection: borrowing SQLiteConnection) throws {
    guard let state else { return try remove(key, on: connection) }
    try note(key, state.hash.map { Int64(bitPattern: $0) }, on: connection)
  }

  /// Removes the note about a row.
  ///
  /// - Throws: `SQLiteError`.
  package func remove(_ key: [UInt8], on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: "DELETE FROM main.buckia_note WHERE kind = ?1 AND owner = ?2 AND table_name = ?3 AND key = ?4",
      kind.rawValue, owner, table.text, key)
  }

  /// Removes the notes of a kind about all tables.
  ///
  /// - Throws: `SQLiteError`.
  package static func removeAll(
    _ kind: Kind, for owner: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(cached: "DELETE FROM main.buckia_note WHERE kind = ?1 AND owner = ?2", kind.rawValue, owner)
  }

  // MARK: Rows that a share has not sent

  /// The tables with rows that a share has not sent, with the keys of the rows, and the numbers of those that only their content
  /// identifies.
  ///
  /// - Throws: `SQLiteError`.
  package static func unsent(
    by share: Int64, on connection: borrowing SQLiteConnection
  ) throws -> [TableName: (keys: [[UInt8]], counts: [[UInt8]: Int64])] {
    var found: [TableName: (keys: [[UInt8]], counts: [[UInt8]: Int64])] = [:]
    try connection.forEachRow(
      of: "SELECT table_name, key, value FROM main.buckia_note WHERE kind = ?1 AND owner = ?2",
      binding: [Kind.unsent.rawValue, share]
    ) { row in
      let table = TableName(row.text(at: 0) ?? "")
      if row.isNull(at: 2) {
        found[table, default: ([], [:])].keys.append(row.blob(at: 1))
      } else {
        found[table, default: ([], [:])].counts[row.blob(at: 1)] = row.integer(at: 2)
      }
    }
    return found
  }

  /// Puts the unsent contents of a table into other columns.
  static func changeUnsentContents(
    of table: TableName, _ changed: ([UInt8]) throws -> [UInt8], on connection: borrowing SQLiteConnection
  ) throws {
    let notes = "main.buckia_note WHERE kind = ?1 AND table_name = ?2 AND value IS NOT NULL"
    let found = try connection.rows(of: "SELECT owner, key, value FROM \(notes)", Kind.unsent.rawValue, table.text) {
      (share: $0.integer(at: 0), content: $0.blob(at: 1), rows: $0.integer(at: 2))
    }
    try connection.run(cached: "DELETE FROM \(notes)", Kind.unsent.rawValue, table.text)
    for note in found {
      try RowNotes(.unsent, of: table, for: note.share).note(changed(note.content), note.rows, on: connection)
    }
  }

  // MARK: Changes by which rows may come into a share

  /// Notes that a sender has widened what a share may send.
  ///
  /// A change by somebody who does not have a row sends it to no one: such rows are held back until a person says yes.
  ///
  /// - Throws: `SQLiteError`.
  package static func note(
    _ kind: Kind, _ key: [UInt8], of table: TableName, by sender: String, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "INSERT OR IGNORE INTO main.buckia_note VALUES (?1, ?2, ?3, ?4, NULL)", kind.rawValue, sender, table.text,
      key)
  }

  /// The keys of the rows of a table that were changed in this way, and who has changed them.
  ///
  /// - Throws: `SQLiteError`.
  package static func senders(
    _ kind: Kind, of table: TableName, on connection: borrowing SQLiteConnection
  ) throws -> [[UInt8]: Set<String>] {
    var found: [[UInt8]: Set<String>] = [:]
    try connection.forEachRow(
      ofCached: "SELECT key, owner FROM main.buckia_note WHERE kind = ?1 AND table_name = ?2",
      binding: [kind.rawValue, table.text]
    ) { row in
      found[row.blob(at: 0), default: []].insert(row.text(at: 1) ?? "")
    }
    return found
  }
}

/// A row as it was said to be: one with a hash, or that there is none.
package enum RowState: Equatable, Sendable {
  case absent
  case present(UInt64)

  /// The hash of the row; nil for none.
  package var hash: UInt64? { if case .present(let hash) = self { hash } else { nil } }

  /// A row with a hash; none for nil.
  package init(_ hash: UInt64?) { self = hash.map { .present($0) } ?? .absent }
}

extension SQLiteStatement {
  /// A hash that is stored as an integer with the same bits; nil for NULL.
  func hash(at column: Int) -> UInt64? { isNull(at: column) ? nil : UInt64(bitPattern: integer(at: column)) }
}
