import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Drops indexes while most rows of a table are written: to create them again then takes less time than to keep them.
///
/// Everything happens in the transaction of the changes, and any failure rolls it back. Afterwards the indexes have the
/// same definitions, byte for byte, and the statistics of ANALYZE. Only the time depends on it: unique indexes stay,
/// and so do indexes that something needs meanwhile.
final class IndexRebuild {
  /// Indexes are kept for fewer changes of a table.
  private static let usualMinimum = 5_000
  /// How many UPDATEs are looked at for the columns that they change, and in how many bytes of changes.
  private static let sampledUpdates = 1_000.0
  private static let sampledBytes = 4 << 20
  /// The name under which an index is created for a try, which is never carried out.
  private static let trialName = "buckia_trial"

  private let session: ApplySession
  private let needs: IndexNeeds
  private let expected: [TableName: ApplyCounts]?
  private let minimumChanges: Int
  private let policy: IndexPolicy
  private var seen: Set<TableName> = []
  private var dropped: [SecondaryIndex] = []
  private var statistics = IndexStatistics()

  /// - Parameters:
  ///   - incoming: The changes.
  ///   - indexes: Copies of triggers that read tables while rows are written.
  ///   - seesTriggers: True if triggers of the application may fire, whose queries may use any index.
  /// - Returns: nil when the changes are few.
  /// - Throws: `SQLiteError` when the schema cannot be read, `ChangesetError` for damaged changes.
  init?(
    of incoming: IncomingChanges, keeping indexes: IndexMaintenance?, seesTriggers: Bool, in session: ApplySession
  ) throws {
    expected = try incoming.expectedCounts()
    policy = seesTriggers ? .keep : session.indexPolicy
    let minimum = policy == .rebuild ? 1 : Self.usualMinimum
    if let expected, expected.values.allSatisfy({ $0.written < minimum }) { return nil }
    minimumChanges = minimum
    self.session = session
    needs = IndexNeeds(expecting: expected, keeping: indexes, in: session)
  }

  // MARK: Before the rows are written

  /// Decides about the indexes of a table when its first changes have arrived.
  ///
  /// - Parameters:
  ///   - table: The summary of the changes so far.
  ///   - changes: The positions of some of them.
  /// - Throws: `SQLiteError` when the database fails, `ByteStreamError` when the changes cannot be read.
  func willWrite(
    _ table: ChangesetSummary.Table, into match: TableMatch, _ changes: Range<Int>, of changeset: TemporaryBuffer
  ) throws {
    let name = TableName(table.table.name)
    guard seen.insert(name).inserted, match.local.module == nil else { return }
    var counts = ApplyCounts(expecting: table)
    // The author's counts can be wrong. The file is then refused, but only after it has been read whole.
    if let claimed = expected?[name], claimed.written > counts.written { counts = claimed }
    guard counts.written >= minimumChanges else { return }
    let indexes = try SecondaryIndex.all(of: match.local, on: session.connection)
    guard !indexes.isEmpty else { return }
    let shares = try updatedShares(of: indexes, table.table, match, changes, of: changeset, expecting: counts)
    var remaining = shares.map { counts.inserted + counts.deleted + Int(2 * $0 * Double(counts.updated)) }
    if policy != .keep {
      let matchesContent = table.keyKinds.contains { $0.contains(.null) }
      let droppable = try needs.droppable(indexes, of: match.local, matchesContent: matchesContent)
      let chosen =
        try policy == .rebuild ? droppable : worthCreating(indexes, remaining, droppable, of: match.local, counts)
      for place in chosen.sorted() where try drop(indexes[place]) { remaining[place] = 0 }
    }
    // Indexes that are kept can be written all over, and all their pages should stay in memory.
    if remaining.contains(where: { $0 >= Self.usualMinimum }) {
      try session.growPageCache(to: dropped.isEmpty ? session.memoryLimit : session.memoryLimit / 2)
    }
  }

