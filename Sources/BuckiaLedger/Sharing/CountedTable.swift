import SQLiteConnections
import SQLiteSchemas

/// The numbers of rows with the same content that replicas have inserted, and of those that were deleted.
///
/// The copies that a replica has inserted are numbered from 1, and deletions take the lowest numbers first. So both numbers only grow, and
/// the counts of two replicas are merged by the greater ones, in any order and as often as one likes (an observed-remove set). Two replicas
/// that delete one of several equal rows at the same time delete the same one.
package struct CopyCounts: Equatable, Sendable {
  /// The counts of one replica's rows.
  package struct Count: Hashable, Sendable {
    /// The number of rows that the replica has inserted.
    package var inserted: Int64
    /// The number of these that any replica has deleted.
    package var deleted: Int64
    /// The number of deleted ones that only other replicas have sent, and only when they were deleted already.
    fileprivate var unseen: Int64 = 0
    /// The number of deleted ones that were numbered before these.
    fileprivate var unseenFrom: Int64 = 0

    /// Creates the counts of one replica.
    package init(inserted: Int64, deleted: Int64) {
      self.inserted = inserted
      self.deleted = deleted
    }

    fileprivate var present: Int64 { max(0, inserted - deleted) }

    /// The counts with those that a diff states.
    ///
    /// Deletions of rows that were never heard of as present do not hide such rows: if others have them, they are
    /// present until their deletion is stated again.
    ///
    /// - Parameter isOwn: True if the replica itself states them.
    fileprivate func merging(_ other: Count, isOwn: Bool) -> Count {
      // Those that are not deleted in the diff.
      let open = max(0, min(unseen, deleted - other.deleted))
      var known = self
      if isOwn {
        known.unseen = open
        known.unseenFrom += unseen - open
      }
      if max(inserted, other.inserted) - max(deleted, other.deleted) < other.present {
        known.inserted -= open
        known.deleted -= open
        known.unseen -= open
      }
      var merged = Count(
        inserted: max(known.inserted, other.inserted), deleted: max(known.deleted, other.deleted))
      let last = max(known.inserted, known.deleted)
      merged.unseen = known.unseen + (isOwn ? 0 : max(0, merged.deleted - last))
      merged.unseenFrom = known.unseen == 0 ? last : known.unseenFrom
      return merged
    }

    /// The counts as shares state them: without the last rows if those are deleted and have not been seen.
    fileprivate var stated: Count {
      guard unseen > 0, unseenFrom + unseen == inserted, inserted == deleted else { return self }
      return Count(inserted: unseenFrom, deleted: unseenFrom)
    }
  }

  /// The greatest count that a diff can state.
  private static let limit: Int64 = 1 << 40

  /// The counts by the incarnation of the replica that has inserted the rows.
  package private(set) var byOrigin: [[UInt8]: Count]

  /// Creates the counts by replica.
  package init(_ byOrigin: [[UInt8]: Count] = [:]) { self.byOrigin = byOrigin }

  /// The number of rows.
  package var present: Int64 { byOrigin.values.reduce(0) { $0 + $1.present } }

  /// The number of present rows of one replica.
  package func present(of origin: [UInt8]) -> Int64 { byOrigin[origin]?.present ?? 0 }

  /// The counts as shares state them.
  package var stated: CopyCounts {
    let stated = byOrigin.mapValues(\.stated).filter { $0.value.inserted > 0 }
    return stated.isEmpty ? self : CopyCounts(stated)
  }

  /// Merges the counts that a diff states.
  ///
  /// Other replicas may say of rows that they are deleted before the rows themselves arrive. They hide only rows of
  /// whose deletion the replica that has inserted them tells itself, or that were present here.
  ///
  /// - Parameters:
  ///   - author: The incarnation that states them; nil if unknown.
  ///   - own: The incarnation of this database, about whose rows other replicas know no more than its diffs say.
  ///   - limit: The number of rows that may be added. More are not counted, so that they are added when they come again.
  package mutating func merge(_ stated: CopyCounts, from author: [UInt8]?, own: [UInt8]?, adding limit: Int64) {
    var room = limit
    let inOrder = stated.byOrigin.sorted {
      $0.key == author || $1.key != author && $0.key.lexicographicallyPrecedes($1.key)
    }
    for (origin, count) in inOrder {
      let known = byOrigin[origin] ?? Count(inserted: 0, deleted: 0)
      var merged: Count
      if origin == own {
        merged = known
        merged.deleted = max(known.deleted, min(count.deleted, known.inserted))
      } else {
        merged = known.merging(count, isOwn: origin == author)
      }
      let more = max(0, merged.present - known.present)
      merged.inserted -= max(0, more - room)
      room = max(0, room - more)
      byOrigin[origin] = merged
    }
  }

  /// Adds the counts of another content that has become equal.
  fileprivate mutating func add(_ others: CopyCounts) {
    byOrigin.merge(others.byOrigin) {
      var sum = Count(
        inserted: min(Self.limit, $0.inserted + $1.inserted), deleted: min(Self.limit, $0.deleted + $1.deleted))
      sum.unseen = min(sum.deleted, $0.unseen + $1.unseen)
      return sum
    }
  }

  /// Counts rows that a replica has inserted.
  package mutating func insert(_ rows: Int64, by origin: [UInt8]) {
    let known = byOrigin[origin]?.inserted ?? 0
    byOrigin[origin, default: Count(inserted: 0, deleted: 0)].inserted = min(Self.limit, known + rows)
  }

  /// Counts deleted rows: those of the lowest origin first, because all replicas must choose alike.
  ///
  /// - Parameter origins: The replicas whose rows they are; nil for all.
  package mutating func delete(_ rows: Int64, of origins: Set<[UInt8]>? = nil) {
    var left = rows
    for (origin, count) in byOrigin.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) })
    where left > 0 && origins?.contains(origin) != false {
      let taken = min(left, count.present)
      byOrigin[origin]?.deleted += taken
      left -= taken
    }
  }
}

