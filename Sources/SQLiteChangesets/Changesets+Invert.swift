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
    try checkInvertible(bytes)
    var reader = ChangesetReader()
    var writer = ChangesetWriter()
    while let change = try reader.next(in: bytes) {
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
    return output
  }

  private static func checkInvertible(_ bytes: RawSpan) throws(ChangesetError) {
    var reader = ChangesetReader()
    while let change = try reader.next(in: bytes) {
      if change.startsTable, let table = reader.table, table.format == .patchset {
        throw ChangesetError(.needsChangeset, offset: reader.headerRange.lowerBound, table: table.name)
      }
      guard change.operation == .update else { continue }
      for (old, new) in zip(reader.old, reader.new) where new.isDefined && !old.isDefined {
        throw ChangesetError(.misplacedValue, offset: change.range.lowerBound, table: reader.table?.name)
      }
    }
  }
}
