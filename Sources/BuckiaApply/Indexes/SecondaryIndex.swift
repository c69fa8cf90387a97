import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// An index of a table beside its primary key.
struct SecondaryIndex {
  let name: String
  /// True if no two rows may have the same place in it: then it is more than a way to find rows.
  let isUnique: Bool
  /// The columns that it depends on, as places in the local layout of the table: those of its expressions and its condition
  /// among them.
  let columns: Set<Int>
  /// The column by which it is sorted first, as a place in the local layout; nil for an expression or a generated column.
  let leading: Int?
  /// How many values an entry has, without what tells the row apart.
  let width: Int
  /// How to create it again; nil when that would not give the very same index.
  let creation: IndexCreation?

  /// Reads the indexes of a table, in the order in which they were created.
  ///
  /// - Throws: `SQLiteError` when the schema cannot be read.
  static func all(of table: TableDefinition, on connection: borrowing SQLiteConnection) throws -> [SecondaryIndex] {
    let query = """
      SELECT i.name, i.sql, l."unique" FROM main.sqlite_schema AS i, pragma_index_list(?1, 'main') AS l
      WHERE i.type = 'index' AND i.name = l.name AND l.origin <> 'pk' ORDER BY i.rowid
      """
    var found: [(name: String, isUnique: Bool, creation: IndexCreation?)] = []
    try connection.forEachRow(of: query, binding: [table.name]) { row in
      let isUnique = row.integer(at: 2) != 0
      let name = row.text(at: 0) ?? ""
      // Text that is no valid UTF-8 would not be the same afterwards.
      let isText = row.isWellFormedText(at: 0) && row.isWellFormedText(at: 1)
      let sql = isText && !isUnique ? row.text(at: 1) : nil
      found.append((name, isUnique, sql.flatMap { IndexCreation($0, of: name) }))
    }
    var indexes: [SecondaryIndex] = []
    for index in found {
      indexes.append(
        try SecondaryIndex(index.name, isUnique: index.isUnique, index.creation, of: table, on: connection))
    }
    return indexes
  }

  private init(
    _ name: String, isUnique: Bool, _ creation: IndexCreation?, of table: TableDefinition,
    on connection: borrowing SQLiteConnection
  ) throws {
    let query = "SELECT name FROM pragma_index_xinfo(?1, 'main') WHERE key"
    let members = try connection.rows(of: query, name) { row in
      row.text(at: 0).flatMap { table.column(named: $0) }.map { $0 + table.columnOffset }
    }
    let names = creation?.references.names ?? []
    let named = table.columns.indices.filter { names.contains(TableName(table.columns[$0].name)) }
    self.name = name
    self.isUnique = isUnique
    self.creation = creation
    columns = Set(members.compactMap(\.self)).union(named.map { $0 + table.columnOffset })
    leading = members.first ?? nil
    width = max(1, members.count)
  }
}

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

  /// True if sorting needs temporary files.
  func needsFiles(_ index: SecondaryIndex, rows: Double) -> Bool { rows * Self.entryBytes(index) > sortBytes }

  /// True to create an index again.
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

/// What the changes of a table do to one of its indexes.
struct IndexWork {
  /// How many entries are added and removed.
  var entries: Double
  /// The share of them, from 0 to 1, that lie all over the index. The others lie next to one before them, as those of
  /// ascending or few different values do.
  var scatter: Double
}

/// Some changes of a table, from which the work on its indexes is estimated.
struct IndexWorkSample {
  /// How many changes of each operation are looked at.
  static let size = 1_000

  private let indexes: [SecondaryIndex]
  /// For each index the columns of the changeset that it depends on, the first being the one it is sorted by.
  private let columns: [[Int]]
  /// The first column of the key.
  private let key: Int?
  private var tallies: [ChangeOperation: Tally] = [:]

  /// The changes of one operation.
  private struct Tally {
    var changes = 0
    /// For each index.
    var neighbours: [Neighbours]
  }

  /// - Parameters:
  ///   - table: The table of the changes.
  ///   - places: For each of its columns, the place in the local layout.
  init(_ indexes: [SecondaryIndex], of table: ChangesetTable, places: [Int]) {
    self.indexes = indexes
    key = table.keyFlags.firstIndex { $0 != 0 }
    columns = indexes.map { index in
      let members = places.indices.filter { index.columns.contains(places[$0]) }
      return members.sorted { first, second in
        (places[first] == index.leading ? 0 : 1, first) < (places[second] == index.leading ? 0 : 1, second)
      }
    }
  }

  /// True if enough changes of an operation have been added.
  func hasEnough(of operation: ChangeOperation) -> Bool { tallies[operation]?.changes ?? 0 >= Self.size }

