import BuckiaFormat

/// Whom a text names: a contact, somebody whose card is in a file, or an age recipient.
package final class Recipients {
  private let home: BuckiaHome
  /// The contacts, read once: each of their cards has a signature to be verified.
  private lazy var contacts = Result { try home.contacts() }

  /// Looks names up among the contacts of a home folder.
  package init(in home: BuckiaHome) { self.home = home }

  /// Somebody to share with. A name that is nobody's is taken as it is; nothing can be encrypted for it.
  ///
  /// - Throws: `BuckiaError` when the contacts or the card cannot be read.
  package func recipient(_ text: String) throws -> ShareRecipient {
    if text.lowercased().hasPrefix("age1") { return ShareRecipient(try AgeRecipient(text)) }
    let contacts = try contacts.get()
    if let contact = contacts.contact(named: text) { return ShareRecipient(contact) }
    guard let card = try card(text) else { return ShareRecipient(text) }
    // Under the name that the person knows, the share is the same as before.
    if let contact = contacts.all.first(where: { $0.card == card }) { return ShareRecipient(contact) }
    return ShareRecipient(card)
  }

  /// A key to encrypt for.
  ///
  /// - Throws: `BuckiaError`, with `noSuchContact` for a name that is nobody's.
  package func key(_ text: String) throws -> AgeRecipient {
    if let key = try recipient(text).key { return key }
    return try ShareRecipient(home.contact(named: text)).key ?? AgeRecipient(text)
  }

  private func card(_ text: String) throws -> IdentityCard? {
    if text.hasPrefix("buckia-card-") { return try IdentityCard(text) }
    return FileSystem.exists(text) ? try IdentityCard(contentsOf: text) : nil
  }
}
