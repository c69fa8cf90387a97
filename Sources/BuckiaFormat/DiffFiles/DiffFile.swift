import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

/// A diff file that has been read once and verified.
///
/// Only ``verified(at:name:)`` and its overloads create one. A value of this type therefore guarantees: the container
/// follows the format exactly, every member matches its digest in the manifest, a signature is the sender's, and
/// manifest, schema, annotations and changeset agree. It does not say that the sender is trusted, or that the changes
/// fit a database.
///
/// ```swift
/// let diff = try DiffFile.verified(at: "inbound/0ujtsYcgvSTl8PAuAdqWYSMnLOv.bdiff")
/// print(diff.manifest.id, diff.manifest.tables.map(\.name))
/// ```
package struct DiffFile: ~Copyable {
  /// What every diff file begins with.
  package static var firstBytes: [UInt8] { ZstdFrameHeader.magic }

  /// True if a file's name must be its diff's id.
  package enum NameRule: Sendable {
    /// The name must be `<KSUID>.bdiff`, or `<KSUID>.bdiff.age` if encrypted, with the id of the manifest: the rule of
    /// inbound folders.
    case mustMatch
    /// A name that is one of these must have the manifest's id; any other name is fine.
    case ifNamedByID
  }

  /// Decrypts an input.
  package typealias Decrypting = (any ByteInput) throws(ByteStreamError) -> any ByteInput

  /// True if a file begins as a diff file does: compressed, with a manifest as its first member.
  package static func begins(at path: String) -> Bool {
    do {
      let archive = try ArchiveReader(
        DigestingInput(PosixFile(reading: path), ContentHasher()), workspace: ZstdWorkspace())
      _ = try archive.firstMember(named: MemberName.manifest, limit: DiffFileLimits.manifestBytes)
      return true
    } catch {
      return false
    }
  }

  /// The signer, if any.
  package enum Signature: Equatable, Sendable {
    /// Without a signature: the sender in the manifest is only a claim.
    case unsigned
    /// The owner of this key, which is also the manifest's `sender.identity`.
    case signed(by: SigningKey)
  }

  /// The beginning of a file, which identifies its maker: the manifest, which may be signed, has the digests of the
  /// rest.
  package struct Head {
    package let manifest: Manifest
    /// SHA-256 of the manifest's bytes, which identifies the diff.
    package let manifestDigest: ContentDigest
    /// The signature, with the signer.
    package let signature: Signature
  }

  /// An attachment.
  package struct Attachment {
    /// Its name below `files/`, safe to use as a relative path.
    package let name: String
    /// The range of its bytes in the buffer of all attachments.
    ///
    /// They share one: a small file can hold thousands of attachments, and as many buffers would take gigabytes of
    /// memory, or all file descriptors of the process.
    let range: Range<Int>
    let all: TemporaryBuffer

    /// The number of its bytes.
    package var byteCount: Int64 { Int64(range.count) }

    /// Calls `body` with its bytes, piece by piece.
    package func forEachPiece(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
      try all.forEachPiece(range, body)
    }
  }

  /// The manifest.
  package let manifest: Manifest
  /// The manifest's exact bytes.
  package let manifestBytes: [UInt8]
  /// SHA-256 of the manifest's bytes, which identifies the diff.
  package let manifestDigest: ContentDigest
  /// SHA-256 of the file's bytes, before decryption.
  package let fileDigest: ContentDigest
  /// The size of the file in bytes.
  package let fileBytes: Int64
  /// The signer, if any.
  package let signature: Signature
  /// The definitions of the tables, unless the file leaves them out.
  package let schema: [TableDefinition]?
  /// The author's whole schema as SQL, if it was sent.
  package let author: AuthorSchema?
  /// The changes, in the format of SQLite's session extension.
  package let changeset: TemporaryBuffer
  /// The tables, and how many changes each has.
  package let inspection: ChangesetInspection
  /// The origins of the changes; nil if they are all the sender's own edits.
  package let annotations: Annotations?
  /// The attachments.
  package let attachments: [Attachment]
}

