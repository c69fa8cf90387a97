import BuckiaDiff
import SQLiteChangesets

extension DatabaseDifference {
  /// The changes as table names and bytes, sorted.
  func changes() throws -> [[UInt8]] {
    try changeset.allBytes().withRawSpan { bytes in
      var changes: [[UInt8]] = []
      var reader = ChangesetReader()
      while let change = try reader.next(in: bytes) {
        changes.append(Array((reader.table?.name ?? "").utf8) + [0] + bytes.array(change.range))
      }
      return changes.sorted { $0.lexicographicallyPrecedes($1) }
    }
  }
}
