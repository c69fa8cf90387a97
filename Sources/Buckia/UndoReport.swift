import BuckiaBytes
import SQLiteSchemas

/// What ``DatabaseManager/undo(_:options:)`` did.
public struct UndoReport: Sendable {
  /// One diff that was taken back.
  public struct Undone: Sendable {
    /// What was taken back: its id, or its digest.
    public let diff: String
    /// The id of the undo, by which that can be taken back.
    public let id: KSUID
    /// Rows inserted: those that the diff had deleted.
    public let inserted: Int
    /// Rows updated.
    public let updated: Int
    /// Rows deleted: those that the diff had inserted.
    public let deleted: Int
    /// Rows that have been changed since.
    public let conflicts: Int
    /// What was not taken back because of a conflict.
    public let omitted: Int
    /// The tables that changed.
    public let changedTables: [String]
    /// What is worth knowing.
    public let warnings: [Remark]
  }

  /// A diff that could not be taken back.
  public struct Skipped: Sendable {
    /// The diff: its id, or its digest.
    public let diff: String
    /// What kind of reason.
    public let code: BuckiaErrorCode
    /// Why, as a sentence.
    public let reason: String
  }

  /// What was taken back, the newest first.
  public internal(set) var undone: [Undone] = []
  /// What of a sender could not be taken back. A diff that was named by itself is an error instead.
  public internal(set) var skipped: [Skipped] = []
  /// What is worth knowing about the database; what is about one diff is with that.
  public internal(set) var warnings: [Remark] = []
  /// Whether everything was only tried.
  public let isDryRun: Bool
}
