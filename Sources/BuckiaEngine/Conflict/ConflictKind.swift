/// Why a change could not be applied as its author made it.
///
/// The names are those of the session extension: <https://sqlite.org/session/c_changeset_conflict.html>.
public enum ConflictKind: String, Sendable, CaseIterable {
  /// UPDATE or DELETE: the row is there, with other values than the author saw.
  case data
  /// UPDATE or DELETE: the row is not there.
  case notFound = "not-found"
  /// INSERT: a row with this key is there already.
  case conflict
  /// A UNIQUE, NOT NULL, CHECK, foreign-key or type constraint, or a trigger, refuses the row.
  case constraint
  /// After everything was applied, rows refer to others that are not there.
  case foreignKey = "foreign-key"
}

/// What became of a conflicting change.
public enum ConflictOutcome: String, Sendable {
  /// The local row stayed; the incoming version is in the conflict record.
  case keptLocal = "kept-local"
  /// The incoming version was written; the local one is in the conflict record.
  case tookIncoming = "took-incoming"
  /// The change could not be written under any policy and was left out.
  case omitted
  /// It was applied and the violation stands, reported.
  case reported
}

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
