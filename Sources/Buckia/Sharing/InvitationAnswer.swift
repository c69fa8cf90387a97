import SQLiteConnections

/// What became of the answer to an invitation that has arrived.
public struct InvitationAnswer: Hashable, Codable, Sendable {
  /// What became of it.
  public enum State: String, Codable, Sendable {
    /// The person who has answered is a trusted contact now, and the invitation is used.
    case accepted
    /// It was taken before, from the same person.
    case alreadyAccepted = "already-accepted"
    /// It is refused, and has changed nothing.
    case refused
    /// The answer is for an invitation of another person or database, and is left alone.
    case notOurs = "not-ours"
  }

  /// The file.
  public let path: String
  /// The outcome.
  public let state: State
  /// The local name of the contact who has answered; nil unless it was accepted.
  public internal(set) var contact: Contact?
  /// The time of the invitation, in milliseconds since 1970; nil if unknown.
  public internal(set) var invitedAt: Int64?
  /// The scope that they were invited to; nil unless it was accepted.
  public internal(set) var scope: ShareScope?
  /// Why it was refused.
  public internal(set) var reason: String?
  /// The code of the error behind the reason.
  public internal(set) var code: BuckiaErrorCode?
  /// True if the file has been removed, because all its contents are recorded.
  public internal(set) var isRemoved = false
}
