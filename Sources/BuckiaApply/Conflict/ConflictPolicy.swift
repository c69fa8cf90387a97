/// What to do about conflicts.
public enum ConflictPolicy: String, Sendable, CaseIterable {
  /// The local row stays, the incoming version goes into the conflict record.
  case keepLocal = "keep-local"
  /// The incoming version is written, the local row goes into the conflict record.
  case takeIncoming = "take-incoming"
  /// The whole diff is refused.
  case abort
}

/// A resolver's answer.
///
/// Not every answer can be had: only `data` and `conflict` know two versions to choose from. To a row that is not there
/// (`not-found`), or that a constraint refuses, ``keepLocal`` and ``takeIncoming`` mean the same: the change is left out,
/// and recorded. To ``ConflictKind/foreignKey`` both mean that the violation stands, and is recorded.
public enum ConflictDecision: Sendable {
  /// What the policy of the settings says.
  case useDefault
  /// Keep the local row.
  case keepLocal
  /// Write the incoming version.
  case takeIncoming
  /// Refuse the whole diff.
  case abort
}