/// A table with rows that their content identifies, in `buckia_counted_table`, `buckia_counted_row`,
/// `buckia_counted_copies` and `buckia_counted_holder`: one without a key, or with NULL in it.
package final class CountedTable {
  static let definition = """
    CREATE TABLE main.buckia_counted_table(
      counted INTEGER PRIMARY KEY,
      table_name TEXT NOT NULL UNIQUE COLLATE NOCASE,
      columns TEXT NOT NULL
    );
    CREATE TABLE main.buckia_counted_row(
      content INTEGER PRIMARY KEY,
      counted INTEGER NOT NULL,
      "row" BLOB NOT NULL,
      absent INTEGER NOT NULL,
      UNIQUE (counted, "row")
    );
    CREATE TABLE main.buckia_counted_copies(
      content INTEGER NOT NULL,
      origin BLOB NOT NULL,
      inserted INTEGER NOT NULL,
      deleted INTEGER NOT NULL,
      unseen INTEGER NOT NULL,
      unseen_from INTEGER NOT NULL,
      PRIMARY KEY (content, origin)
    ) WITHOUT ROWID;
    CREATE TABLE main.buckia_counted_holder(
      holder TEXT NOT NULL,
      content INTEGER NOT NULL,
      PRIMARY KEY (holder, content)
    ) WITHOUT ROWID;
    """

  /// A content that rows have, or had.
  package struct Content {
    fileprivate let number: Int64
    /// The number of rows.
    package var counts: CopyCounts
    /// The number of rows that the table lacks although they were not deleted here: they were refused, or withdrawn.
    package var absent: Int64
  }

  private let number: Int64
  private let name: TableName
  private let connection: SQLiteConnection
  /// The columns that contents are of, as a document.
  package let columns: String

  /// Reads the entry of a table; nil for none.
  ///
  /// - Throws: `SQLiteError`.
  package init?(_ name: TableName, on connection: borrowing SQLiteConnection) throws {
    let query = "SELECT counted, columns FROM main.buckia_counted_table WHERE table_name = ?1"
    let found = try connection.first(ofCached: query, name.text) { ($0.integer(at: 0), $0.text(at: 1) ?? "") }
    guard let found else { return nil }
    (number, columns) = found
    self.name = name
    self.connection = SQLiteConnection(sharing: connection)
  }

  /// Begins to count the rows of a table.
  ///
  /// - Parameter columns: The columns that contents are of, as a document.
  /// - Throws: `SQLiteError`.
  package init(making name: TableName, columns: String, on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: "INSERT INTO main.buckia_counted_table(table_name, columns) VALUES (?1, ?2)", name.text, columns)
    number = try connection.cachedInteger("SELECT last_insert_rowid()") ?? 0
    self.name = name
    self.columns = columns
    self.connection = SQLiteConnection(sharing: connection)
  }

  // MARK: Contents

  /// Finds a content; nil if no row has had it.
  ///
  /// - Parameter row: The values, in the format of changesets.
  /// - Throws: `SQLiteError`.
  package func content(_ row: [UInt8]) throws -> Content? {
    try connection.first(
      ofCached: "SELECT content, absent FROM main.buckia_counted_row WHERE counted = ?1 AND \"row\" = ?2", number, row
    ) { found in
      let number = found.integer(at: 0)
      return Content(number: number, counts: try counts(of: number), absent: found.integer(at: 1))
    }
  }

  private func counts(of content: Int64) throws -> CopyCounts {
    var found: [[UInt8]: CopyCounts.Count] = [:]
    try connection.forEachRow(
      ofCached: """
        SELECT origin, inserted, deleted, unseen, unseen_from FROM main.buckia_counted_copies WHERE content = ?1
        """,
      binding: [content]
    ) { row in
      var count = CopyCounts.Count(inserted: row.integer(at: 1), deleted: row.integer(at: 2))
      count.unseen = row.integer(at: 3)
      count.unseenFrom = row.integer(at: 4)
      found[row.blob(at: 0)] = count
    }
    return CopyCounts(found)
  }

  /// Begins to count the rows with a content.
  ///
  /// - Throws: `SQLiteError`.
  package func make(_ row: [UInt8]) throws -> Content {
    try connection.run(
      cached: "INSERT INTO main.buckia_counted_row(counted, \"row\", absent) VALUES (?1, ?2, 0)", number, row)
    return Content(
      number: try connection.cachedInteger("SELECT last_insert_rowid()") ?? 0, counts: CopyCounts(), absent: 0)
  }

  /// Stores the counts of a content if they have changed.
  ///
  /// - Throws: `SQLiteError`.
  package func write(_ content: Content, over known: Content) throws {
    for (origin, count) in content.counts.byOrigin where known.counts.byOrigin[origin] != count {
      try connection.run(
        cached: "INSERT OR REPLACE INTO main.buckia_counted_copies VALUES (?1, ?2, ?3, ?4, ?5, ?6)", content.number,
        origin, count.inserted, count.deleted, count.unseen, count.unseenFrom)
    }
    guard content.absent != known.absent else { return }
    try connection.run(
      cached: "UPDATE main.buckia_counted_row SET absent = ?2 WHERE content = ?1", content.number, content.absent)
  }

  // MARK: Holders

  /// Records that a holder has, or has had, rows with a content.
  ///
  /// - Parameter holder: The key with which they sign, or the name of a share.
  /// - Throws: `SQLiteError`.
  package func note(_ content: Content, at holder: String) throws {
    try connection.run(
      cached: "INSERT OR IGNORE INTO main.buckia_counted_holder VALUES (?1, ?2)", holder, content.number)
  }

  /// True if a holder has, or has had, rows with a content.
  ///
  /// - Throws: `SQLiteError`.
  package func isHeld(_ content: Content, by holder: String) throws -> Bool {
    try connection.hasRow(
      cached: "SELECT 1 FROM main.buckia_counted_holder WHERE holder = ?1 AND content = ?2", holder, content.number)
  }

  /// The holders that have, or have had, rows with a content.
  ///
  /// - Throws: `SQLiteError`.
  package func holders(of content: Content) throws -> Set<String> {
    Set(
      try connection.rows(
        ofCached: "SELECT holder FROM main.buckia_counted_holder WHERE content = ?1 AND holder NOT LIKE 'share:%'",
        content.number
      ) { $0.text(at: 0) ?? "" })
  }

  /// The tables of which a holder has, or has had, rows.
  ///
  /// - Throws: `SQLiteError`.
  package static func names(heldBy holder: String, on connection: borrowing SQLiteConnection) throws -> [TableName] {
    try connection.rows(
      of: """
        SELECT DISTINCT t.table_name FROM main.buckia_counted_holder AS h JOIN main.buckia_counted_row AS c USING (content)
        JOIN main.buckia_counted_table AS t USING (counted) WHERE h.holder = ?1 ORDER BY 1
        """, holder
    ) { TableName($0.text(at: 0) ?? "") }
  }

  /// Calls `body` with the contents of some holders, in the format of changesets.
  ///
  /// - Throws: `SQLiteError`; what `body` throws.
  package func forEachContent(heldBy holders: Set<String>, _ body: ([UInt8]) throws -> Void) throws {
    for holder in holders.sorted() {
      try connection.forEachRow(
        of: """
          SELECT c."row" FROM main.buckia_counted_holder AS h JOIN main.buckia_counted_row AS c USING (content)
          WHERE h.holder = ?1 AND c.counted = ?2
          """, binding: [holder, number]
      ) { try body($0.blob(at: 0)) }
    }
  }

  /// Moves all rows of one holder to another.
  ///
  /// - Throws: `SQLiteError`.
  package static func rename(_ holder: String, to other: String, on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: "UPDATE OR REPLACE main.buckia_counted_holder SET holder = ?2 WHERE holder = ?1", holder, other)
  }

  // MARK: Columns

  /// Converts all contents to other columns. The counts of contents that become equal are added.
  ///
  /// - Parameters:
  ///   - columns: The columns, as a document.
  ///   - changed: Converts a content to the other columns.
  /// - Throws: `SQLiteError`; what `changed` throws.
  package func setColumns(_ columns: String, _ changed: ([UInt8]) throws -> [UInt8]) throws {
    try connection.run(cached: "UPDATE main.buckia_counted_table SET columns = ?2 WHERE counted = ?1", number, columns)
    let other = try CountedTable(making: TableName("buckia_counted"), columns: columns, on: connection)
    let all = try connection.prepare("SELECT content, \"row\", absent FROM main.buckia_counted_row WHERE counted = ?1")
    try all.bind(number, at: 0)
    while try all.step() {
      let known = Content(
        number: all.integer(at: 0), counts: try counts(of: all.integer(at: 0)), absent: all.integer(at: 2))
      let row = try changed(all.blob(at: 1))
      let made = try other.content(row) ?? other.make(row)
      var content = made
      content.counts.add(known.counts)
      content.absent += known.absent
      try other.write(content, over: made)
      try connection.run(
        cached: """
          INSERT OR IGNORE INTO main.buckia_counted_holder
          SELECT holder, ?2 FROM main.buckia_counted_holder WHERE content = ?1
          """, known.number, content.number)
    }
    all.reset()
    for statement in [
      "DELETE FROM main.buckia_counted_holder WHERE content IN (SELECT content FROM main.buckia_counted_row WHERE counted = ?1)",
      "DELETE FROM main.buckia_counted_copies WHERE content IN (SELECT content FROM main.buckia_counted_row WHERE counted = ?1)",
      "DELETE FROM main.buckia_counted_row WHERE counted = ?1",
    ] { try connection.run(cached: statement, number) }
    try connection.run(
      cached: "UPDATE main.buckia_counted_row SET counted = ?1 WHERE counted = ?2", number, other.number)
    try connection.run(cached: "DELETE FROM main.buckia_counted_table WHERE counted = ?1", other.number)
    try RowNotes.changeUnsentContents(of: name, changed, on: connection)
  }
}
