extension Changesets {
  /// Turns a changeset into the one that undoes it, as
  /// [`sqlite3changeset_invert`](https://sqlite.org/session/sqlite3changeset_invert.html) does, to the byte.
  ///
  /// INSERT becomes DELETE and the other way round; an UPDATE swaps its values, with the key staying on the old side.
  /// Tables and changes keep their places: a changeset that names a row once is undone in any order.
  ///
  /// - Parameters:
  ///   - bytes: The changeset.
  ///   - output: Where the result is added.
  /// - Returns: `output`.
  /// - Throws: `ChangesetError` when the bytes are no changeset; with code `needsChangeset` for a patchset, and
  ///   `misplacedValue` for an UPDATE that sets a column whose old value is missing. `ChangesetSpool.Failure` when the
  ///   output cannot be written. The output may then hold a part of the result.
  @discardableResult
  public static func inverted(
    _ bytes: RawSpan, into output: ChangesetSpool = ChangesetSpool()
  ) throws -> ChangesetSpool {
    var checked = ChangesetReader()
    while let change = try checked.next(in: bytes) { try checkInvertible(change, checked) }
    var reader = ChangesetReader()
    var writer = ChangesetWriter()
    while let change = try reader.next(in: bytes) { try invert(change, reader, bytes, &writer, into: output) }
    return output
  }

  /// Turns the changeset of a spool into the one that undoes it; see ``inverted(_:into:)-(RawSpan,_)``.
  ///
  /// - Throws: `ChangesetError`; `ChangesetSpool.Failure` when the input cannot be read or the output cannot be written.
  @discardableResult
  public static func inverted(
    _ changeset: ChangesetSpool, into output: ChangesetSpool = ChangesetSpool()
  ) throws -> ChangesetSpool {
    var checked = ChangesetScan(changeset)
    while try checked.advance() {
      try checked.window.withBytes { bytes in
        while let change = try checked.next(in: bytes) { try checkInvertible(change, checked.reader) }
      }
    }
    var scan = ChangesetScan(changeset)
    var writer = ChangesetWriter()
    while try scan.advance() {
      try scan.window.withBytes { bytes in
        while let change = try scan.next(in: bytes) { try invert(change, scan.reader, bytes, &writer, into: output) }
      }
    }
    return output
  }

  private static func invert(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, _ writer: inout ChangesetWriter,
    into output: ChangesetSpool
  ) throws {
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
    try output.append(writer.bytes)
    writer.removeAll()
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
