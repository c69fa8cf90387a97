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
}
