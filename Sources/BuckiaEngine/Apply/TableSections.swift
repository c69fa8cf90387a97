import SQLiteChangesets
import SQLiteSchemas

/// Where the changes of each table stand in a changeset, so that those of one can be read without all the others.
struct TableSections {
  fileprivate struct Section {
    let header: ChangesetTable
    var changes: Range<Int>
    var takesAway: Bool
  }

  private var sections: [TableName: [Section]] = [:]

  /// Reads a changeset once.
  ///
  /// - Throws: `ChangesetError` when it is damaged.
  init(of bytes: RawSpan) throws {
    var reader = ChangesetReader()
    var open: Section?
    while let change = try reader.next(in: bytes) {
      let takesAway = change.operation != .insert
      if change.startsTable, let header = reader.table {
        close(open)
        open = Section(header: header, changes: change.range, takesAway: takesAway)
      } else if let start = open?.changes.lowerBound {
        open?.changes = start..<change.range.upperBound
        if takesAway { open?.takesAway = true }
      }
    }
    close(open)
  }

  private mutating func close(_ section: Section?) {
    guard let section else { return }
    sections[TableName(section.header.name), default: []].append(section)
  }

  /// Whether any change of a table is a DELETE or an UPDATE: only these can take away a value that others refer to.
  func takeAway(from table: TableName) -> Bool { sections[table]?.contains(where: \.takesAway) ?? false }

  /// A walk over the changes of one table, in their order.
  func walk(of table: TableName) -> TableWalk { TableWalk(sections: sections[table] ?? []) }
}

/// A walk over the changes of one table only.
struct TableWalk {
  /// Stands on the change that was returned last.
  private(set) var reader = ChangesetReader()
  private var sections: ArraySlice<TableSections.Section>
  private var end = 0

  fileprivate init(sections: [TableSections.Section]) { self.sections = sections[...] }

  /// The next change, or nil when there is no other.
  ///
  /// - Throws: `ChangesetError` when the bytes are not those that the sections were found in.
  mutating func next(in bytes: RawSpan) throws -> Change? {
    if reader.position >= end {
      guard let section = sections.popFirst() else { return nil }
      reader = ChangesetReader(at: section.changes.lowerBound, in: section.header)
      end = section.changes.upperBound
    }
    return try reader.next(in: bytes)
  }
}
