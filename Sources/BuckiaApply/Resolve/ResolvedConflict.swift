import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteChangesets

/// What became of one recorded conflict that was to be resolved.
public struct ResolvedConflict: Sendable {
  /// A column in which the row is not as it was last known.
  public struct Difference: Equatable, Sendable {
    /// The column.
    public let column: String
    /// Its value when the row was last known; nil where there was no row, or the value is not recorded.
    public let known: ChangesetValue?
    /// Its value now; nil when there is no row.
    public let present: ChangesetValue?
  }

  /// Why a conflict was not resolved. Nothing was written for it.
  public struct Refusal: Sendable {
    /// What kind of refusal: `row-changed`, `row-refused`, `broken-reference`, `no-such-conflict`, …
    public let code: BuckiaErrorCode
    /// A sentence for people.
    public let reason: String
    /// For `row-changed`, in which columns the row is another one than was known.
    public var differences: [Difference] = []
  }

  /// The number of the conflict.
  public let id: Int64
  /// The table; empty when there is no such conflict.
  public internal(set) var table = ""
  /// The key of the row.
  public internal(set) var key: [ConflictRecord.Cell] = []
  /// The row before; nil when there was none.
  public internal(set) var before: [ConflictRecord.Cell]?
  /// The row afterwards; nil when there is none.
  public internal(set) var after: [ConflictRecord.Cell]?
  /// Columns of a new row whose value the answer does not tell: they have got their default.
  public internal(set) var unknownColumns: [String] = []
  /// Columns of the record that the table does not have any more, so that their values were left out.
  public internal(set) var lostColumns: [String] = []
  /// The rule that the answer was kept as; nil where none was wanted, and where none can decide such a conflict.
  public internal(set) var rule: ConflictRule?
  /// Why it was not resolved; nil when it was.
  public internal(set) var refusal: Refusal?

  /// Whether the row was written: it may have been as wanted.
  public var hasChanged: Bool {
    guard refusal == nil else { return false }
    guard let before, let after else { return (before == nil) != (after == nil) }
    return !before.elementsEqual(after) { $0 == $1 }
  }
}
