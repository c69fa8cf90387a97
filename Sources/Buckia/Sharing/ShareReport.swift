import BuckiaDiff
import BuckiaBytes
import SQLiteSchemas
import BuckiaSharing

/// What ``DatabaseManager/share(_:to:output:options:signedBy:progress:)`` did.
public struct ShareReport: Sendable {
  /// What is sent of one table.
  public struct Table: Sendable, Equatable {
    /// The table's name.
    public let name: String
    /// The columns that others get.
    public let columns: [String]
    /// Rows that are new to the receivers.
    public let inserted: Int
    /// Rows of which they get other values.
    public let updated: Int
    /// Rows that were deleted here.
    public let deleted: Int
    /// Rows that are not shared any more.
    public let withdrawn: Int
    /// Rows that are not shared any more, and stay where they are.
    public let kept: Int
    /// The rows: their keys. Empty unless it was a dry run.
    public internal(set) var changes: [Change]
  }

  /// A row that a dry run would send.
  public struct Change: Sendable, Equatable {
    /// What happens to it at the receivers.
    public let operation: ChangeOperation
    /// The values of its key; the whole row where it has none.
    public let key: [ChangesetValue]
  }

  /// A file that was written to where it goes.
  public struct Delivery: Sendable, Equatable {
    /// The diff's id.
    public let id: KSUID
    /// Where it is; nil for a stream.
    public let path: String?
    /// Its size in bytes.
    public let bytes: Int
    /// The names of those who get it.
    public let recipients: [String]
  }

  /// The id of the diff file; nil where nothing has changed since the last one, and in a dry run.
  public internal(set) var id: KSUID?
  /// The file that was written; nil where there is none, and for a stream.
  public internal(set) var path: String?
  /// Its size in bytes.
  public internal(set) var bytes = 0
  /// All files of the diff, ``path`` first: one for up to 64 recipients whom it is encrypted for. They have the same id and the same
  /// contents, and each recipient needs one of them. Those behind the first are in the folders `group-2`, `group-3` … beside it.
  public internal(set) var files: [Delivery] = []
  /// Whether it holds everything in the scope, and not only what has changed.
  public internal(set) var isSnapshot = false
  /// Its number in the stream; 0 where there is none.
  public internal(set) var sequence: Int64 = 0
  /// What is sent.
  public internal(set) var tables: [Table] = []
  /// Rows that are left out until they are mended, since they refer to rows that the receivers would not have. Those that were sent
  /// earlier stay at the receivers as they were sent last, unless a resync sends everything again.
  public internal(set) var leftOut: [LeftOutRows] = []
  /// What does not travel.
  public internal(set) var skipped: [SkippedItem] = []
  /// Files of earlier calls that were delivered first.
  public internal(set) var delivered: [Delivery] = []
  /// Whether nothing was written or sent.
  public internal(set) var isDryRun = false
  /// Whether changes are left for another call, because an output of one file was taken by an earlier one.
  public internal(set) var isIncomplete = false
  /// What is worth knowing about it.
  public internal(set) var warnings: [Remark] = []
  /// How long it took, in seconds.
  public internal(set) var seconds = 0.0
}
