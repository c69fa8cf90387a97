import BuckiaBytes

/// Changes of one table that are written in any order and come out in the order of places given with them.
struct PlacedChanges {
  /// A place, and the change.
  private static let record = ChangesetTable(name: "", keyFlags: [1, 0])
  /// How many bytes are gathered before they are written.
  private static let writeBytes = 64 << 10

  private let buffer: TemporaryBuffer
  private let limits: ChangeSorter.Limits
  private var writer = ChangesetWriter()

  /// - Parameters:
  ///   - source: The changes are kept as this buffer is.
  ///   - limits: How much is held in memory to sort them.
  init(like source: TemporaryBuffer, limits: ChangeSorter.Limits) {
    buffer = source.makeEmpty()
    self.limits = limits
  }

  /// Whether there are no changes.
  var isEmpty: Bool { buffer.isEmpty && writer.count == 0 }

  /// Adds a change. Those of one place stay in the order in which they are added.
  mutating func add(_ change: [UInt8], at place: Int64) throws(ByteStreamError) {
    writer.beginChange(.insert)
    writer.append(integer: place)
    writer.append(blob: change)
    try flush(atLeast: Self.writeBytes)
  }

  /// Writes the changes in the order of their places.
  consuming func write(to output: TemporaryBuffer, poll: () throws -> Void) throws {
    try flush(atLeast: 1)
    var sorter = try ChangeSorter(Self.record, sections: [0..<buffer.count], of: buffer, limits: limits, poll: poll)
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

  private mutating func flush(atLeast limit: Int) throws(ByteStreamError) {
    guard writer.count >= limit else { return }
    try buffer.write(writer.bytes)
    writer.removeAll()
  }
}
