import SQLiteChangesets

/// One of the two versions of a row that a conflict is about.
public enum ConflictVersion: String, Sendable, CaseIterable {
  /// The row as it was here.
  case local
  /// The row as the author of the change wants it.
  case incoming
}

/// How a recorded conflict is resolved.
///
/// ```swift
/// try database.resolve([7], taking: .incoming)
/// try database.resolve([8], taking: .values(["title": "Both"]))
/// ```
public enum ConflictAnswer: Equatable, Sendable {
  /// The row is to be as it was, or as the author of the change wants it.
  case version(ConflictVersion)
  /// These columns get these values. The others keep what the row has; where there is no row, what it had here before, or
  /// else what came in. The key stays.
  case values([String: ChangesetValue])
  /// The row is not to be there.
  case deletion
  /// Both rows are to be there, where two different ones have the same key: the one that is not there is inserted with a new key, which the
  /// database gives out, and incoming rows that were left out because they refer to it follow it. For integer keys only.
  case both
  /// The incoming row is the same as the local one that has its UNIQUE value: that one stays, and incoming rows that were left out because
  /// they refer to the other one refer to it.
  case same

  /// The row is to be exactly as it was when the conflict was met; where there was none, none is to be there.
  public static let local = version(.local)
  /// The row is to be as the author of the change wants it.
  public static let incoming = version(.incoming)

  /// The kind of answer, as it is recorded.
  package var kind: Kind {
    switch self {
    case .version(.local): .local
    case .version(.incoming): .incoming
    case .values: .values
    case .deletion: .deletion
    case .both: .both
    case .same: .same
    }
  }

  /// The kinds of answers.
  public enum Kind: String, Sendable {
    /// The local version.
    case local
    /// The incoming version.
    case incoming
    /// Values of their own.
    case values
    /// No row.
    case deletion
    /// Both rows, one of them with another key.
    case both
    /// The local row that has the UNIQUE value.
    case same
    /// Nobody's: both sides had become equal.
    case equal
  }
}
