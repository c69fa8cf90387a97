import SQLiteChangesets
import SQLiteSchemas

/// The changes of each table of a changeset, so that those of one can be read without all the others.
struct TableSections {
  private let summary: ChangesetSummary
  private let places: [TableName: Int]

  init(_ summary: ChangesetSummary) {
    self.summary = summary
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
      summary.tables[place].table, sections: summary.sections.filter { $0.table == place }.map(\.changes))
  }
}

/// A walk over the changes of one table only.
struct TableWalk {
  /// The change that was returned last.
  let change: DecodedChange
  private let table: ChangesetTable
  private var sections: ArraySlice<Range<Int>>
  private var walk: ChangeWalk

  fileprivate init(_ table: ChangesetTable, sections: [Range<Int>]) {
    self.table = table
    self.sections = sections[...]
    walk = ChangeWalk(0..<0, of: table)
    change = DecodedChange(of: table)
  }

  /// Goes on to the next change.
  ///
  /// - Returns: false when there is no other.
  mutating func next(in bytes: RawSpan) -> Bool {
    while true {
      if let place = walk.next(in: bytes) {
        change.read(place, in: bytes)
        return true
      }
      guard let section = sections.popFirst() else { return false }
      walk = ChangeWalk(section, of: table)
    }
  }
}
