/// A person whose card is kept.
///
/// Being kept means nothing yet: whose card it is tells only the fingerprint, compared with its owner. A contact is trusted once
/// somebody has said so.
public struct Contact: Hashable, Identifiable, Sendable {
  /// The key that signs what they send, in hex.
  public var id: String { card.key }

  /// Whether a contact's diffs are applied where only known senders are trusted.
  public enum State: String, Sendable {
    /// Their card was seen.
    case seen
    /// Their fingerprint was confirmed.
    case trusted
  }

  /// Why a contact is trusted.
  public enum Grounds: String, Sendable {
    /// Somebody has compared the fingerprint with its owner.
    case fingerprint
    /// They had the secret of an invitation, which was made for one person and has admitted one.
    case invitation
  }

  /// New keys that somebody who has the old ones proposes.
  public struct Proposal: Hashable, Sendable {
    /// What was proposed.
    public let rotation: KeyRotation
    /// When it was seen first, in milliseconds since 1970.
    public let seenAt: Int64
  }

  /// What the contact is called here: no two have the same name.
  public internal(set) var name: String
  /// The name that shares with them go by: the one before they were renamed first.
  public internal(set) var shareName: String
  /// Their keys.
  public internal(set) var card: IdentityCard
  /// Whether they are trusted.
  public internal(set) var state: State
  /// When their card was seen first, in milliseconds since 1970.
  public let firstSeen: Int64
  /// When they were trusted, in milliseconds since 1970; nil if they are not.
  public internal(set) var trustedAt: Int64?
  /// Why they are trusted; nil if they are not.
  public internal(set) var grounds: Grounds?
  /// New keys that wait to be confirmed; nil for none.
  public internal(set) var proposal: Proposal?

  /// What to compare with the contact: the proposed keys', where some are.
  public var fingerprintToConfirm: Fingerprint { (proposal?.rotation.card ?? card).fingerprint }

  init(
    name: String, shareName: String? = nil, card: IdentityCard, state: State, firstSeen: Int64, trustedAt: Int64?,
    grounds: Grounds?, proposal: Proposal?
  ) {
    self.name = name
    self.shareName = shareName ?? name
    self.card = card
    self.state = state
    self.firstSeen = firstSeen
    self.trustedAt = trustedAt
    self.grounds = grounds
    self.proposal = proposal
  }
}
