import BuckiaFormat
import SQLiteSchemas

/// What ``DatabaseManager/accept(_:named:answer:as:)`` did.
public struct AcceptanceReport: Sendable {
  /// Who has invited: a trusted contact now. Nil where the invitation was accepted before.
  public internal(set) var inviter: Contact?
  /// When it was accepted, in milliseconds since 1970.
  public let acceptedAt: Int64
  /// Whether it was accepted before this call, which has then changed nothing.
  public let wasAccepted: Bool
  /// The answer as one line of text, for its author.
  public let answer: String
  /// The file with the answer, written now; nil for a stream, and where it was delivered before.
  public internal(set) var path: String?
  /// What is worth knowing about it.
  public internal(set) var warnings: [Remark] = []
}
