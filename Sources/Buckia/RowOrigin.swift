import BuckiaBytes

/// Where a row comes from: which diffs have set its columns last.
public struct RowOrigin: Sendable {
  /// A diff that has changed a row.
  public struct Source: Sendable, Equatable {
    /// The diff's id. It stays the same however often the change is passed on.
    public let diff: KSUID
    /// The sender, for people: a contact's name, "unsigned", "key …" with the verified key, or "this database" where the diff
    /// was made from it. Where ``isClaimed`` is true, the sender of the diff that names ``diff`` as the origin of the change.
    public let sender: String
    /// True if only another diff, which was applied here, says that the change comes from ``diff``: its sender may have
    /// passed it on, or made it up.
    public let isClaimed: Bool
    /// When the diff of the sender was applied here, in milliseconds since 1970; nil for one that was made from this database.
    public let appliedAt: Int64?
  }

  /// A column, and where its value comes from.
  public struct Column: Sendable, Equatable {
    /// The name of the column.
    public let name: String
    /// Its value; nil where the row is not there.
    public let value: ChangesetValue?
    /// The diff that has set it last; nil where no diff has: it has been so from the beginning, or was changed here and
    /// not sent.
    public let source: Source?
  }

  /// The table.
  public let table: String
  /// Whether the row is there.
  public let exists: Bool
  /// The diff that has inserted the row, or deleted the one that is not there any more; nil where no diff has.
  public let source: Source?
  /// The columns in the order of the table.
  public let columns: [Column]
}
