import SQLiteChangesets

/// How a conflict was resolved after it was recorded. A conflict can be resolved any number of times; each is kept.
public struct ResolutionRecord: Identifiable, Sendable {
  /// A column of a row and its value there; nil where the record holds none.
  public typealias Cell = (column: String, value: ChangesetValue?)

  /// Its number in this database.
  public let id: Int64
  /// The answer that was given.
  public let answer: ConflictAnswer.Kind
  /// Who has decided.
  public let decidedBy: String
  /// When, in milliseconds since 1970.
  public let decidedAt: Int64
  /// The row before; nil when there was none.
  public let before: [Cell]?
  /// The row afterwards; nil when there is none.
  public let after: [Cell]?
}