  /// For each index the share of the UPDATEs that change its columns, estimated from the first ones.
  private func updatedShares(
    of indexes: [SecondaryIndex], _ table: ChangesetTable, _ match: TableMatch, _ changes: Range<Int>,
    of changeset: TemporaryBuffer, expecting counts: ApplyCounts
  ) throws -> [Double] {
    var found = indexes.map { _ in 0.0 }
    guard counts.updated > 0 else { return found }
    let columns = indexes.map { index in match.columns.indices.filter { index.columns.contains(match.columns[$0]) } }
    let change = DecodedChange(of: table)
    let end = min(changes.upperBound, changes.lowerBound + Self.sampledBytes)
    var stretches = ChangeStretches(changes.lowerBound..<end, of: table, in: ChangesetWindow(changeset))
    var seen = 0.0
    while try seen < Self.sampledUpdates && stretches.advance() {
      stretches.window.withBytes { bytes in
        while seen < Self.sampledUpdates, let place = stretches.next(in: bytes) {
          guard place.operation == .update else { continue }
          change.read(place, in: bytes)
          seen += 1
          for index in indexes.indices where columns[index].contains(where: { change.new($0).isDefined }) {
            found[index] += 1
          }
        }
      }
    }
    return found.map { $0 / max(1, seen) }
  }

  /// The indexes that change in at least half as many entries as their table has rows afterwards.
  ///
  /// To keep an index takes a search for each entry, to create it a scan of the table and a sort.
  private func worthCreating(
    _ indexes: [SecondaryIndex], _ entries: [Int], _ droppable: Set<Int>, of table: TableDefinition,
    _ counts: ApplyCounts
  ) throws -> Set<Int> {
    let most = droppable.map { entries[$0] }.filter { $0 >= Self.usualMinimum }.max() ?? 0
    let limit = 2 * most - counts.inserted + counts.deleted
    guard most > 0, limit >= 0, let before = try table.rowCountEstimate(upTo: limit, on: session.connection) else {
      return []
    }
    let after = max(0, before + counts.inserted - counts.deleted)
    // A sort that is not to use files would use any amount of memory.
    let sortsInMemory = try session.connection.keepsTemporaryFilesInMemory
    return droppable.filter { place in
      entries[place] >= max(Self.usualMinimum, after / 2)
        && (!sortsInMemory || Double(after) * indexes[place].sortedBytes <= Double(session.memoryLimit / 2))
    }
  }

  /// Drops an index, if it can be created again.
  ///
  /// - Returns: True if the index was dropped.
  private func drop(_ index: SecondaryIndex) throws -> Bool {
    guard let creation = index.creation else { return false }
    // A function or a collating sequence may be missing here.
    guard try session.connection.failure(ofPreparing: creation.statement(named: Self.trialName)) == nil else {
      return false
    }
    var saved = statistics
    try saved.save(index.name, on: session.connection)
    let hasVirtualTables = try session.hasVirtualTables()
    let mark = try session.mark()
    do throws(SQLiteError) {
      // R-trees keep a statement running until a savepoint begins, and SQLite drops nothing meanwhile.
      if hasVirtualTables { try session.connection.execute("SAVEPOINT buckia_indexes; RELEASE buckia_indexes") }
      try session.connection.execute("DROP INDEX main.\(SQLText.identifier(index.name))")
    } catch {
      // A statement of the application's is running, or it does not let us.
      guard error.isBusy || error.isAboutTheStatement else { throw error }
      return false
    }
    try session.followIndexChange(since: mark)
    statistics = saved
    dropped.append(index)
    return true
  }

  // MARK: When the rows are written

  /// Creates the indexes again.
  ///
  /// - Parameter poll: Called at intervals. May throw to stop.
  /// - Throws: ``IndexRebuildFailure``; what `poll` throws.
  func finish(polling poll: () throws -> Void) throws {
    guard !dropped.isEmpty else { return }
    do {
      try makeRoom()
      let mark = try session.mark()
      for index in dropped {
        guard let creation = index.creation else { continue }
        try poll()
        try session.connection.execute(creation.statement, polling: poll)
      }
      try session.followIndexChange(since: mark)
      try statistics.restore(on: session.connection)
    } catch let error as SQLiteError where !error.isInterrupted {
      session.indexPolicy = .keep
      throw IndexRebuildFailure(cause: error)
    }
    dropped = []
    statistics = IndexStatistics()
  }

  /// Shares the memory between the page cache and sorting, which both may use as much as the cache.
  private func makeRoom() throws {
    let share = session.memoryLimit / 2
    if session.connection.cacheBytes > share { try session.connection.flushCache() }
    try session.usePageCache(of: share)
  }
}

