import BuckiaBytes

/// What can be done with whole changesets: invert, join, sort.
///
/// All of them check their input completely before they make anything of it, and take any bytes safely. Nothing here knows
/// a database; everything follows from the bytes. See <https://sqlite.org/session/intro.html> for SQLite's own calls of
/// these names.
///
/// ```swift
/// let undo = try Changesets.inverted(monday)
/// let both = try Changesets.concatenated([monday, tuesday])
/// let tidy = try Changesets.sorted(both)
/// ```
public enum Changesets {
  /// The changeset that undoes another: the changes that
  /// [`sqlite3changeset_invert`](https://sqlite.org/session/sqlite3changeset_invert.html) makes, in an order that undoes them.
  ///
  /// INSERT becomes DELETE and the other way round; an UPDATE swaps its values, with the key staying on the old side.
  /// SQLite keeps the order of the changes. That loses a row whose key became another that compares equal (`apple` and
  /// `Apple` under NOCASE, 2.0 and 2): it is inserted while the other is in its way, and that is deleted then. Here the tables
  /// come from the last to the first. In a table whose changes are of one row each, what was inserted is deleted first,
  /// UPDATEs follow, then comes what was deleted, each by key: the order of ``sorted(_:)``. Where one row is changed more than
  /// once, as in recordings joined end to end, the changes are a sequence: the table's changes come from the last to the first.
  ///
  /// It undoes what the author did. Where applying met a conflict, something else was done, which this does not know of.
  ///
  /// - Throws: `ChangesetError` when the bytes are no changeset; with code `needsChangeset` for a patchset, and
  ///   `misplacedValue` for an UPDATE that sets a column whose old value is missing.
  public static func inverted(_ changeset: [UInt8]) throws -> [UInt8] {
    try inMemory { try invert(TemporaryBuffer(changeset), into: $0) }
  }

  /// Joins changesets or patchsets into one that has their effect: each row is changed at most once.
  ///
  /// Equal in effect to [`sqlite3changegroup`](https://sqlite.org/session/changegroup.html). Tables are in order of first
  /// appearance, rows in the order in which they were first changed. Rows are the same when their keys have the same kinds
  /// and bytes; a key with NULL in it names no row, so such changes all stay, in their order. Whatever cannot happen to
  /// one row in sequence (two INSERTs, say) keeps the first change and drops the second, as SQLite does.
  ///
  /// - Parameter changesets: What to join, the oldest first.
  /// - Throws: `ChangesetError` when one is no changeset, with code `mixedFormats` when a patchset meets a changeset,
  ///   `incompatibleTables` when a table has other columns or another key than before. An error of the system where more
  ///   than some MB are sorted in a temporary file, and that fails.
  public static func concatenated(_ changesets: [[UInt8]]) throws -> [UInt8] {
    try inMemory { try concatenate(changesets.map { TemporaryBuffer($0) }, into: $0) }
  }

  /// Sorts a changeset or patchset by table, operation and key.
  ///
  /// The session extension emits changes in hash order, the slowest there is to apply: every row touches another page.
  /// In key order neighbours share pages. Tables keep the order of their first appearance, and the sections of a table
  /// become one. Inside a table come deletes, then updates, then inserts, each by primary key: NULL, numbers, text,
  /// blobs; composite keys in the order of the key's definition where the header tells it.
  ///
  /// A table in which two changes have equal keys (joined changesets, 1 beside 1.0, NULL in the key) stays in author's
  /// order, since such changes may depend on each other: the result always has the effect of the input.
  ///
  /// - Throws: As ``concatenated(_:)``.
  public static func sorted(_ changeset: [UInt8]) throws -> [UInt8] {
    let input = TemporaryBuffer(changeset)
    return try inMemory { try sort(input, ChangesetSummary.of(input), into: $0) }
  }

  static func inMemory(_ body: (TemporaryBuffer) throws -> Void) throws -> [UInt8] {
    let output = TemporaryBuffer(memoryLimit: .max)
    try body(output)
    return try output.allBytes()
  }

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
  ///   - isWanted: True for each change that is copied.
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

  /// Sorts a changeset or patchset of any size in bounded memory; see ``sorted(_:)``.
  ///
  /// - Parameters:
  ///   - changeset: The changeset or patchset.
  ///   - summary: What is known of it.
  ///   - output: Where the result is added.
  ///   - limits: How much is held in memory.
  ///   - poll: Is called every few thousand changes. May throw to stop.
  /// - Returns: The tables that stay in author's order.
  /// - Throws: `ByteStreamError` when a temporary file cannot be read or written; whatever `poll` throws. The output may
  ///   then hold a part of the result.
  @discardableResult
  package static func sort(
    _ changeset: TemporaryBuffer, _ summary: ChangesetSummary, into output: TemporaryBuffer,
    limits: ChangeSorter.Limits = ChangeSorter.Limits(), poll: () throws -> Void = {}
  ) throws -> [ChangesetTable] {
    var tablesInAuthorOrder: [ChangesetTable] = []
    for (table, sections) in zip(summary.tables, summary.sectionsByTable) {
      try output.write(table.header)
      let parts = try ChangeSorter(table.table, sections: sections, of: changeset, limits: limits, poll: poll)
        .parts(of: table.table, .equalKeys, like: changeset, poll: poll)
      if let parts {
        for part in [parts.deletes, parts.updates, parts.inserts] { try output.write(contentsOf: part) }
      } else {
        tablesInAuthorOrder.append(table.table)
        for section in sections { try changeset.forEachPiece(section) { try output.write($0) } }
      }
    }
    return tablesInAuthorOrder
  }

