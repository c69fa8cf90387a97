import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Drops indexes while many rows are written, where it takes less time to create them again than to keep them.
///
/// Everything happens in the transaction of the changes, so whatever fails takes it back. Afterwards the indexes have the
/// same definitions, byte for byte, and the statistics of ANALYZE. Nothing but the time depends on it: unique indexes stay,
/// and so do those that something needs meanwhile.
final class IndexRebuild {
  /// Fewer changes of a table are not worth a thought.
  private static let usualMinimum = 5_000
  /// How many bytes of changes are searched for those to be looked at.
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
  ///   - seesTriggers: True if triggers of the application may fire: they can ask for anything.
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

  /// Decides about the indexes of a table, when its first changes are there.
  ///
  /// - Parameters:
  ///   - table: What is known of the changes so far.
  ///   - changes: Where some of them stand.
  ///   - isSorted: True if they are put in the order of their keys before they are written.
  /// - Throws: `SQLiteError` when the database fails, `ByteStreamError` when the changes cannot be read.
  func willWrite(
    _ table: ChangesetSummary.Table, into match: TableMatch, _ changes: Range<Int>, of changeset: TemporaryBuffer,
    isSorted: Bool
  ) throws {
    let name = TableName(table.table.name)
    guard seen.insert(name).inserted, match.local.module == nil else { return }
    var counts = ApplyCounts(expecting: table)
    // What the author says can be wrong; then the file is refused, but not before it has been seen whole.
    if let claimed = expected?[name], claimed.written > counts.written { counts = claimed }
    guard counts.written >= minimumChanges else { return }
    let indexes = try SecondaryIndex.all(of: match.local, on: session.connection)
    guard !indexes.isEmpty else { return }
    let sample = try sample(indexes, table.table, match, changes, of: changeset, expecting: counts)
    let works = indexes.indices.map { sample.work(on: $0, expecting: counts, isSorted: isSorted) }
    var remaining = works
    if policy != .keep {
      let matchesContent = table.keyKinds.contains { $0.contains(.null) }
      let droppable = try needs.droppable(indexes, of: match.local, matchesContent: matchesContent)
      let chosen =
        try policy == .rebuild ? droppable : cheaperToCreate(indexes, works, droppable, of: match.local, counts)
      for place in chosen.sorted() {
        if try drop(indexes[place]) { remaining[place].entries = 0 }
      }
    }
    // Indexes that are kept are written all over, and all pages should stay in memory.
    if remaining.contains(where: { $0.entries * $0.scatter >= Double(Self.usualMinimum) }) {
      try session.growPageCache(to: dropped.isEmpty ? session.memoryLimit : session.memoryLimit / 2)
    }
  }

  /// Looks at some changes of a table.
  private func sample(
    _ indexes: [SecondaryIndex], _ table: ChangesetTable, _ match: TableMatch, _ changes: Range<Int>,
    of changeset: TemporaryBuffer, expecting counts: ApplyCounts
  ) throws -> IndexWorkSample {
    var sample = IndexWorkSample(indexes, of: table, places: match.columns)
    var wanted: Set<ChangeOperation> = []
    if counts.inserted > 0 { wanted.insert(.insert) }
    if counts.updated > 0 { wanted.insert(.update) }
    if counts.deleted > 0 { wanted.insert(.delete) }
    let change = DecodedChange(of: table)
    let end = min(changes.upperBound, changes.lowerBound + Self.sampledBytes)
    var stretches = ChangeStretches(changes.lowerBound..<end, of: table, in: ChangesetWindow(changeset))
    while try !wanted.isEmpty && stretches.advance() {
      stretches.window.withBytes { bytes in
        while !wanted.isEmpty, let place = stretches.next(in: bytes) {
          guard wanted.contains(place.operation) else { continue }
          change.read(place, in: bytes)
          sample.add(change, bytes)
          if sample.hasEnough(of: place.operation) { wanted.remove(place.operation) }
        }
      }
    }
    return sample
  }

  /// The indexes that are better created again.
  private func cheaperToCreate(
    _ indexes: [SecondaryIndex], _ works: [IndexWork], _ droppable: Set<Int>, of table: TableDefinition,
    _ counts: ApplyCounts
  ) throws -> Set<Int> {
    var costs = IndexCosts(cacheBytes: Double(session.memoryLimit), sortBytes: Double(session.memoryLimit / 2))
    let databaseBytes = try Double(
      (session.connection.integer("PRAGMA main.page_count") ?? 0)
        * (session.connection.integer("PRAGMA main.page_size") ?? 0))
    let growth = indexes.reduce(0) { $0 + IndexCosts.entryBytes($1) } * Double(counts.inserted)
    let limit = droppable.map { costs.rowLimit(works[$0], databaseBytes: databaseBytes + growth) }.max() ?? 0
    guard limit > 0, let before = try table.rowCountEstimate(upTo: limit, on: session.connection) else { return [] }
    let after = Double(max(0, before + counts.inserted - counts.deleted))
    for (index, work) in zip(indexes, works) where work.entries > 0 {
      costs.scatteredBytes += work.scatter * after * IndexCosts.entryBytes(index)
    }
    let sortsInMemory = try session.connection.keepsTemporaryFilesInMemory
    return droppable.filter { place in
      // A sort that is not to use files would use any amount of memory.
      (!sortsInMemory || !costs.needsFiles(indexes[place], rows: after))
        && costs.favoursCreating(indexes[place], works[place], rows: Double(before), after: after)
    }
  }

  /// Drops an index, if it can be created again.
  ///
  /// - Returns: True if it is gone.
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
  /// - Parameter poll: Is asked now and then whether to go on. May throw to stop.
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
  /// What SQLite said.
  package let cause: SQLiteError
}

/// Which indexes are needed while changes are applied, so that they have to stay whatever keeping them takes.
struct IndexNeeds {
  private let session: ApplySession
  private let indexes: IndexMaintenance?
  /// The tables whose rows may be looked for by the rows that refer to them; nil for any.
  private let parents: Set<TableName>?

  /// - Parameters:
  ///   - expected: How many changes there will be of each table; nil where that is not known.
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

  /// Takes over what is known about an index that is to be dropped.
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
