import BuckiaLedger
import SQLiteChangesets
import SQLiteSchemas

/// What became of recorded conflicts that were to be resolved.
public struct ResolveCounts: Equatable, Sendable {
  /// How many were resolved.
  public package(set) var resolved = 0
  /// Of those, for how many the row was written.
  public package(set) var changed = 0
  /// Of those, how many could not be kept as a rule, or were not to be.
  public package(set) var withoutRule = 0
  /// How many were not resolved.
  public package(set) var refused = 0
  /// Of those, for how many the reason is that the row was changed since, or that other rows refer to it: a person can force them.
  public package(set) var changedSince = 0

  /// How many there were.
  public var total: Int { resolved + refused }

  /// Adds what became of others.
  package mutating func add(_ others: ResolveCounts) {
    resolved += others.resolved
    changed += others.changed
    withoutRule += others.withoutRule
    refused += others.refused
    changedSince += others.changedSince
  }

  mutating func add(_ conflict: ResolvedConflict) {
    if let refusal = conflict.refusal {
      refused += 1
      if refusal.code == .rowChanged || refusal.code == .repointsRows { changedSince += 1 }
    } else {
      resolved += 1
      if conflict.hasChanged { changed += 1 }
      if conflict.rule == nil { withoutRule += 1 }
    }
  }
}

/// What became of one recorded conflict that was to be resolved.
public struct ResolvedConflict: Identifiable, Sendable {
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

  /// True if the row was written: it may have been as wanted.
  public var hasChanged: Bool {
    guard refusal == nil else { return false }
    guard let before, let after else { return (before == nil) != (after == nil) }
    return !before.elementsEqual(after) { $0 == $1 }
  }
}
