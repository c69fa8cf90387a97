import BuckiaLedger
import SQLiteSchemas

/// Which recorded conflicts are wanted. Without any condition it is all of them.
///
/// ```swift
/// var filter = ConflictFilter()
/// filter.table = "notes"
/// filter.kind = .data
/// for conflict in try database.conflicts(matching: filter) { print(conflict.id) }
/// ```
public struct ConflictFilter: Equatable, Sendable {
  /// Those of this table, whatever the case of its name.
  public var table: String?
  /// Those of this diff file: its id, or the content digest of a raw changeset.
  public var diff: String?
  /// Those of this kind.
  public var kind: ConflictKind?

  /// Makes a filter that lets everything through.
  public init() {}

  func matches(_ record: ConflictRecord) -> Bool {
    if let table, !ASCIIName.matches(table, record.table) { return false }
    if let diff, diff != record.diff { return false }
    if let kind, kind != record.kind { return false }
    return true
  }
}

extension DatabaseManager {
  /// The recorded conflicts that are wanted, oldest first.
  ///
  /// - Throws: `BuckiaError` when the database cannot be read, has a newer ledger, or a record is damaged.
  public func conflicts(matching filter: ConflictFilter) throws -> [ConflictRecord] {
    try conflicts().filter(filter.matches)
  }
}
