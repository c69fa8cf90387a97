import BuckiaBytes

/// Writes the inverses of changes of one table.
struct ChangeInverter {
  /// How many bytes are gathered before they are written.
  private static let writeBytes = 64 << 10

  private var reader: ChangesetReader
  private var writer = ChangesetWriter()

  init(_ table: ChangesetTable) { reader = ChangesetReader(at: 0, in: table) }

  /// Writes the inverse of a change, or gathers it. INSERT becomes DELETE and the other way round; an UPDATE swaps its values,
  /// with the key staying on the old side.
  mutating func write(
    _ change: ChangePlace, endingAt end: Int, in bytes: RawSpan, to output: TemporaryBuffer
  ) throws {
    let isIndirect = change.isIndirect(in: bytes)
    switch change.operation {
    case .insert, .delete:
      writer.beginChange(change.operation == .insert ? .delete : .insert, isIndirect: isIndirect)
      if end - change.values >= Self.writeBytes {
        try flush(to: output)
        try output.write(bytes.extracting(change.values..<end))
      } else {
        writer.append(change.values..<end, of: bytes)
      }
    case .update:
      reader.move(to: change.start)
      _ = try reader.next(in: bytes)
      writer.beginChange(.update, isIndirect: isIndirect)
      for (old, new) in zip(reader.old, reader.new) {
        // Only a key column has an old value and no new one.
        try append(new.isDefined ? new : old, of: bytes, to: output)
      }
      for (old, new) in zip(reader.old, reader.new) {
        try append(new.isDefined ? old : .undefined, of: bytes, to: output)
      }
    }
    if writer.count >= Self.writeBytes { try flush(to: output) }
  }

  private mutating func append(_ value: ValueSlice, of bytes: RawSpan, to output: TemporaryBuffer) throws {
    if value.count >= Self.writeBytes {
      try flush(to: output)
      try output.write(bytes.extracting(value.encoded))
    } else {
      writer.append(value, of: bytes)
    }
  }

  /// Writes what has been gathered.
  mutating func flush(to output: TemporaryBuffer) throws(ByteStreamError) {
    try output.write(writer.bytes)
    writer.removeAll()
  }
}
