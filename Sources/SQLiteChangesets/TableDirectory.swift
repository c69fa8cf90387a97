import BuckiaBytes

/// The tables of one or more changesets by name, in order of first appearance.
///
/// Names are told apart as SQLite does it: byte by byte, except that ASCII letters match whatever their case. A table
/// may open several sections, all of which must agree about its columns and key.
struct TableDirectory: Sendable {
  struct Entry: Sendable {
    /// The table as its first header describes it.
    let table: ChangesetTable
    /// The bytes of that header.
    let header: [UInt8]
  }

  private(set) var entries: [Entry] = []
  private var places: [[UInt8]: Int] = [:]

  /// The place in `entries` of the table whose changes `reader` has come to, made when it is new.
  ///
  /// - Throws: `ChangesetError`: `mixedFormats`, or `incompatibleTables` when an earlier section had other columns or
  ///   another key. Key flags count as yes or no: SQLite versions differ in what else they write there.
  mutating func place(of reader: ChangesetReader, in bytes: RawSpan) throws(ChangesetError) -> Int? {
    guard let table = reader.table else { return nil }
    let name = bytes.array(reader.nameRange).map(ASCIIName.folded)
    if let first = entries.first, first.table.format != table.format {
      throw ChangesetError(.mixedFormats, offset: reader.base + reader.headerRange.lowerBound, table: table.name)
    }
    if let place = places[name] {
      let known = entries[place].table
      guard known.keyFlags.elementsEqual(table.keyFlags, by: { ($0 != 0) == ($1 != 0) }) else {
        throw ChangesetError(
          .incompatibleTables, offset: reader.base + reader.headerRange.lowerBound, table: table.name)
      }
      return place
    }
    places[name] = entries.count
    entries.append(Entry(table: table, header: bytes.array(reader.headerRange)))
    return entries.count - 1
  }
}