/// An index could not be created again after the rows were written: there is no room to sort it, or its expression fails for a
/// row.
///
/// Nothing is wrong with the file. The transaction has to be rolled back; then the changes can be applied with all indexes
/// kept, which the session remembers.
package struct IndexRebuildFailure: Error {
  /// SQLite's error.
  package let cause: SQLiteError
}

/// Finds the indexes that are needed while changes are applied, and have to stay whatever they cost.
struct IndexNeeds {
  private let session: ApplySession
  private let indexes: IndexMaintenance?
  /// The tables whose rows may be looked for by the rows that refer to them; nil for any.
  private let parents: Set<TableName>?

  /// - Parameters:
  ///   - expected: The expected counts of each table; nil if unknown.
  ///   - indexes: Copies of triggers that read tables while rows are written.
  init(expecting expected: [TableName: ApplyCounts]?, keeping indexes: IndexMaintenance?, in session: ApplySession) {
    self.session = session
    self.indexes = indexes
    parents = expected.map { Set($0.filter { $0.value.updated + $0.value.deleted > 0 }.keys) }
  }

  /// The indexes of a table that may be dropped for a while.
  ///
  /// - Parameter matchesContent: True if rows are found by their content, for which any index can serve.
  func droppable(_ all: [SecondaryIndex], of table: TableDefinition, matchesContent: Bool) throws -> Set<Int> {
    let name = TableName(table.name)
    guard !matchesContent, !isRead(name) else { return [] }
    let references = try referringColumns(of: table)
    return Set(
      all.indices.filter { place in
        let index = all[place]
        guard !index.isUnique, let leading = index.leading ?? index.columns.min() else { return false }
        return !references.contains(leading)
      })
  }

  /// True if triggers that maintain other indexes read a table.
  private func isRead(_ table: TableName) -> Bool {
    guard let indexes else { return false }
    return indexes.copies.contains { copy in
      copy.references.sources.contains { indexes.schema.sources(of: $0).contains(table) }
    }
  }

  /// The columns by which rows of a table refer to rows that may be changed, as places in the local layout.
  private func referringColumns(of table: TableDefinition) throws -> Set<Int> {
    var columns: Set<Int> = []
    for key in table.foreignKeys where parents?.contains(TableName(key.parent)) != false {
      columns.formUnion(key.columns.compactMap { table.column(named: $0) }.map { $0 + table.columnOffset })
    }
    return columns
  }
}

/// What ANALYZE has found out about indexes: SQLite removes it together with an index, and it is put back with the new one.
///
/// See <https://sqlite.org/fileformat2.html#stat1tab> and <https://sqlite.org/lang_analyze.html>.
struct IndexStatistics {
  private var insertions: [String] = []

  /// Saves the statistics of an index that is to be dropped.
  ///
  /// - Throws: `SQLiteError` when it cannot be read.
  mutating func save(_ index: String, on connection: borrowing SQLiteConnection) throws {
    let tables = "SELECT name FROM main.sqlite_schema WHERE name GLOB 'sqlite_stat[1-4]' ORDER BY name"
    let names = try connection.rows(of: tables) { $0.text(at: 0) ?? "" }
    for name in names {
      let columns = try connection.rows(of: "SELECT name FROM pragma_table_info(?1, 'main')", name) {
        SQLText.identifier($0.text(at: 0) ?? "")
      }
      let values = columns.map { "quote(\($0))" }.joined(separator: " || ', ' || ")
      let query = "SELECT rowid || ', ' || \(values) FROM main.\(name) WHERE idx = ?1"
      try connection.forEachRow(of: query, binding: [index]) { row in
        insertions.append(
          """
          INSERT INTO main.\(name) (rowid, \(columns.joined(separator: ", "))) VALUES (\(row.text(at: 0) ?? ""))
          """)
      }
    }
  }

  /// Puts everything back, and lets this connection plan queries by it.
  ///
  /// - Throws: `SQLiteError` when it cannot be written.
  func restore(on connection: borrowing SQLiteConnection) throws(SQLiteError) {
    guard !insertions.isEmpty else { return }
    for insertion in insertions { try connection.execute(insertion) }
    // Gathers nothing, but reads the statistics again.
    try connection.execute("ANALYZE main.sqlite_schema")
  }
}
