/// What becomes of a row at the receivers once it is no longer in the scope, while it is still in the database.
public enum LeavePolicy: String, Sendable, CaseIterable {
  /// It is withdrawn: it goes there, too, unless others have shared it as well.
  case withdraw
  /// It stays there as it was sent last.
  case keep
}

/// What becomes of rows that would be shared only because of a change by somebody who does not have them.
public enum WideningPolicy: String, Sendable, CaseIterable {
  /// They are held back, unless ``always`` was said of this share before.
  case hold
  /// Those that are there now are sent.
  case once
  /// They are sent, now and in later shares with the same people.
  case always
  /// They are held back, from now on, too.
  case never
}

/// How to share.
public struct ShareOptions: Sendable {
  /// What becomes of rows that have left the scope.
  public var onLeave = LeavePolicy.withdraw
  /// True if rows that went here because of an undo, or because somebody does not share them any more, are deleted at the receivers, too.
  /// Otherwise they are told that the rows are not shared any more, as with ``LeavePolicy/withdraw``.
  public var propagates = false
  /// What becomes of rows that would be shared only because of a change by somebody who does not have them.
  public var widening = WideningPolicy.hold
  /// True if everything in the scope is sent again, for a receiver who has lost a file or has never got one.
  public var resyncs = false
  /// True if a file is written where there is nothing to send, and changes of others have been applied since the last one: it tells them that
  /// they have. Every other file tells it, too.
  public var acknowledges = false
  /// True if the file is left as it is, neither encrypted nor signed by all means: everybody who gets hold of it can read it.
  public var isUnencrypted = false
  /// True if nothing is written or sent, and only the report is wanted.
  public var isDryRun = false

  /// Makes options.
  public init() {}
}
