import BuckiaFormat
import BuckiaBytes
import SQLiteSchemas

/// Who signs what is shared, and for whom it is encrypted.
struct ShareSealing {
  private let signer: ManifestSigner?
  /// The key that signs, in hex; empty where nobody does.
  let signerKey: String
  /// Whether its owner had other keys before.
  private let hasFormerKeys: Bool
  /// The files that a diff is: one for all recipients, or several where there are more than one can be encrypted for.
  let groups: [ShareGroup]
  /// The public keys of all recipients; empty where one has none.
  private let keys: [[UInt8]]
  /// What people should know about the recipients.
  let remarks: [Remark]

  /// - Throws: `BuckiaError` with `cannotEncrypt` or `noIdentity` when it cannot be done as it is asked for; `AgeError` for keys that
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

  /// Whether what was sent last was signed by another key, from which its receivers do not take anything now.
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
  /// - Throws: `DiffFileError`, `AgeError`, `ByteStreamError`; what `body` throws.
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
