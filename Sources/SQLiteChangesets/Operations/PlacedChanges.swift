import BuckiaBytes

/// Changes of one table that are written in any order and come out in the order of places given with them.
struct PlacedChanges {
  /// A place, and the change.
  private static let record = ChangesetTable(name: "", keyFlags: [1, 0])

  private var changes: SpooledChanges
  private let limits: ChangeSorter.Limits

  /// - Parameters:
  ///   - source: The changes are kept as this buffer is.
  ///   - limits: How much is held in memory to sort them.
  init(like source: TemporaryBuffer, limits: ChangeSorter.Limits) {
    changes = SpooledChanges(in: source.makeEmpty())
    self.limits = limits
  }

  /// True if there are no changes.
  var isEmpty: Bool { changes.count == 0 }

  /// Adds a change. Those of one place stay in the order in which they are added.
  mutating func add(_ change: [UInt8], at place: Int64) throws(ByteStreamError) {
    changes.writer.beginChange(.insert)
    changes.writer.append(integer: place)
    changes.writer.append(blob: change)
    try changes.endChange()
  }

  /// Writes the changes in the order of their places.
  consuming func write(to output: TemporaryBuffer, poll: () throws -> Void) throws {
    var sorter = try changes.sorted(as: Self.record, limits: limits, poll: poll)
    while try sorter.advance() {
      try poll()
      try sorter.bytes.withRawSpan { bytes in
        while let record = sorter.next(in: bytes) {
          var position = record.values
          _ = ValueSlice(verified: bytes, at: &position)
          try output.write(bytes.extracting(ValueSlice(verified: bytes, at: &position).payloadRange))
        }
      }
    }
  }
}
