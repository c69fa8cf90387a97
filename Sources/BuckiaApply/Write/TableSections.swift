import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

/// The changes of each table of a changeset, so that those of one can be read without all the others.
struct TableSections {
  private let summary: ChangesetSummary
  private let changeset: TemporaryBuffer
  private let places: [TableName: Int]

  /// - Parameters:
  ///   - summary: What the changeset holds.
  ///   - changeset: The changes.
  init(_ summary: ChangesetSummary, of changeset: TemporaryBuffer) {
    self.summary = summary
    self.changeset = changeset
    places = Dictionary(summary.tables.enumerated().map { (TableName($1.table.name), $0) }) { first, _ in first }
  }

  /// The table with a name, as the changeset describes it.
  func table(named name: TableName) -> ChangesetTable? { places[name].map { summary.tables[$0].table } }

  /// Whether any change of a table is a DELETE or an UPDATE: only these can take away a value that others refer to.
  func takeAway(from table: TableName) -> Bool {
    places[table].map { summary.tables[$0].updated + summary.tables[$0].deleted > 0 } ?? false
  }

  /// Passes each change of a table to `body`, in their order.
  func forEachChange(of name: TableName, _ body: (DecodedChange, RawSpan) throws -> Void) throws {
    guard let place = places[name] else { return }
    let table = summary.tables[place].table
    let window = ChangesetWindow(changeset)
    let change = DecodedChange(of: table)
    for section in summary.sections where section.table == place {
      var stretches = ChangeStretches(section.changes, of: table, in: window)
      while try stretches.advance() {
        try window.withBytes { bytes in
          while let place = stretches.next(in: bytes) {
            change.read(place, in: bytes)
            try body(change, bytes)
          }
        }
      }
    }
  }
}
