import BuckiaBytes
import BuckiaFormat
import SQLiteSchemas

/// Who signs what is shared, and for whom it is encrypted.
struct ShareSealing {
  private let signer: ManifestSigner?
  /// The key that signs, in hex; empty where nobody does.
  let signerKey: String
  /// True if its owner had other keys before.
  private let hasFormerKeys: Bool
  /// The files that a diff is: one for all recipients, or several where there are more than one can be encrypted for.
  let groups: [ShareGroup]
  /// The public keys of all recipients; empty where one has none.
  private let keys: [[UInt8]]
  /// What people should know about the recipients.
  let remarks: [Remark]

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
    remarks =
      options.isUnencrypted
      ? [] : recipients.filter(\.isUnconfirmed).map { Remark(.recipientUnconfirmed, EscapedText.quoted($0.name)) }
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

  /// True if what was sent last was signed by another key, from which its receivers do not take anything now.
  ///
  /// - Parameter last: That key; nil where it is not known, because an earlier version has sent it.
  func isOther(than last: String?) -> Bool { last.map { $0 != signerKey } ?? hasFormerKeys }

  /// For whom the next file is; nil where that cannot be said.
  func audience() -> Audience? { Audience(of: Array(keys)) }

  /// The name of the file of a diff.
  func name(of id: KSUID) -> String {
    groups.contains { $0.encryption != nil } ? DiffFileName.encrypted(id) : DiffFileName.diff(id)
  }

  /// Makes the files of a diff. It is packed and signed once; a single file is encrypted as it comes into being.
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

/// Those recipients of a share who get the same file.
struct ShareGroup {
  /// What they are called.
  let names: [String]
  /// For whom the file is encrypted; nil for one that is not.
  var encryption: Encryption?

  /// Divides recipients, who all have keys, by what a file can be encrypted for at most. The same people are always divided in the same
  /// way, so that each gets all files of a share in the same folder.
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
  /// What they are called here. It tells the shares with different people apart: with the same people under the same names, a share
  /// goes on where it was.
  public let name: String
  /// What is encrypted for them.
  package let key: AgeRecipient?
  /// True if they are a contact whose fingerprint nobody has compared.
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
