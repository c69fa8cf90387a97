import BuckiaFormat
import SQLiteSchemas

/// How to invite somebody.
public struct InvitationOptions: Sendable {
  /// What the person who is invited is going to be called here; nil for what their card says.
  public var recipient: String?
  /// Where the files of both are going to be: a folder or a URL, at most 1,024 bytes. It is only shown, and taken for the answer where
  /// it is a folder there.
  public var folder: String?
  /// How many days the invitation is taken, from 1 to 365.
  public var days = 7

  /// Makes options.
  public init() {}
}

/// What ``DatabaseManager/invite(_:options:as:)`` did.
public struct InvitationReport: Sendable {
  /// The invitation.
  public let invitation: Invitation
  /// What is worth knowing about it.
  public internal(set) var warnings: [Remark] = []
}
