/// The signature and encryption of a share.
struct ShareSealing {
  private let signer: ManifestSigner?
  /// The signing key in hexadecimal digits; empty for unsigned files.
  let signerKey: String
  /// True if its owner had other keys before.
  private let hasFormerKeys: Bool
  /// The files of a diff: one for all recipients, or several if there are more than one file can be encrypted for.
  let groups: [ShareGroup]
  /// The public keys of all recipients; empty if any has none.
  private let keys: [[UInt8]]
  /// Warnings about the recipients.
  let warnings: [Warning]

  /// - Throws: `BuckiaError` with `cannotEncrypt` or `noIdentity` when it cannot be done as it is asked for; `IdentityError` for keys that
  ///   do not go together.
  init(of options: ShareOptions, for recipients: [ShareRecipient], signedBy identity: Identity?) throws {
    signer = try identity.map { try ManifestSigner($0) }
    signerKey = identity?.card.key ?? ""
    hasFormerKeys = identity?.rotations.isEmpty == false
    let found = recipients.compactMap(\.key)
    let unique = Set(found.map(\.keyBytes))
    let isAddressed = found.count == recipients.count && unique.count <= DiffFileLimits.recipients
    keys = isAddressed ? unique.sorted { $0.lexicographicallyPrecedes($1) } : []
    warnings =
      options.isUnencrypted
      ? [] : recipients.filter(\.isUnconfirmed).map { Warning(.recipientUnconfirmed, EscapedText.quoted($0.name)) }
    guard !options.isUnencrypted else {
      groups = [ShareGroup(names: recipients.map(\.name))]
      return
    }
    if let other = recipients.first(where: { $0.key == nil }) {
      throw BuckiaError(
        .cannotEncrypt,
        "nothing can be encrypted for \(EscapedText.quoted(other.name)), who is no contact; add their card first "
          + "(buckia contact add), or allow that it is not encrypted (--unencrypted)")
    }
    guard identity != nil else {
      throw BuckiaError(
        .noIdentity,
        "what is shared is signed, and there is no identity to sign with; make one first (buckia identity new), or allow that it "
          + "is not encrypted (--unencrypted)")
    }
    guard isAddressed else {
      throw BuckiaError(
        .cannotEncrypt,
        "a diff can have up to \(DiffFileLimits.recipients) recipients, and there are \(unique.count); share with some of them at a "
          + "time")
    }
    groups = try ShareGroup.groups(of: recipients)
  }

  /// True if the last diff was signed with another key, whose files receivers refuse now.
  ///
  /// - Parameter last: The key of the last diff; nil if unknown.
  func isOther(than last: String?) -> Bool { last.map { $0 != signerKey } ?? hasFormerKeys }

  /// The audience of the next file; nil if it cannot be named.
  func audience() -> Audience? { Audience(of: Array(keys)) }

  /// The name of the file of a diff.
  func name(of id: KSUID) -> String {
    groups.contains { $0.encryption != nil } ? DiffFileName.encrypted(id) : DiffFileName.diff(id)
  }

  /// Makes the files of a diff. It is packed and signed once; a single file is encrypted while it is written.
  ///
  /// - Parameter body: Takes each file, in the order of the groups, before the next one is made.
  /// - Returns: What was written, the same in all of them.
  /// - Throws: `DiffFileError`, `IdentityError`, `ByteStreamError`; what `body` throws.
  func write(
    _ draft: DiffFileDraft, changeset: TemporaryBuffer, _ body: (ShareGroup, TemporaryBuffer) throws -> Void
  ) throws -> WrittenDiffFile {
    var writer = DiffFileWriter()
    writer.signer = signer
    let first = TemporaryBuffer()
    guard groups.count > 1 else {
      let encrypting = try groups.first?.encryption.map { try EncryptingOutput(first, for: $0) }
      let written = try writer.write(draft, changeset: changeset, to: encrypting ?? first)
      try encrypting?.finish()
      try first.finish()
      for group in groups { try body(group, first) }
      return written
    }
    let written = try writer.write(draft, changeset: changeset, to: first)
    try first.finish()
    for group in groups {
      guard let encryption = group.encryption else { continue }
      let contents = TemporaryBuffer()
      let encrypting = try EncryptingOutput(contents, for: encryption)
      try first.forEachPiece { try encrypting.write($0) }
      try encrypting.finish()
      try contents.finish()
      try body(group, contents)
    }
    return written
  }
}