/// A diff file whose manifest, signature and table definitions are verified, while another thread still decompresses,
/// digests and checks its changes.
///
/// Its changes may only be applied inside a transaction that is rolled back when the rest of the file is invalid:
/// nothing may be committed before `file()` has returned. Otherwise, wait for a ``DiffFile``. While the transaction is
/// open, other connections cannot write: when the rest takes long to arrive, the feed throws `Incomplete`.
package final class StreamedDiffFile: @unchecked Sendable {
  /// Passes a noncopyable file to another thread.
  package final class Box: @unchecked Sendable {
    /// The verified file.
    package let file: DiffFile
    init(_ file: consuming DiffFile) { self.file = file }
  }

  // These are set before another thread sees the object, and never change.
  package let manifest: Manifest
  package let manifestDigest: ContentDigest
  package let signature: DiffFile.Signature
  package let schema: [TableDefinition]?
  package let author: AuthorSchema?
  /// The changes, as far as they have arrived.
  package let changeset: TemporaryBuffer
  package let feed = ChangesetFeed(patience: 100)
  /// Written before the feed is finished and read afterwards; the feed's lock orders the two.
  private var box: Box?

  init(
    manifest: Manifest, digest: ContentDigest, signature: DiffFile.Signature, schema: [TableDefinition]?,
    author: AuthorSchema?, changeset: TemporaryBuffer
  ) {
    self.manifest = manifest
    manifestDigest = digest
    self.signature = signature
    self.schema = schema
    self.author = author
    self.changeset = changeset
  }

  /// Reports that all of the file is verified.
  func finish(_ file: consuming DiffFile) {
    let summary = file.inspection.summary
    box = Box(file)
    feed.finish(summary)
  }

  /// Waits until all of the file is verified.
  ///
  /// - Throws: `DiffFileError` when it is refused.
  package func file() throws -> Box {
    _ = try feed.summary()
    guard let box else { throw DiffFileError(.truncated, "the file ends too early") }
    return box
  }
}

extension StreamedDiffFile {
  /// Smaller changesets are verified before any of their changes are applied.
  private static let minimumBytes: Int64 = 4 << 20
  /// With more bytes after the changes, streaming would only wait for these at the end.
  private static let maximumBytesBehind: Int64 = 4 << 20

  /// The number of bytes of changes, if they are many and sorted by key; nil if streaming is not worth it.
  static func streamedBytes(of manifest: Manifest) -> Int? {
    var bytes: Int64 = 0
    var behind: Int64 = 0
    for member in manifest.members {
      switch MemberName.role(of: member.name) {
      case .changeset: bytes += member.size
      case .schema: break
      default: behind += member.size
      }
    }
    guard bytes >= minimumBytes, behind <= maximumBytesBehind, manifest.tables.allSatisfy({ $0.order == .key }) else {
      return nil
    }
    return Int(bytes)
  }

  /// Checks the changes as they arrive, and publishes those that are well-formed.
  struct Publisher {
    /// The number of bytes that are read before their changes are checked and published.
    private static let step = 1 << 20

    private let diff: StreamedDiffFile
    private var scanner: ChangesetInspection.Scanner
    private var checked = 0

    init(_ diff: StreamedDiffFile, _ limits: DiffFileLimits) {
      self.diff = diff
      scanner = ChangesetInspection.Scanner(of: diff.changeset, limits: limits)
    }

    /// Checks and publishes the changes that have arrived since, once they are worth it.
    ///
    /// - Throws: `DiffFileError` when they are malformed, with code `abandoned` when the receiver has given up.
    mutating func advance() throws(DiffFileError) {
      guard diff.changeset.storedCount - checked >= Self.step else { return }
      checked = diff.changeset.storedCount
      try scanner.advance(to: checked, isLast: false)
      guard diff.feed.publish(scanner.summary) else { throw DiffFileError.abandoned }
    }

    /// The inspection of all changes, which must have arrived.
    consuming func finish() throws(DiffFileError) -> ChangesetInspection {
      do throws(ByteStreamError) { try diff.changeset.finish() } catch { throw DiffFileError(error) }
      try scanner.advance(to: diff.changeset.count, isLast: true)
      return try scanner.finish()
    }
  }
}
