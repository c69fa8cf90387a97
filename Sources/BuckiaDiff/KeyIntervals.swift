import SQLiteChangesets
import SQLiteConnections
import SQLiteFiles
import SQLiteSchemas

/// The intervals of an integer key in which rows may differ.
package struct KeyIntervals: Equatable, Sendable {
  /// In ascending order, and apart from each other.
  package let ranges: [ClosedRange<Int64>]

  /// Creates intervals from any ranges.
  package init(_ ranges: [ClosedRange<Int64>]) {
    var merged: [ClosedRange<Int64>] = []
    for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
      if let last = merged.last, last.upperBound == .max || range.lowerBound <= last.upperBound + 1 {
        merged[merged.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
      } else {
        merged.append(range)
      }
    }
    self.ranges = merged
  }

  /// True if a key is in one of them.
  package func contains(_ key: Int64) -> Bool {
    var (low, high) = (0, ranges.count)
    while low < high {
      let middle = (low + high) / 2
      if ranges[middle].upperBound < key { low = middle + 1 } else { high = middle }
    }
    return low < ranges.count && ranges[low].lowerBound <= key
  }

  /// The keys of the rows on leaves that are not in both lists.
  ///
  /// A leaf covers the keys from its first one up to that of the next leaf; the first leaf also covers all smaller
  /// keys. A row is therefore on an equal leaf in both states, or its key is in one of the intervals.
  ///
  /// - Parameters:
  ///   - older: The earlier leaves; the hash is nil if it is unknown.
  ///   - newer: The present leaves.
  package init(from older: [(firstRowID: Int64, hash: PageHash?)], to newer: [LeafDigest]) {
    var ranges: [ClosedRange<Int64>] = []
    func range(_ index: Int, _ count: Int, _ first: (Int) -> Int64) -> ClosedRange<Int64> {
      (index == 0 ? .min : first(index))...(index + 1 < count ? first(index + 1) - 1 : .max)
    }
    var (old, new) = (0, 0)
    while old < older.count || new < newer.count {
      let isOldNext = new == newer.count || old < older.count && older[old].firstRowID <= newer[new].firstRowID
      let isNewNext = old == older.count || new < newer.count && newer[new].firstRowID <= older[old].firstRowID
      if !(isOldNext && isNewNext && older[old].hash == newer[new].hash) {
        if isOldNext { ranges.append(range(old, older.count) { older[$0].firstRowID }) }
        if isNewNext { ranges.append(range(new, newer.count) { newer[$0].firstRowID }) }
      }
      if isOldNext { old += 1 }
      if isNewNext { new += 1 }
    }
    self.init(ranges)
  }
}
