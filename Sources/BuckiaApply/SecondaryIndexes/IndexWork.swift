import BuckiaLedger
import SQLiteChangesets

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

  /// Whether enough changes of an operation have been added.
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
  ///   - isSorted: Whether the changes are put in the order of their keys before they are written.
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
