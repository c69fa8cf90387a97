import BuckiaBytes

/// What a changeset holds and where, found in one walk over all of it.
///
/// ```swift
/// for entry in try ChangesetSummary.of(bytes).tables {
///   print(entry.table.name, entry.inserted, entry.updated, entry.deleted)
/// }
/// ```
package struct ChangesetSummary: Equatable, Sendable {
  /// The changes of one table, over all its sections.
  package struct Table: Equatable, Sendable {
    /// The table as its first header describes it.
    package let table: ChangesetTable
    /// The bytes of that header.
    package let header: [UInt8]
    /// How many rows are inserted.
    package fileprivate(set) var inserted = 0
    /// How many rows are updated, those included for which no column is set.
    package fileprivate(set) var updated = 0
    /// How many rows are deleted.
    package fileprivate(set) var deleted = 0
    /// How many UPDATEs and DELETEs do not say all that their author saw: those of a patchset.
    package fileprivate(set) var withoutOldValues = 0
    /// True if a DELETE stands behind an INSERT, as in what SQLite records or inverts, and never where an author has sorted
    /// them.
    package fileprivate(set) var hasDeleteBehindInsert = false
    /// How often a change has a smaller key than the one before it: hardly ever where an author has sorted them, with
    /// every second change where a hash table has.
    package fileprivate(set) var descents = 0
    /// For each key column, in the order of the table, which kinds of value it has in any change.
    package fileprivate(set) var keyKinds: [ValueKinds]

    /// How many changes there are in all.
    package var changeCount: Int { inserted + updated + deleted }

    fileprivate mutating func add(_ other: Table) {
      hasDeleteBehindInsert =
        hasDeleteBehindInsert || other.hasDeleteBehindInsert || inserted > 0 && other.deleted > 0
      withoutOldValues += other.withoutOldValues
      inserted += other.inserted
      updated += other.updated
      deleted += other.deleted
      descents += other.descents + 1
      for column in keyKinds.indices { keyKinds[column].formUnion(other.keyKinds[column]) }
    }

    fileprivate init(_ table: ChangesetTable, header: [UInt8]) {
      self.table = table
      self.header = header
      keyKinds = Array(repeating: [], count: table.keyFlags.count { $0 != 0 })
    }
  }

  /// A stretch of changes of one table, behind one header.
  package struct Section: Equatable, Sendable {
    /// The table's place in `tables`.
    package let table: Int
    /// The bytes of its changes, without the header.
    package fileprivate(set) var changes: Range<Int>
  }

  /// The tables that have changes, in order of first appearance.
  package private(set) var tables: [Table] = []
  /// All sections that have changes, in file order.
  package private(set) var sections: [Section] = []
  /// How many bytes there are in all, headers included.
  package private(set) var byteCount = 0

  /// The summary of no changes.
  package init() {}

  /// True if it holds old values or not; nil when there are no changes.
  package var format: ChangesetFormat? { tables.first?.table.format }
  /// How many changes there are in all.
  package var changeCount: Int { tables.reduce(0) { $0 + $1.changeCount } }
  /// How many rows are inserted in all tables.
  package var inserted: Int { tables.reduce(0) { $0 + $1.inserted } }
  /// How many rows are updated in all tables.
  package var updated: Int { tables.reduce(0) { $0 + $1.updated } }
  /// How many rows are deleted in all tables.
  package var deleted: Int { tables.reduce(0) { $0 + $1.deleted } }

  /// The changes of each table, in the order of `tables`: the bytes of its sections.
  package var sectionsByTable: [[Range<Int>]] {
    var found = [[Range<Int>]](repeating: [], count: tables.count)
    for section in sections { found[section.table].append(section.changes) }
    return found
  }

  /// Reads and checks every change.
  ///
  /// - Parameters:
  ///   - changeset: The changeset or patchset.
  ///   - poll: Is called every few thousand changes. May throw to stop.
  /// - Throws: `ChangesetError` when the bytes are no changeset, with code `incompatibleTables` when one table
  ///   appears with different columns or keys (its name compared without regard to the case of ASCII letters), with
  ///   `tooManySections` beyond `ChangesetLimits.sections`; `ByteStreamError` when they cannot be read; whatever `poll`
  ///   throws.
  package static func of(_ changeset: TemporaryBuffer, poll: () throws -> Void = {}) throws -> ChangesetSummary {
    var builder = Builder()
    try builder.add(contentsOf: changeset, poll: poll)
    return builder.finish(byteCount: changeset.count)
  }

  /// True if a summary speaks of the same tables as this one, as far as both speak of a table at all.
  ///
  /// - Returns: false when a table has other columns, another key or another format there, and when there would be too many
  ///   sections.
  package func canAppend(_ other: ChangesetSummary) -> Bool {
    guard sections.count + other.sections.count <= ChangesetLimits.sections else { return false }
    return other.tables.allSatisfy { added in
      tables.allSatisfy { $0.table == added.table || !ASCIIName.matches($0.table.name, added.table.name) }
    }
  }

  /// Adds what is known of another changeset, whose bytes have been appended to those of this one.
  ///
  /// Where a table is in both, the first change of the second counts as a descent, whatever its key.
  ///
  /// - Parameters:
  ///   - other: One that `canAppend` has said yes to.
  ///   - offset: Where its bytes begin.
  package mutating func append(_ other: ChangesetSummary, at offset: Int) {
    var places: [Int] = []
    for added in other.tables {
      if let place = tables.firstIndex(where: { $0.table == added.table }) {
        tables[place].add(added)
        places.append(place)
      } else {
        places.append(tables.count)
        tables.append(added)
      }
    }
    for section in other.sections {
      let changes = section.changes.lowerBound + offset..<section.changes.upperBound + offset
      sections.append(Section(table: places[section.table], changes: changes))
    }
    byteCount = offset + other.byteCount
  }

  /// Gathers a summary from a walk of its owner, which looks at the changes, too.
  package struct Builder {
    private var summary = ChangesetSummary()
    /// Where the tables stand in the summary, by the bytes of their names with ASCII letters in lower case: so SQLite tells them apart.
    private var places: [[UInt8]: Int] = [:]
    private var place = 0
    private var keyColumns: [Int] = []
    private var key: KeyLayout?
    private var previous: (prefix: UInt64, base: Int, start: Int)?
    /// Where the bytes of the reader begin among those of the summary.
    private var offset = 0

    /// Begins with nothing.
    package init() {}

    /// Adds all changes of a changeset.
    ///
    /// - Parameters:
    ///   - changeset: The changeset or patchset.
    ///   - offset: Where its bytes begin among those that the summary is of.
    ///   - poll: Is called every few thousand changes. May throw to stop.
    mutating func add(contentsOf changeset: TemporaryBuffer, at offset: Int = 0, poll: () throws -> Void) throws {
      self.offset = offset
      var scan = ChangesetScan(changeset)
      while try scan.advance() {
        try poll()
        try scan.window.withBytes { bytes in
          while let change = try scan.next(in: bytes) {
            try add(change, scan.reader, in: bytes, endingAt: scan.range(of: change).upperBound)
          }
        }
      }
    }

    /// Adds the change that the reader stands on.
    ///
    /// - Parameter end: Where it ends in the changeset.
    /// - Returns: The table's place in the summary.
    /// - Throws: `ChangesetError`, as `ChangesetSummary.of(_:)`.
    @discardableResult
    package mutating func add(
      _ change: Change, _ reader: ChangesetReader, in bytes: RawSpan, endingAt end: Int
    ) throws(ChangesetError) -> Int {
      if change.startsTable { try beginSection(change, reader, in: bytes) }
      summary.sections[summary.sections.count - 1].changes =
        summary.sections[summary.sections.count - 1].changes.lowerBound..<offset + end
      switch change.operation {
      case .insert: summary.tables[place].inserted += 1
      case .update: summary.tables[place].updated += 1
      case .delete:
        summary.tables[place].deleted += 1
        if summary.tables[place].inserted > 0 { summary.tables[place].hasDeleteBehindInsert = true }
      }
      if reader.lacksOldValues { summary.tables[place].withoutOldValues += 1 }
      noteKey(change, reader, in: bytes)
      return place
    }

    private mutating func noteKey(_ change: Change, _ reader: ChangesetReader, in bytes: RawSpan) {
      guard let key else { return }
      let isInsert = change.operation == .insert
      for (index, column) in keyColumns.enumerated() {
        let kind = isInsert ? reader.new[column].kind : reader.old[column].kind
        summary.tables[place].keyKinds[index].insert(ValueKinds(kind))
      }
      let first = isInsert ? reader.new[key.columns[0]] : reader.old[key.columns[0]]
      let prefix = first.orderPrefix(in: bytes)
      if let previous {
        // Where the bytes of the change before are gone, keys that begin alike count as ascending.
        let descends =
          previous.prefix == prefix
          ? previous.base == reader.base && key.order(previous.start, change.range.lowerBound, in: bytes) > 0
          : previous.prefix > prefix
        if descends { summary.tables[place].descents += 1 }
      }
      previous = (prefix, reader.base, change.range.lowerBound)
    }

    private mutating func beginSection(
      _ change: Change, _ reader: ChangesetReader, in bytes: RawSpan
    ) throws(ChangesetError) {
      guard let header = reader.table else { return }
      place = try place(of: header, reader, in: bytes)
      let table = summary.tables[place].table
      guard summary.sections.count < ChangesetLimits.sections else {
        throw ChangesetError(
          .tooManySections, offset: reader.base + reader.headerRange.lowerBound, table: table.name)
      }
      keyColumns = table.keyFlags.indices.filter { table.isKey($0) }
      key = KeyLayout(table)
      previous = nil
      let base = offset + reader.base
      let start = base + change.range.lowerBound
      summary.sections.append(Section(table: place, changes: start..<start))
    }

    /// The place of a table, which is added if it is new.
    ///
    /// - Throws: `ChangesetError`: `mixedFormats`, or `incompatibleTables` when an earlier section had other columns or
    ///   another key. Key flags count as yes or no: SQLite versions differ in what else they write there.
    private mutating func place(
      of table: ChangesetTable, _ reader: ChangesetReader, in bytes: RawSpan
    ) throws(ChangesetError) -> Int {
      func failure(_ code: ChangesetError.Code) -> ChangesetError {
        ChangesetError(code, offset: reader.base + reader.headerRange.lowerBound, table: table.name)
      }
      if let format = summary.format, format != table.format { throw failure(.mixedFormats) }
      let name = bytes.array(reader.nameRange).map(ASCIIName.folded)
      if let known = places[name] {
        let flags = summary.tables[known].table.keyFlags
        guard flags.elementsEqual(table.keyFlags, by: { ($0 != 0) == ($1 != 0) }) else {
          throw failure(.incompatibleTables)
        }
        return known
      }
      places[name] = summary.tables.count
      summary.tables.append(Table(table, header: bytes.array(reader.headerRange)))
      return summary.tables.count - 1
    }

    /// The summary of what has been added so far; its `byteCount` is 0.
    package var soFar: ChangesetSummary { summary }

    /// The summary of all that was added.
    ///
    /// - Parameter byteCount: The length of the whole changeset.
    package consuming func finish(byteCount: Int) -> ChangesetSummary {
      summary.byteCount = byteCount
      return summary
    }
  }
}

/// Kinds of value, as a set.
package struct ValueKinds: OptionSet, Sendable {
  /// One bit for each kind, by its raw value.
  package let rawValue: UInt8

  /// Makes a set from its bits.
  package init(rawValue: UInt8) { self.rawValue = rawValue }

  /// The set of one kind.
  package init(_ kind: ValueKind) { self.init(rawValue: 1 << kind.rawValue) }

  /// SQL NULL.
  package static let null = ValueKinds(.null)
  /// Integers.
  package static let integer = ValueKinds(.integer)
  /// Floating-point numbers.
  package static let real = ValueKinds(.real)
  /// Text.
  package static let text = ValueKinds(.text)
  /// Blobs.
  package static let blob = ValueKinds(.blob)
}
