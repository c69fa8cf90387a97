import BuckiaByteStreams

extension Changesets {
  /// Turns a changeset of any size into the one that undoes it; see ``inverted(_:)``.
  ///
  /// - Parameters:
  ///   - changeset: The changeset.
  ///   - output: Where the result is added.
  ///   - poll: Is called every few thousand changes. May throw to stop.
  /// - Throws: `ChangesetError`, as ``inverted(_:)``, before anything is written; `ByteStreamError` when the input cannot be
  ///   read or the output cannot be written; whatever `poll` throws. The output may then hold a part of the result.
  package static func invert(
    _ changeset: TemporaryBuffer, into output: TemporaryBuffer, poll: () throws -> Void = {}
  ) throws {
    var checked = ChangesetScan(changeset)
    while try checked.advance() {
      try poll()
      try checked.window.withBytes { bytes in
        while let change = try checked.next(in: bytes) { try checkInvertible(change, checked.reader) }
      }
    }
    var scan = ChangesetScan(changeset)
    var writer = ChangesetWriter()
    while try scan.advance() {
      try poll()
      try scan.window.withBytes { bytes in
        while let change = try scan.next(in: bytes) {
          invert(change, scan.reader, bytes, &writer)
          try output.write(writer.bytes)
          writer.removeAll()
        }
      }
    }
  }

  private static func invert(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, _ writer: inout ChangesetWriter
  ) {
    if change.startsTable { writer.append(reader.headerRange, of: bytes) }
    let record = (change.range.lowerBound + 2)..<change.range.upperBound
    switch change.operation {
    case .insert:
      writer.beginChange(.delete, isIndirect: change.isIndirect)
      writer.append(record, of: bytes)
    case .delete:
      writer.beginChange(.insert, isIndirect: change.isIndirect)
      writer.append(record, of: bytes)
    case .update:
      writer.beginChange(.update, isIndirect: change.isIndirect)
      for (old, new) in zip(reader.old, reader.new) {
        // Only a key column has an old value and no new one.
        writer.append(new.isDefined ? new : old, of: bytes)
      }
      for (old, new) in zip(reader.old, reader.new) {
        writer.append(new.isDefined ? old : .undefined, of: bytes)
      }
    }
  }

  private static func checkInvertible(_ change: Change, _ reader: ChangesetReader) throws(ChangesetError) {
    if change.startsTable, let table = reader.table, table.format == .patchset {
      throw ChangesetError(
        .needsChangeset, offset: reader.base + reader.headerRange.lowerBound, table: table.name)
    }
    guard change.operation == .update else { return }
    for (old, new) in zip(reader.old, reader.new) where new.isDefined && !old.isDefined {
      throw ChangesetError(
        .misplacedValue, offset: reader.base + change.range.lowerBound, table: reader.table?.name)
    }
  }
}
