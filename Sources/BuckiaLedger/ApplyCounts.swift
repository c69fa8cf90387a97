/// How many rows applying changed, and how many changes met a conflict.
public struct ApplyCounts: Equatable, Sendable {
  /// Rows inserted.
  public var inserted = 0
  /// Rows updated.
  public var updated = 0
  /// Rows deleted.
  public var deleted = 0
  /// Conflicts met.
  public var conflicts = 0
  /// Conflicts that a rule has decided.
  public var decidedByRule = 0
  /// Changes not written because of a conflict.
  public var omitted = 0
  /// Changes with nothing left to do: the local row was equal already, or gone.
  public var unchanged = 0

  /// Rows inserted, updated and deleted.
  package var written: Int { inserted + updated + deleted }

  /// Makes counts of nothing.
  public init() {}

  /// Makes the counts of changes that were all written, or are to be.
  package init(inserted: Int, updated: Int, deleted: Int) {
    self.inserted = inserted
    self.updated = updated
    self.deleted = deleted
  }

  /// Adds the counts of another part of the work.
  package static func += (sum: inout ApplyCounts, other: ApplyCounts) {
    sum.inserted += other.inserted
    sum.updated += other.updated
    sum.deleted += other.deleted
    sum.conflicts += other.conflicts
    sum.decidedByRule += other.decidedByRule
    sum.omitted += other.omitted
    sum.unchanged += other.unchanged
  }
}
