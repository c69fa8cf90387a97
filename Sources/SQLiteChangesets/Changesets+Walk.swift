import BuckiaBytes

extension Changesets {
  /// Gives each change of a changeset to `body`, in order, wherever the changeset is stored.
  ///
  /// - Parameters:
  ///   - changeset: The changes.
  ///   - summary: What is known of them; nil where that is to be found out, which is another walk.
  ///   - body: Gets the change, a reader that has its table and its values, and the bytes these are in. It must keep none of
  ///     them.
  /// - Throws: `ChangesetError` when the changeset is damaged; `ByteStreamError`; whatever `body` throws.
  package static func forEachChange(
    of changeset: TemporaryBuffer, knowing summary: ChangesetSummary? = nil,
    _ body: (Change, ChangesetReader, RawSpan) throws -> Void
  ) throws {
    let summary = try summary ?? ChangesetSummary.of(changeset)
    let window = ChangesetWindow(changeset)
    for section in summary.sections {
      let table = summary.tables[section.table].table
      var stretches = ChangeStretches(section.changes, of: table, in: window)
      var reader = ChangesetReader(at: 0, in: table)
      while try stretches.advance() {
        try window.withBytes { bytes in
          while let place = stretches.next(in: bytes) {
            reader.move(to: place.start)
            guard let change = try reader.next(in: bytes) else { return }
            try body(change, reader, bytes)
          }
        }
      }
    }
  }

  /// Copies some of the changes of a changeset, in order.
  ///
  /// - Parameters:
  ///   - changeset: The changes.
  ///   - output: Where they go.
  ///   - isWanted: Says of each change whether it is copied.
  /// - Throws: `ChangesetError` when the changeset is damaged; `ByteStreamError`; whatever `isWanted` throws.
  package static func copy(
    _ changeset: TemporaryBuffer, into output: TemporaryBuffer,
    where isWanted: (Change, ChangesetReader, RawSpan) throws -> Bool
  ) throws {
    var last: ChangesetTable?
    try forEachChange(of: changeset) { change, reader, bytes in
      guard let table = reader.table, try isWanted(change, reader, bytes) else { return }
      if last != table {
        var writer = ChangesetWriter()
        writer.beginTable(table)
        try output.write(writer.bytes)
        last = table
      }
      try output.write(bytes.extracting(change.range))
    }
  }
}
