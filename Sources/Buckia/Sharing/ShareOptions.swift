/// Somebody a part of a database is shared with.
public struct ShareRecipient: Hashable, Sendable {
  /// What they are called here.
  public let name: String

  /// Names somebody.
  public init(_ name: String) { self.name = name }
}

/// What becomes of a row at the receivers once it is no longer in the scope, while it is still in the database.
public enum LeavePolicy: String, Sendable, CaseIterable {
  /// It is withdrawn: it goes there, too, unless others have shared it as well.
  case withdraw
  /// It stays there as it was sent last.
  case keep
}

/// How to share.
public struct ShareOptions: Sendable {
  /// What becomes of rows that have left the scope.
  public var onLeave = LeavePolicy.withdraw
  /// Whether everything in the scope is sent anew, for a receiver who has lost a file or has never got one.
  public var resyncs = false
  /// Whether the file may be left unencrypted.
  public var allowsUnencrypted = false
  /// Whether nothing is written or sent, and only the report is wanted.
  public var isDryRun = false

  /// Makes options.
  public init() {}
}
