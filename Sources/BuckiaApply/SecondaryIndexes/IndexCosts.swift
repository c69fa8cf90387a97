/// Estimates whether it takes less time to create an index again than to keep it while the rows of its table are written.
///
/// To keep it takes a search for each entry, and a page that is read and written again for most of them once the indexes no
/// longer fit in the page cache. To create it takes a scan of the whole table and a sort. So it pays where much of a table
/// changes. The numbers are microseconds, measured with SQLite 3.40 on tables of 300,000 and a million rows; only their ratios
/// matter.
struct IndexCosts {
  /// An entry that is added or removed next to one before it.
  private static let adjacentEntry = 0.4
  /// One anywhere in the index.
  private static let scatteredEntry = 1.0
  /// What comes on top where its page is not in the processor's cache.
  private static let processorMiss = 1.2
  /// How many bytes of indexes the processor's cache holds.
  private static let processorCacheBytes = 8.0 * 1_048_576
  /// What comes on top where its page is not in the page cache: it is read, and another one is written.
  private static let pageMiss = 4.0
  /// A row of the table, read and added to the new index.
  private static let createdEntry = 0.35
  /// What it takes to sort it.
  private static let sortedEntry = 0.6
  /// What comes on top where the sort does not fit in memory.
  private static let spilledEntry = 0.5
  /// An entry of the old index, whose pages are freed.
  private static let droppedEntry = 0.2
  /// What it takes to prepare all statements of the table again.
  private static let fixedCost = 1_000.0
  /// How many times as much keeping must cost: an estimate can be wrong, and then nothing must be lost.
  private static let margin = 1.25

  /// Memory for the page cache while rows are written, in bytes.
  let cacheBytes: Double
  /// Memory for sorting, in bytes.
  let sortBytes: Double
  /// How many bytes all indexes have that the changes scatter entries over.
  var scatteredBytes = 0.0

  /// How many bytes an entry takes up, with room for more in its page.
  static func entryBytes(_ index: SecondaryIndex) -> Double { 1.4 * Double(12 + 14 * index.width) }

  /// What it takes to keep an index.
  func keeping(_ work: IndexWork) -> Double { keeping(work, scatteredBytes: scatteredBytes) }

  private func keeping(_ work: IndexWork, scatteredBytes: Double) -> Double {
    // The share of scattered entries that are not in a cache.
    func misses(_ bytes: Double) -> Double { scatteredBytes > bytes ? 1 - bytes / scatteredBytes : 0 }
    let scattered =
      Self.scatteredEntry + misses(Self.processorCacheBytes) * Self.processorMiss + misses(cacheBytes) * Self.pageMiss
    return work.entries * (Self.adjacentEntry * (1 - work.scatter) + scattered * work.scatter)
  }

  /// What it takes to drop an index and to create it again.
  ///
  /// - Parameters:
  ///   - work: What the changes do to it: rows that lie in its order take less to sort.
  ///   - before: How many rows the table has before the changes.
  ///   - after: How many it has afterwards.
  func creating(_ index: SecondaryIndex, _ work: IndexWork, rows before: Double, after: Double) -> Double {
    let spilling = needsFiles(index, rows: after) ? Self.spilledEntry : 0
    return Self.fixedCost + before * Self.droppedEntry
      + after * (Self.createdEntry + work.scatter * Self.sortedEntry + spilling)
  }

  /// Whether sorting needs temporary files.
  func needsFiles(_ index: SecondaryIndex, rows: Double) -> Bool { rows * Self.entryBytes(index) > sortBytes }

  /// Whether to create an index again.
  func favoursCreating(_ index: SecondaryIndex, _ work: IndexWork, rows before: Double, after: Double) -> Bool {
    keeping(work) > Self.margin * creating(index, work, rows: before, after: after)
  }

  /// The most rows that a table can have for it to pay.
  ///
  /// - Parameter bytes: The size of the database: its indexes have no more.
  func rowLimit(_ work: IndexWork, databaseBytes bytes: Double) -> Int {
    let most = keeping(work, scatteredBytes: bytes) / Self.margin - Self.fixedCost
    return most <= 0 ? 0 : Int(min(most / (Self.createdEntry + work.scatter * Self.sortedEntry), 1e12))
  }
}