  /// Adds a change.
  mutating func add(_ change: DecodedChange, _ bytes: RawSpan) {
    let operation = change.operation
    var tally = tallies[operation] ?? Tally(neighbours: indexes.map { _ in Neighbours() })
    tally.changes += 1
    let rowKey = key.map { IndexedValue(change.row($0), in: bytes) }
    for index in indexes.indices {
      let value = columns[index].lazy.map { operation == .delete ? change.old($0) : change.new($0) }.first(
        where: \.isDefined)
      if let value { tally.neighbours[index].add(IndexedValue(value, in: bytes), rowKey) }
    }
    tallies[operation] = tally
  }

  /// The work on an index.
  ///
  /// - Parameters:
  ///   - index: The index, by its place.
  ///   - expected: How many changes there are of each operation. Of UPDATEs of which none was seen, none counts.
  ///   - isSorted: True if the changes are put in the order of their keys before they are written.
  func work(on index: Int, expecting expected: ApplyCounts, isSorted: Bool) -> IndexWork {
    var work = IndexWork(entries: 0, scatter: 0)
    func add(_ entries: Double, _ operation: ChangeOperation) {
      work.entries += entries
      work.scatter += entries * (tallies[operation]?.neighbours[index].scatter(isSorted: isSorted) ?? 0)
    }
    add(Double(expected.inserted), .insert)
    add(Double(expected.deleted), .delete)
    if let updates = tallies[.update], updates.changes > 0 {
      let share = Double(updates.neighbours[index].count) / Double(updates.changes)
      // The old entry goes, and a new one comes.
      add(2 * share * Double(expected.updated), .update)
    }
    if work.entries > 0 { work.scatter /= work.entries }
    return work
  }
}

/// Values of consecutive changes, by which an index is sorted, with the keys of their rows.
private struct Neighbours {
  private var entries: [(value: IndexedValue, key: IndexedValue?)] = []

  var count: Int { entries.count }

  mutating func add(_ value: IndexedValue, _ key: IndexedValue?) { entries.append((value, key)) }

  /// How much the values jump: 1 for random ones, 0 for a sorted list and for equal ones.
  func scatter(isSorted: Bool) -> Double {
    guard count > 1 else { return 0 }
    var values = entries.map(\.value)
    if isSorted {
      values = entries.sorted { first, second in
        if let first = first.key, let second = second.key { first < second } else { false }
      }.map(\.value)
    }
    let ascents = zip(values, values.dropFirst()).count { $0 <= $1 }
    let ascending = Double(ascents) / Double(count - 1)
    return min(1, 2 * min(ascending, 1 - ascending)) * Double(Set(values).count) / Double(count)
  }
}

/// A value as an index sorts it, as far as an estimate needs it.
private struct IndexedValue: Hashable, Comparable {
  /// How many bytes of text or a blob are compared.
  private static let prefix = 64

  private let rank: UInt8
  private let number: Double
  private let bytes: [UInt8]

  init(_ value: ValueSlice, in span: RawSpan) {
    var number = 0.0
    var bytes: [UInt8] = []
    switch value.kind {
    case .undefined, .null: rank = 0
    case .integer:
      rank = 1
      number = Double(value.integer(in: span))
    case .real:
      rank = 1
      number = value.real(in: span)
    case .text, .blob:
      rank = value.kind == .text ? 2 : 3
      let start = value.payloadRange.lowerBound
      let end = min(value.payloadRange.upperBound, start + Self.prefix)
      // Sound: the slice lies inside the bytes that it was read from.
      bytes = span.extracting(start..<end).withUnsafeBytes { Array($0) }
    }
    self.number = number
    self.bytes = bytes
  }

  static func < (first: IndexedValue, second: IndexedValue) -> Bool {
    if first.rank != second.rank { return first.rank < second.rank }
    if first.number != second.number { return first.number < second.number }
    return first.bytes.lexicographicallyPrecedes(second.bytes)
  }
}

extension TableDefinition {
  /// How many rows the table has, or a few more.
  ///
  /// SQLite keeps no count. Two look-ups tell that there are at most so many where rowids are dense; otherwise rows are
  /// counted, and no more than are of interest.
  ///
  /// - Parameter limit: Where counting ends.
  /// - Returns: nil when there are more than `limit`.
  /// - Throws: `SQLiteError` when the table cannot be read.
  func rowCountEstimate(upTo limit: Int, on connection: borrowing SQLiteConnection) throws(SQLiteError) -> Int? {
    let table = "main.\(SQLText.identifier(name))"
    if !isWithoutRowID, let rowID = rowIDName {
      // As numbers with a fraction, which do not overflow. The sum of both ends would be a scan.
      let span = try connection.prepare(
        "SELECT (SELECT max(\(rowID)) FROM \(table)) * 1.0 - (SELECT min(\(rowID)) FROM \(table)) + 1")
      guard try span.step(), !span.isNull(at: 0) else { return 0 }
      if span.real(at: 0) <= Double(limit) { return Int(span.real(at: 0)) }
    }
    let count = try connection.integer("SELECT count(*) FROM (SELECT 1 FROM \(table) LIMIT \(limit + 1))") ?? 0
    return count <= limit ? Int(count) : nil
  }
}