/// The recipients of a share who get the same file.
struct ShareGroup {
  /// Their names.
  let names: [String]
  /// For whom the file is encrypted; nil for one that is not.
  var encryption: Encryption?

  /// Divides recipients, who all have keys, into groups for one file each. Equal lists are divided in the same way,
  /// which sends all files of a share for one person to the same folder.
  ///
  /// - Throws: `IdentityError` with code `noRecipients` or `mixedRecipients`.
  static func groups(of recipients: [ShareRecipient]) throws -> [ShareGroup] {
    let sorted = recipients.sorted { $0.name < $1.name }
    // Several files would have the same contents, as weakly encrypted as the weakest.
    let safe = sorted.count { $0.key?.isQuantumSafe == true }
    let isMixed = safe > 0 && safe < sorted.count
    var groups: [[ShareRecipient]] = isMixed ? [sorted] : []
    var places: [AgeRecipient: Int] = [:]
    for recipient in isMixed ? [] : sorted {
      guard let key = recipient.key else { continue }
      // Somebody with two names has one key, and opens one file.
      let place = places[key] ?? places.count / Encryption.recipientLimit
      places[key] = place
      if place == groups.count { groups.append([]) }
      groups[place].append(recipient)
    }
    return try groups.map { group in
      ShareGroup(names: group.map(\.name), encryption: try Encryption(to: group.compactMap(\.key)))
    }
  }
}

/// Somebody a part of a database is shared with.
public struct ShareRecipient: Hashable, Sendable {
  /// The local name. It distinguishes shares with different people: with the same people under the same names, a share
  /// continues.
  public let name: String
  /// The key to encrypt for.
  package let key: AgeRecipient?
  /// True for a contact whose fingerprint was not compared.
  let isUnconfirmed: Bool
  /// The signing key in hexadecimal digits; nil if unknown.
  let signer: String?

  /// Creates a recipient without a key. Shares with it cannot be encrypted.
  public init(_ name: String) {
    self.name = name
    key = nil
    isUnconfirmed = false
    signer = nil
  }

  /// Creates a recipient from a contact. Until the contact is trusted, the owner of the card is unknown, and a warning
  /// says so.
  public init(_ contact: Contact) {
    name = contact.shareName
    key = AgeRecipient(x25519: contact.card.encryptionKey.bytes)
    isUnconfirmed = contact.state != .trusted
    signer = contact.card.key
  }

  /// Creates a recipient from a card. It is identified by its key, and not by the name on the card.
  public init(_ card: IdentityCard) {
    name = card.key
    key = AgeRecipient(x25519: card.encryptionKey.bytes)
    isUnconfirmed = false
    signer = card.key
  }

  /// Creates a recipient from an age recipient.
  public init(_ recipient: AgeRecipient) {
    name = recipient.description
    key = recipient
    isUnconfirmed = false
    signer = nil
  }
}

/// Finds the recipients that texts name: contacts, files with cards, and age recipients.
package final class Recipients {
  private let home: BuckiaHome
  /// The contacts, read once: each of their cards has a signature to be verified.
  private lazy var contacts = Result { try home.contacts() }

  /// Looks names up among the contacts of a home folder.
  package init(in home: BuckiaHome) { self.home = home }

  /// The recipient for a text. An unknown name is used verbatim, and shares with it cannot be encrypted.
  ///
  /// - Throws: `BuckiaError` when the contacts or the card cannot be read.
  package func recipient(_ text: String) throws -> ShareRecipient {
    if text.lowercased().hasPrefix("age1") { return ShareRecipient(try AgeRecipient(text)) }
    let contacts = try contacts.get()
    if let contact = contacts.contact(named: text) { return ShareRecipient(contact) }
    guard let card = try card(text) else { return ShareRecipient(text) }
    // With the contact's name, the share is the same as before.
    if let contact = contacts.all.first(where: { $0.card == card }) { return ShareRecipient(contact) }
    return ShareRecipient(card)
  }

  /// A key to encrypt for.
  ///
  /// - Throws: `BuckiaError`, with `noSuchContact` for an unknown name.
  package func key(_ text: String) throws -> AgeRecipient {
    if let key = try recipient(text).key { return key }
    return try ShareRecipient(home.contact(named: text)).key ?? AgeRecipient(text)
  }

  private func card(_ text: String) throws -> IdentityCard? {
    if text.hasPrefix("buckia-card-") { return try IdentityCard(text) }
    return FileSystem.exists(text) ? try IdentityCard(contentsOf: text) : nil
  }
}
