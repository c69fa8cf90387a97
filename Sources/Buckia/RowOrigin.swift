import BuckiaKSUID

/// Where a row comes from: which diffs have set its columns last.
public struct RowOrigin: Sendable {
  /// A diff that has changed a row.
  public struct Source: Sendable, Equatable {
    /// The diff's id. It stays the same however often the change is passed on.
    public let diff: KSUID
    /// Its sender, for people: "unsigned", "key …" with the verified key, or "this database" where the diff was made
    /// from it. A diff that only another one has named, as the one that a change was passed on from, counts as unsigned.
    public let sender: String
    /// When it was applied here, in milliseconds since 1970; nil for a diff that was made from this database, or
    /// reached it through another.
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
