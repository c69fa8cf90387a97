import BuckiaBytes

/// Goes through the changes of a changeset one at a time, on request: beside another walk, for instance, whose changes
/// these belong to.
package final class ChangesetCursor {
  private let summary: ChangesetSummary
  private let window: ChangesetWindow
  private var section = 0
  private var stretches: ChangeStretches?
  private var reader = ChangesetReader()

  /// Begins before the first change.
  ///
  /// - Parameters:
  ///   - changeset: The changes.
  ///   - summary: What is known of them.
  package init(_ changeset: TemporaryBuffer, knowing summary: ChangesetSummary) {
    self.summary = summary
    window = ChangesetWindow(changeset)
  }

  /// Goes on to the next change.
  ///
  /// - Parameter body: Gets the change, a reader that has its table and its values, and the bytes these are in. It must keep none of them.
  /// - Returns: What `body` returns; nil behind the last change.
  /// - Throws: `ChangesetError` when the changeset is damaged; `ByteStreamError`; whatever `body` throws.
  package func next<Result>(_ body: (Change, ChangesetReader, RawSpan) throws -> Result) throws -> Result? {
    while true {
      let found = try window.withBytes { bytes -> Result? in
        guard let place = stretches?.next(in: bytes) else { return nil }
        reader.move(to: place.start)
        guard let change = try reader.next(in: bytes) else { return nil }
        return try body(change, reader, bytes)
      }
      if let found { return found }
      if try stretches?.advance() == true { continue }
      guard section < summary.sections.count else { return nil }
      let next = summary.sections[section]
      let table = summary.tables[next.table].table
      stretches = ChangeStretches(next.changes, of: table, in: window)
      reader = ChangesetReader(at: 0, in: table)
      section += 1
    }
  }
}