  /// True if the changes of a table change each row once, so that the order in which they are applied does not matter to any
  /// row by itself.
  ///
  /// A DELETE and an INSERT whose keys are equal and not the same bytes count as changes of two rows. Rows with NULL in
  /// the key, which names no row, count as one.
  ///
  /// - Parameters:
  ///   - sections: The bytes of the table's changes, as a `ChangesetSummary` has found them.
  ///   - changeset: The buffer that holds them.
  /// - Throws: `ByteStreamError` when a temporary file cannot be read or written.
  package static func changesEachRowOnce(
    _ table: ChangesetTable, sections: [Range<Int>], of changeset: TemporaryBuffer
  ) throws -> Bool {
    try ChangeSorter(table, sections: sections, of: changeset)
      .forEachSingle(of: table, .equalKeysUnlessReplaced) { _, _ in }
  }
}

extension ChangeSorter {
  /// The changes of the table by operation, each part in key order.
  typealias Parts = (deletes: TemporaryBuffer, updates: TemporaryBuffer, inserts: TemporaryBuffer)

  /// Divides the changes; nil when some of them may depend on each other, so that their order must stay.
  ///
  /// - Parameters:
  ///   - rule: Which changes may depend on each other.
  ///   - source: The parts are kept as this buffer is.
  ///   - poll: Is called every few thousand changes. May throw to stop.
  /// - Throws: `ByteStreamError` when a temporary file cannot be read or written; whatever `poll` throws.
  consuming func parts(
    of table: ChangesetTable, _ rule: SingleChanges.Rule, like source: TemporaryBuffer, poll: () throws -> Void
  ) throws -> Parts? {
    let parts = (deletes: source.makeEmpty(), updates: source.makeEmpty(), inserts: source.makeEmpty())
    let walk = ChangeWalk(0..<0, of: table)
    let areSingle = try forEachSingle(of: table, rule, poll: poll) { change, bytes in
      let part =
        switch change.operation {
        case .delete: parts.deletes
        case .update: parts.updates
        case .insert: parts.inserts
        }
      try part.write(bytes.extracting(change.start..<walk.end(of: change, in: bytes)))
    }
    return areSingle ? parts : nil
  }

  /// Gives each change to `body`, up to the first that may depend on another.
  ///
  /// - Returns: false where there is such a change.
  @inline(__always)
  fileprivate consuming func forEachSingle(
    of table: ChangesetTable, _ rule: SingleChanges.Rule, poll: () throws -> Void = {},
    _ body: (ChangePlace, RawSpan) throws -> Void
  ) throws -> Bool {
    var sorter = self
    var rows = SingleChanges(of: table, rule)
    while try sorter.advance() {
      try poll()
      rows.beginStretch()
      let areSingle = try sorter.bytes.withRawSpan { bytes in
        while let change = sorter.next(in: bytes) {
          guard rows.admits(change, in: bytes) else { return false }
          try body(change, bytes)
        }
        return true
      }
      guard areSingle else { return false }
    }
    return true
  }
}

/// Looks, among the changes of a table in key order, for rows that are changed more than once.
struct SingleChanges {
  /// What counts as one row.
  enum Rule {
    /// Keys are compared by value: 1 and 1.0 are one key.
    case equalKeys
    /// As `equalKeys`, but for a DELETE and an INSERT of which the keys are equal and not the same bytes: a row whose key
    /// became another that compares equal. Whatever their order in the changeset, the DELETE is meant to come first.
    case equalKeysUnlessReplaced
  }

  private let key: KeyLayout
  private let rule: Rule
  private var previous: ChangePlace?
  /// True if the previous change replaces the key of the one before it.
  private var isReplacement = false

  init(of table: ChangesetTable, _ rule: Rule) {
    key = KeyLayout(table)
    self.rule = rule
  }

  /// The changes that follow lie in other bytes. Those with equal keys lie together.
  mutating func beginStretch() {
    previous = nil
    isReplacement = false
  }

  /// Takes the next change.
  ///
  /// - Returns: false when its row is changed by the one before, too.
  mutating func admits(_ change: ChangePlace, in bytes: RawSpan) -> Bool {
    defer { previous = change }
    guard let previous, key.order(previous.start, change.start, in: bytes) == 0 else {
      isReplacement = false
      return true
    }
    let operations = (previous.operation, change.operation)
    guard rule == .equalKeysUnlessReplaced, !isReplacement,
      operations == (.delete, .insert) || operations == (.insert, .delete),
      !key.isSame(previous.start, change.start, in: bytes)
    else { return false }
    isReplacement = true
    return true
  }
}
