import BuckiaByteStreams

/// Writes the inverses of changes of one table.
struct ChangeInverter {
  /// How many bytes are gathered before they are written.
  private static let writeBytes = 64 << 10

  private var reader: ChangesetReader
  private var writer = ChangesetWriter()

  init(_ table: ChangesetTable) { reader = ChangesetReader(at: 0, in: table) }

  /// Adds the inverse of a change. INSERT becomes DELETE and the other way round; an UPDATE swaps its values, with the key
  /// staying on the old side.
  mutating func append(_ change: ChangePlace, endingAt end: Int, in bytes: RawSpan) throws(ChangesetError) {
    let isIndirect = change.isIndirect(in: bytes)
    switch change.operation {
    case .insert:
      writer.beginChange(.delete, isIndirect: isIndirect)
      writer.append(change.values..<end, of: bytes)
    case .delete:
      writer.beginChange(.insert, isIndirect: isIndirect)
      writer.append(change.values..<end, of: bytes)
    case .update:
      reader.move(to: change.start)
      _ = try reader.next(in: bytes)
      writer.beginChange(.update, isIndirect: isIndirect)
      for (old, new) in zip(reader.old, reader.new) {
        // Only a key column has an old value and no new one.
        writer.append(new.isDefined ? new : old, of: bytes)
      }
      for (old, new) in zip(reader.old, reader.new) {
        writer.append(new.isDefined ? old : .undefined, of: bytes)
      }
    }
  }

  /// Writes what has been gathered, once it is worth it.
  mutating func flush(
    into output: TemporaryBuffer, atLeast limit: Int = ChangeInverter.writeBytes
  ) throws(ByteStreamError) {
    guard writer.count >= limit else { return }
    try output.write(writer.bytes)
    writer.removeAll()
  }
}
