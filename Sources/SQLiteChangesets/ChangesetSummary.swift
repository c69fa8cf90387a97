/// What a changeset holds, counted in one pass.
///
/// ```swift
/// for entry in try ChangesetSummary.of(bytes).tables {
///   print(entry.table.name, entry.inserted, entry.updated, entry.deleted)
/// }
/// ```
public struct ChangesetSummary: Equatable, Sendable {
  /// The changes of one table, over all its sections.
  public struct Table: Equatable, Sendable {
    /// The table as its first header describes it.
    public let table: ChangesetTable
    /// How many rows are inserted.
    public internal(set) var inserted = 0
    /// How many rows are updated, those included for which no column is set.
    public internal(set) var updated = 0
    /// How many rows are deleted.
    public internal(set) var deleted = 0

    /// How many changes there are in all.
    public var changeCount: Int { inserted + updated + deleted }
  }

  /// The tables that have changes, in order of first appearance.
  public private(set) var tables: [Table] = []
  /// How many bytes there are in all, headers included.
  public let byteCount: Int

  /// Whether it holds old values or not; nil when there are no changes.
  public var format: ChangesetFormat? { tables.first?.table.format }
  /// How many changes there are in all.
  public var changeCount: Int { tables.reduce(0) { $0 + $1.changeCount } }
  /// How many rows are inserted in all tables.
  public var inserted: Int { tables.reduce(0) { $0 + $1.inserted } }
  /// How many rows are updated in all tables.
  public var updated: Int { tables.reduce(0) { $0 + $1.updated } }
  /// How many rows are deleted in all tables.
  public var deleted: Int { tables.reduce(0) { $0 + $1.deleted } }

  /// Reads and checks every change, and counts.
  ///
  /// - Throws: `ChangesetError` when the bytes are no changeset, and with code `incompatibleTables` when one table
  ///   appears with different columns or keys (its name compared without regard to the case of ASCII letters).
  public static func of(_ bytes: RawSpan) throws(ChangesetError) -> ChangesetSummary {
    var summary = ChangesetSummary(byteCount: bytes.byteCount)
    var directory = TableDirectory()
    var reader = ChangesetReader()
    var place = 0
    while let change = try reader.next(in: bytes) {
      if change.startsTable, let found = try directory.place(of: reader, in: bytes) {
        place = found
        if found == summary.tables.count { summary.tables.append(Table(table: directory.entries[found].table)) }
      }
      switch change.operation {
      case .insert: summary.tables[place].inserted += 1
      case .update: summary.tables[place].updated += 1
      case .delete: summary.tables[place].deleted += 1
      }
    }
    return summary
  }
}
