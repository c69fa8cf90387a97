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
    /// Nobody's: both sides had become equal.
    case equal
  }
}
