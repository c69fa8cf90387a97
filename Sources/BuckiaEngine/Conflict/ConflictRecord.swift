import SQLiteChangesets

/// A conflict as it is kept in the database.
public struct ConflictRecord: Sendable {
  /// A column of a row and its value there; nil where the record holds none.
  public typealias Cell = (column: String, value: ChangesetValue?)

  /// The record's number in this database.
  public let id: Int64
  /// The diff file's id, or the content digest of a raw changeset.
  public let diff: String
  /// The table.
  public let table: String
  /// The row's key.
  public let key: [Cell]
  /// Why the change did not fit.
  public let kind: ConflictKind
  /// What became of it.
  public let outcome: ConflictOutcome
  /// The row as the author saw it.
  public let base: [Cell]?
  /// The row as it was here.
  public let local: [Cell]?
  /// The row as the author wants it.
  public let incoming: [Cell]?
  /// SQLite's or the engine's words, where there are any.
  public let reason: String?
}
