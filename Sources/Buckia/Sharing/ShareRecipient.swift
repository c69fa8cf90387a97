import BuckiaFormat

/// Somebody a part of a database is shared with.
public struct ShareRecipient: Hashable, Sendable {
  /// What they are called here. It tells the shares with different people apart: with the same people under the same names, a share
  /// goes on where it was.
  public let name: String
  /// What is encrypted for them.
  package let key: AgeRecipient?
  /// Whether they are a contact whose fingerprint nobody has compared.
  let isUnconfirmed: Bool
  /// The key that they sign with, in hex; nil where it is not known.
  let signer: String?

  /// Names somebody who has no key here. What is shared with them cannot be encrypted.
  public init(_ name: String) {
    self.name = name
    key = nil
    isUnconfirmed = false
    signer = nil
  }

  /// Takes a contact. As long as they are not trusted, it is not known whose card it is, and a remark says so.
  public init(_ contact: Contact) {
    name = contact.shareName
    key = AgeRecipient(x25519: contact.card.encryptionKey.bytes)
    isUnconfirmed = contact.state != .trusted
    signer = contact.card.key
  }

  /// Takes somebody's card. They are known here by their key, and not by what they call themselves.
  public init(_ card: IdentityCard) {
    name = card.key
    key = AgeRecipient(x25519: card.encryptionKey.bytes)
    isUnconfirmed = false
    signer = card.key
  }

  /// Takes a key to encrypt for, of whomever it is.
  public init(_ recipient: AgeRecipient) {
    name = recipient.description
    key = recipient
    isUnconfirmed = false
    signer = nil
  }
}
