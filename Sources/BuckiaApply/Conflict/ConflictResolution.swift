import SQLiteChangesets

/// How one conflict is resolved.
enum ConflictResolution {
  /// The local row stays as it is.
  case keepLocal
  /// All that came in is written.
  case takeIncoming
  /// The three versions of the row are merged column by column. The policy decides about columns that both sides have changed;
  /// that of each column where there is none.
  case merge(ConflictPolicy?)
  /// These values are written.
  case write([String: ChangesetValue])
}
