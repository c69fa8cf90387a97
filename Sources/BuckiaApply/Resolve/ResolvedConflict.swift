import BuckiaLedger
import SQLiteChangesets
import SQLiteSchemas

/// The counts of a resolution.
public struct ResolveCounts: Hashable, Codable, Sendable {
  /// The number of resolved conflicts.
  public package(set) var resolved = 0
  /// The number of resolved conflicts whose row was written.
  public package(set) var changed = 0
  /// The number of resolved conflicts without a rule.
  public package(set) var withoutRule = 0
  /// The number of refused conflicts.
  public package(set) var refused = 0
  /// The number of conflicts that were refused because the row was changed since, or other rows refer to it. A person
  /// can force them.
  public package(set) var changedSince = 0

  /// The number of conflicts.
  public var total: Int { resolved + refused }

  /// Adds the counts of other conflicts.
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

/// The result for one conflict.
public struct ResolvedConflict: Hashable, Codable, Identifiable, Sendable {
  /// A column in which the row differs from its last known version.
  public struct Difference: Hashable, Codable, Sendable {
    /// The column.
    public let column: String
    /// The last known value; nil if there was no row, or the value is not recorded.
    public let known: ChangesetValue?
    /// The present value; nil if there is no row.
    public let present: ChangesetValue?
  }

  /// The reason that a conflict was not resolved. Nothing was written for it.
  public struct Refusal: Hashable, Codable, Sendable {
    /// The code of the refusal: `row-changed`, `row-refused`, `broken-reference`, `no-such-conflict`, …
    public let code: BuckiaErrorCode
    /// A sentence for people.
    public let reason: String
    /// For `row-changed`, the columns in which the row differs from its last known version.
    public var differences: [Difference] = []
  }

  /// The number of the conflict.
  public let id: Int64
  /// The table; empty when there is no such conflict.
  public internal(set) var table = ""
  /// The key of the row.
  public internal(set) var key: [ConflictRecord.Cell] = []
  /// The row before; nil if there was none.
  public internal(set) var before: [ConflictRecord.Cell]?
  /// The row afterwards; nil if there is none.
  public internal(set) var after: [ConflictRecord.Cell]?
  /// Columns of a new row that the answer has no value for. They have got their default.
  public internal(set) var unknownColumns: [String] = []
  /// Columns of the record that the table no longer has. Their values were left out.
  public internal(set) var lostColumns: [String] = []
  /// The rule that was made of the answer; nil if none was wanted, or none can decide such a conflict.
  public internal(set) var rule: ConflictRule?
  /// The reason that the conflict was not resolved; nil if it was.
  public internal(set) var refusal: Refusal?

  /// True if the row was written. It may have been as wanted before.
  public var hasChanged: Bool {
    guard refusal == nil else { return false }
    guard let before, let after else { return (before == nil) != (after == nil) }
    return before != after
  }
}
