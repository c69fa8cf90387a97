import SQLiteChangesets

/// How one conflict is resolved.
enum ConflictResolution {
  /// The local row stays as it is.
  case keepLocal
  /// All that came in is written.
  case takeIncoming
  /// The three versions of the row are merged column by column.
  case merge
  /// These values are written.
  case write([String: ChangesetValue])
}
