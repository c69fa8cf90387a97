import BuckiaBytes

/// Who wins where local and incoming changes of a row contradict each other.
public enum RebasePolicy: String, Codable, Sendable, CaseIterable {
  /// The local change is made anyway.
  case keepLocal = "keep-local"
  /// The incoming change stands, and the local one is left out.
  case takeIncoming = "take-incoming"
}

/// A row that local and incoming changes do not agree on, and who won.
public struct RebaseConflict: Equatable, Sendable {
  /// What the changes do not agree on. More may come.
  public enum Kind: String, Codable, Sendable, CaseIterable {
    /// Both have set the same columns, to different values.
    case updatedByBoth = "updated-by-both"
    /// Both have inserted different rows with one key.
    case insertedByBoth = "inserted-by-both"
    /// The row is deleted by the local changes, and changed by the incoming ones.
    case deletedByLocal = "deleted-by-local"
    /// The row is deleted by the incoming changes, and changed by the local ones.
    case deletedByIncoming = "deleted-by-incoming"
    /// Both have given the same UNIQUE values to different rows.
    case unique
    /// Both have set columns of a UNIQUE constraint, of which other columns are not in the changes: only a database can tell if
    /// the values are unique.
    case undecidedUnique = "undecided-unique"
    /// The old values differ: the changes were not made from the same state.
    case differentBase = "different-base"
    /// The row refers to a row of the same side that was left out, or replaced.
    case parentLeftOut = "parent-left-out"
  }

  /// The table.
  public let table: String
  /// The values of the row's key, in column order.
  public let key: [ChangesetValue]
  /// What they do not agree on.
  public let kind: Kind
  /// The columns that it is about, as they are numbered in the changes, from 0; empty for the whole row.
  public let columns: [Int]
  /// Who won.
  public let winner: RebasePolicy

  /// Creates a conflict.
  package init(table: String, key: [ChangesetValue], kind: Kind, columns: [Int], winner: RebasePolicy) {
    self.table = table
    self.key = key
    self.kind = kind
    self.columns = columns
    self.winner = winner
  }
}

/// The conflicts that rebasing has met: how many, and the first of them.
public struct RebaseConflicts: Sendable {
  /// How many conflicts are listed.
  public static let listLimit = 1_000

  /// The first conflicts.
  public private(set) var listed: [RebaseConflict] = []
  /// How many there are in all.
  public private(set) var count = 0

  /// No conflicts.
  public init() {}

  /// Counts a conflict, and lists it if there is room.
  mutating func add(_ conflict: RebaseConflict) {
    count += 1
    if listed.count < Self.listLimit { listed.append(conflict) }
  }

  /// Adds those of another table.
  mutating func add(_ others: RebaseConflicts) {
    listed += others.listed.prefix(Self.listLimit - listed.count)
    count += others.count
  }
}
