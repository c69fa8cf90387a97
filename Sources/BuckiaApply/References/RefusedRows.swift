import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The rows of one diff whose INSERT was left out, and the rows of it that refer to them.
///
/// Such a row must not refer to the local row that happens to have the same key: it is a conflict of its own. But
/// tables and rows of a diff can have any order, and references can be circular. A row may therefore be written before
/// the row that it refers to is refused. Then everything is rolled back and applied again, with the knowledge of which
/// rows refer to refused ones. One run passes this to the next; without a refused row that others of the diff refer to,
/// there is one run, and this stays empty.
final class RefusedRows {
  /// Why a row was left out.
  enum Cause: Int64 {
    /// Another local row has its key.
    case keyTaken = 1
    /// A constraint refuses it.
    case constraint
  }

  /// A missing row to which another one refers: the table, its identity in the diff, and the reason why it is left out;
  /// nil if it refers to another such row itself.
  typealias Parent = (table: TableName, key: [UInt8], cause: Cause?)

  /// How often a diff is applied again at most. One that needs more leaves out other rows each time.
  private static let runLimit = 8

  /// The decisions about broken references.
  let references = ReferenceDecisions()
  private let library: SQLiteLibrary
  private var store: ReferenceStore?
  /// The tables of the diff with rows that refer to refused ones.
  private var referringTables: Set<TableName> = []
  /// True if a row has been refused since the last search.
  private var hasNews = false
  private var runs = 0
  /// True if a local row had to make room for one with the same key.
  private(set) var hasReplaced = false

  /// - Parameter library: The copy of SQLite that the database is used with.
  init(with library: SQLiteLibrary) { self.library = library }

  private func makeStore() throws -> ReferenceStore {
    if let store { return store }
    let made = try ReferenceStore(with: library)
    store = made
    return made
  }

  /// Begins another run.
  func beginRun() throws {
    hasReplaced = false
    try store?.connection.execute("UPDATE referring SET taken = 0 WHERE taken; DELETE FROM replaced")
  }

  // MARK: Results of a run

  /// Records a row whose INSERT is left out.
  ///
  /// - Parameters:
  ///   - key: The identity of the row in the diff.
  ///   - table: The table, as the diff calls it.
  func note(_ key: [UInt8], of table: String, _ cause: Cause) throws {
    let store = try makeStore()
    try store.connection.run(cached: "INSERT OR IGNORE INTO refused VALUES (?1, ?2, ?3)", table, key, cause.rawValue)
    if store.connection.changes > 0 { hasNews = true }
  }

  /// Records the referenced values of a local row, before another row replaces it.
  func note(replaced record: [UInt8], of table: TableName) throws {
    hasReplaced = true
    try makeStore().connection.run(cached: "INSERT INTO replaced VALUES (?1, ?2)", table.text, record)
  }

  /// Passes the values of each local row of a table that was replaced in this run to `body`.
  func forEachReplaced(of table: TableName, _ body: (RowCopy) throws -> Void) throws {
    guard hasReplaced, let store else { return }
    try store.connection.forEachRow(
      of: "SELECT record FROM replaced WHERE tbl = ?1 COLLATE NOCASE", binding: [table.text]
    ) { try body(RowCopy(record: $0.blob(at: 0))) }
  }

  /// Searches for rows that refer to the refused rows of this run.
  ///
  /// - Parameters:
  ///   - staysOut: True if a row of a table is left out when it refers to one that is.
  /// - Returns: True if any were found: everything has to be rolled back and applied again.
  /// - Throws: `ReplicationError` with `conflict` when that has happened too often; `SQLiteError`.
  func findReferring(
    in changes: IncomingChanges, _ matches: [TableName: TableMatch], _ session: ApplySession,
    staysOut: @escaping (TableName) -> Bool
  ) throws -> Bool {
    guard hasNews, let store else { return false }
    hasNews = false
    let tables = try self.tables(of: "refused", in: store)
    let search = ReferenceSearch(session: session, store: store, changes: changes, matches: matches, staysOut: staysOut)
    guard try search.run(from: tables) else { return false }
    referringTables = try self.tables(of: "referring", in: store)
    runs += 1
    guard runs < Self.runLimit else {
      throw ReplicationError(
        .conflict,
        "rows of this file refer to rows that cannot be taken here, and leaving them out keeps out others, again and again; "
          + "nothing of this file is applied")
    }
    return true
  }

  private func tables(of list: String, in store: ReferenceStore) throws -> Set<TableName> {
    Set(try store.connection.rows(of: "SELECT DISTINCT tbl FROM \(list)") { TableName($0.text(at: 0) ?? "") })
  }

  // MARK: Knowledge of the next run

  /// True if any row of a table is known to refer to a refused one.
  func areReferred(by table: TableName) -> Bool { referringTables.contains(table) }

  /// The refused row that a row of the diff refers to; nil if there is none, or when that does not matter any more.
  ///
  /// - Parameters:
  ///   - key: The identity of the row in the diff.
  ///   - table: The table, as the diff calls it.
  func parent(of key: [UInt8], in table: String) throws -> Parent? {
    guard let store else { return nil }
    return try store.connection.first(
      ofCached: """
        SELECT r.parent_tbl, r.parent_key, r.cause FROM referring AS r
        LEFT JOIN referring AS p ON p.tbl = r.parent_tbl AND p.key = r.parent_key
        WHERE r.tbl = ?1 AND r.key = ?2 AND NOT r.taken AND (r.cause IS NOT NULL OR NOT ifnull(p.taken, 0))
        ORDER BY r.cause IS NULL LIMIT 1
        """, table, key
    ) { row in
      (TableName(row.text(at: 0) ?? ""), row.blob(at: 1), Cause(rawValue: row.integer(at: 2)))
    }
  }

  /// Says that a row is written although it refers to a refused one.
  func take(_ key: [UInt8], in table: String) throws {
    try store?.connection.run(cached: "UPDATE referring SET taken = 1 WHERE tbl = ?1 AND key = ?2", table, key)
  }
}
