import BuckiaByteStreams
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

  /// Whether any change of a table is a DELETE or an UPDATE: only these can take away a value that others refer to.
  func takeAway(from table: TableName) -> Bool {
    places[table].map { summary.tables[$0].updated + summary.tables[$0].deleted > 0 } ?? false
  }

  /// A walk over the changes of one table, in their order; nil when it has none.
  func walk(of table: TableName) -> TableWalk? {
    guard let place = places[table] else { return nil }
    return TableWalk(
      summary.tables[place].table, sections: summary.sections.filter { $0.table == place }.map(\.changes),
      of: changeset)
  }
}

/// A walk over the changes of one table only, some of them at a time.
struct TableWalk {
  /// The change that was read last.
  let change: DecodedChange
  /// The window that the changes are in.
  let window: ChangesetWindow
  private var sections: ArraySlice<Range<Int>>
  private var stretches: ChangeStretches

  fileprivate init(_ table: ChangesetTable, sections: [Range<Int>], of changeset: TemporaryBuffer) {
    self.sections = sections[...]
    window = ChangesetWindow(changeset)
    stretches = ChangeStretches(0..<0, of: table, in: window)
    change = DecodedChange(of: table)
  }

  /// Brings the next changes into the window; false when there are no more.
  mutating func advance() throws -> Bool {
    while true {
      if try stretches.advance() { return true }
      guard let section = sections.popFirst() else { return false }
      stretches.begin(section)
    }
  }

  /// Reads the next change of those in the window; false when there is no other.
  mutating func next(in bytes: RawSpan) -> Bool {
    guard let place = stretches.next(in: bytes) else { return false }
    change.read(place, in: bytes)
    return true
  }
}
