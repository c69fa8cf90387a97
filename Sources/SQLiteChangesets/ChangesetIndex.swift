/// Every change of a changeset by table: where it stands, and the start of its key to sort by.
///
/// Takes 32 bytes of memory for each change, however large the changes are; their bytes stay where they are.
struct ChangesetIndex {
  struct Entry: RadixKeyed {
    /// The start of the key, as ``ValueSlice/orderPrefix(in:)`` gives it.
    let prefix: UInt64
    /// The offset of the change.
    let start: Int
    /// The offset behind the change.
    let end: Int
    /// Which change of the whole changeset it is, from 0.
    let ordinal: Int
  }

  /// All changes of one table, from all its sections.
  struct Table {
    let table: ChangesetTable
    let header: [UInt8]
    let key: KeyLayout
    var entries: [Entry] = []
  }

  private(set) var tables: [Table] = []
  private(set) var changeCount = 0

  /// Reads and checks every change; tables are in order of first appearance, entries as they come.
  ///
  /// - Throws: `ChangesetError`, as `ChangesetSummary.of(_:)`.
  init(of bytes: RawSpan) throws(ChangesetError) {
    var directory = TableDirectory()
    var reader = ChangesetReader()
    var place = 0
    var firstKeyColumn = 0
    while let change = try reader.next(in: bytes) {
      if change.startsTable, let found = try directory.place(of: reader, in: bytes) {
        if found == tables.count {
          let entry = directory.entries[found]
          tables.append(Table(table: entry.table, header: entry.header, key: KeyLayout(entry.table)))
        }
        place = found
        firstKeyColumn = tables[found].key.columns[0]
      }
      let record = change.operation == .insert ? reader.new : reader.old
      tables[place].entries.append(
        Entry(
          prefix: record[firstKeyColumn].orderPrefix(in: bytes), start: change.range.lowerBound,
          end: change.range.upperBound, ordinal: changeCount))
      changeCount += 1
    }
  }

  /// The table at a place, which is handed over: its entries are sorted without a second copy, and freed with it.
  mutating func take(_ place: Int) -> Table {
    let table = tables[place]
    tables[place].entries = []
    return table
  }
}

extension ChangesetIndex.Table {
  /// Sorts by key; keys that are equal by value stand together, identical ones among them in author's order.
  mutating func sortByKey(in bytes: RawSpan) {
    let key = key
    // Entries come in author's order, and those that are equal in both stay in it.
    entries.radixSort { one, other in
      let order = key.order(one.start, other.start, in: bytes)
      return order != 0 ? order : key.tieBreak(one.start, other.start, in: bytes)
    }
  }

  /// Whether two entries have keys that are equal by value.
  func haveEqualKeys(_ one: Int, _ other: Int, in bytes: RawSpan) -> Bool {
    entries[one].prefix == entries[other].prefix
      && key.order(entries[one].start, entries[other].start, in: bytes) == 0
  }

  /// Whether two entries speak of the same row: keys of the same kinds and bytes, without NULL.
  func areSameRow(_ one: Int, _ other: Int, in bytes: RawSpan) -> Bool {
    haveEqualKeys(one, other, in: bytes)
      && key.tieBreak(entries[one].start, entries[other].start, in: bytes) == 0
      && !key.hasNull(entries[one].start, in: bytes)
  }
}
