/// Why a change could not be applied as its author made it.
///
/// The names are those of the session extension: <https://sqlite.org/session/c_changeset_conflict.html>.
public enum ConflictKind: String, Sendable, CaseIterable, Codable {
  /// UPDATE or DELETE: the row is there, with other values than the author saw.
  case data
  /// UPDATE or DELETE: the row is not there.
  case notFound = "not-found"
  /// INSERT: a row with this key is there already.
  case conflict
  /// A UNIQUE, NOT NULL, CHECK, foreign-key or type constraint, or a trigger, refuses the row.
  case constraint
  /// The row refers to one that is not there, or that is another one here than its author means.
  case foreignKey = "foreign-key"
}

/// What became of a conflicting change.
public enum ConflictOutcome: String, Sendable, Codable {
  /// The local row stayed; the incoming version is in the conflict record.
  case keptLocal = "kept-local"
  /// The incoming version was written; the local one is in the conflict record.
  case tookIncoming = "took-incoming"
  /// Some of its columns were written, others kept their local value.
  case merged
  /// Values that a resolver gave were written.
  case resolved
  /// The change could not be written under any policy and was left out.
  case omitted
  /// The row stands, with a foreign key that leads nowhere or to another row than before; it is only reported.
  case reported

  /// Whether every local value that another could have replaced is still in the row. Those that a merge has replaced are what
  /// the author saw.
  var keepsLocalValues: Bool { self != .tookIncoming && self != .resolved }
}
