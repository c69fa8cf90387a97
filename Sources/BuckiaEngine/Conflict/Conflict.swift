import SQLiteChangesets
import SQLiteSchemas

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
  /// A UNIQUE, NOT NULL, CHECK or type constraint refuses the row.
  case constraint
  /// After everything was applied, a row refers to one that is not there.
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

/// One conflict, as a resolver sees it.
public struct Conflict: Sendable {
  /// The table.
  public let table: TableName
  /// Why the change does not fit.
  public let kind: ConflictKind
  /// What the change does.
  public let operation: ChangeOperation
  /// The names of the columns of the three rows.
  public let columns: [String]
  /// The row as its author saw it before the change, as far as the change tells. Nil for an INSERT.
  public let base: [ChangesetValue?]?
  /// The row as it is here. Nil when there is none.
  public let local: [ChangesetValue?]?
  /// The row as its author wants it; columns that stay are nil. Nil for a DELETE.
  public let incoming: [ChangesetValue?]?
}

/// A resolver's answer.
public enum ConflictDecision: Sendable {
  /// What the policy of the options says.
  case useDefault
  /// Keep the local row.
  case keepLocal
  /// Write the incoming version.
  case takeIncoming
  /// Refuse the whole diff.
  case abort
}

/// Is asked about each conflict. It may be asked twice about the same one, when a group of files is run again.
public typealias ConflictResolver = (borrowing Conflict) throws -> ConflictDecision
