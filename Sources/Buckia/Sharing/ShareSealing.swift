import BuckiaAge
import BuckiaByteStreams
import BuckiaDiffFiles
import BuckiaIdentities
import BuckiaKSUID
import BuckiaSchemaPlans
import SQLiteSchemas

/// Who signs what is shared, and for whom it is encrypted.
struct ShareSealing {
  private let signer: ManifestSigner?
  private let encryption: Encryption?
  /// The public keys of all recipients; empty where one has none.
  private let keys: [[UInt8]]
  /// What people should know about the recipients.
  let remarks: [Remark]

  /// - Throws: `BuckiaError` with `cannotEncrypt` or `noIdentity` when it cannot be done as it is asked for; `AgeError` for keys that
  ///   do not go together.
  init(of options: ShareOptions, for recipients: [ShareRecipient], signedBy identity: Identity?) throws {
    signer = try identity.map { try ManifestSigner($0) }
    let found = recipients.compactMap(\.key)
    let isAddressed = found.count == recipients.count && found.count <= DiffFileLimits.recipients
    keys = isAddressed ? Set(found.map(\.keyBytes)).sorted { $0.lexicographicallyPrecedes($1) } : []
    remarks =
      options.isUnencrypted
      ? [] : recipients.filter(\.isUnconfirmed).map { Remark(.recipientUnconfirmed, EscapedText.quoted($0.name)) }
    guard !options.isUnencrypted else {
      encryption = nil
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
    encryption = try Encryption(to: found)
  }

  /// For whom the next file is; nil where that cannot be said.
  func audience() -> Audience? {
    guard !keys.isEmpty else { return nil }
    var random = SystemRandomNumberGenerator()
    let bytes = (0..<Audience.Salt.byteCount).map { _ in UInt8.random(in: 0...255, using: &random) }
    guard let salt = Audience.Salt(bytes) else { return nil }
    // In an order that says nothing of who they are.
    let hashes = keys.map { Audience.hash(of: $0, salt: salt) }.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    return .recipients(salt: salt, hashes: hashes)
  }

  /// The name of the file of a diff.
  func name(of id: KSUID) -> String { encryption == nil ? DiffFileName.diff(id) : DiffFileName.encrypted(id) }

  /// Writes a diff file, encrypted as it comes into being.
  ///
  /// - Throws: `DiffFileError`, `AgeError`, `ByteStreamError`.
  func write(
    _ draft: DiffFileDraft, changeset: TemporaryBuffer, to output: any ByteOutput
  ) throws -> WrittenDiffFile {
    var writer = DiffFileWriter()
    writer.signer = signer
    guard let encryption else { return try writer.write(draft, changeset: changeset, to: output) }
    let encrypting = try EncryptingOutput(output, for: encryption)
    let written = try writer.write(draft, changeset: changeset, to: encrypting)
    try encrypting.finish()
    return written
  }
}
