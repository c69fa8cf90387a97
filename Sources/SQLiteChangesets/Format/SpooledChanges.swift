import BuckiaBytes

/// Changes of one table that are gathered in memory and written to a buffer, many at a time.
///
/// ```swift
/// var changes = SpooledChanges(in: TemporaryBuffer())
/// changes.writer.beginChange(.insert)
/// changes.writer.append(integer: 1)
/// try changes.endChange()
/// try changes.flush()
/// ```
package struct SpooledChanges {
  /// What has been gathered.
  package var writer = ChangesetWriter()
  /// What has been written.
  package let buffer: TemporaryBuffer
  /// How many changes there are.
  package private(set) var count = 0
  private let writeBytes: Int

  /// - Parameters:
  ///   - buffer: An empty buffer.
  ///   - writeBytes: How many bytes are gathered before they are written.
  package init(in buffer: TemporaryBuffer, gathering writeBytes: Int = 64 << 10) {
    self.buffer = buffer
    self.writeBytes = writeBytes
  }

  /// Counts the change that is in the writer now, and writes what has been gathered if it is enough.
  package mutating func endChange() throws(ByteStreamError) {
    count += 1
    if writer.count >= writeBytes { try flush() }
  }

  /// Writes the rest.
  package mutating func flush() throws(ByteStreamError) {
    try buffer.write(writer.bytes)
    writer.removeAll()
  }

  /// Writes the rest, and sorts all changes.
  ///
  /// - Parameter table: What the changes are of.
  /// - Throws: As ``ChangeSorter``.
  package mutating func sorted(
    as table: ChangesetTable, limits: ChangeSorter.Limits = ChangeSorter.Limits(), poll: () throws -> Void = {}
  ) throws -> ChangeSorter {
    try flush()
    return try ChangeSorter(table, sections: [0..<buffer.count], of: buffer, limits: limits, poll: poll)
  }
}
