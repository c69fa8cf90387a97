import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

/// A diff file that has been read once and verified.
///
/// Only ``verified(at:name:)`` and its siblings make one, so a value of this type guarantees: the container is exactly what
/// the format says, every member matches its digest in the manifest, a signature is the sender's, and manifest, schema,
/// annotations and changeset agree. It says nothing about whether the sender is trusted, or whether the changes fit a
/// database.
///
/// ```swift
/// let diff = try DiffFile.verified(at: "inbound/0ujtsYcgvSTl8PAuAdqWYSMnLOv.bdiff")
/// print(diff.manifest.id, diff.manifest.tables.map(\.name))
/// ```
package struct DiffFile: ~Copyable {
  /// What every diff file begins with.
  package static var firstBytes: [UInt8] { ZstdFrameHeader.magic }

  /// Whether a file's name must be its diff's id.
  package enum NameRule: Sendable {
    /// The name must be `<KSUID>.bdiff`, or `<KSUID>.bdiff.age` where it is encrypted, with the id of the manifest. The rule of
    /// inbound folders.
    case mustMatch
    /// A name that is one of these must have the manifest's id; any other name is fine.
    case ifNamedByID
  }

  /// Takes the bytes of an encrypted file and gives those that were encrypted.
  package typealias Decrypting = (any ByteInput) throws(ByteStreamError) -> any ByteInput

  /// Whether a file begins as a diff file does: compressed, with a manifest as its first member.
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

  /// Who signed.
  package enum Signature: Equatable, Sendable {
    /// Nobody: the sender in the manifest is only a claim.
    case unsigned
    /// The owner of this key, which is also the manifest's `sender.identity`.
    case signed(by: SigningKey)
  }

  /// What a file begins with, and what says who has made it: the digests in the manifest, which may be signed, are those of the rest.
  package struct Head {
    package let manifest: Manifest
    /// SHA-256 of the manifest's bytes, which identifies the diff.
    package let manifestDigest: ContentDigest
    /// Who signed.
    package let signature: Signature
  }

  /// An attachment.
  package struct Attachment {
    /// Its name below `files/`, safe to use as a relative path.
    package let name: String
    /// Where its bytes are in the buffer of all attachments.
    ///
    /// They share one: a small file can hold thousands of attachments, and as many buffers would take gigabytes of
    /// memory, or all file descriptors of the process.
    let range: Range<Int>
    let all: TemporaryBuffer

    /// How many bytes it has.
    package var byteCount: Int64 { Int64(range.count) }

    /// Gives its bytes to `body`, piece by piece.
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
  /// SHA-256 of the file's bytes, as they were encrypted where they are.
  package let fileDigest: ContentDigest
  /// The size of the file in bytes.
  package let fileBytes: Int64
  /// Who signed.
  package let signature: Signature
  /// The definitions of the tables, unless the file leaves them out.
  package let schema: [TableDefinition]?
  /// The author's whole schema as SQL, where it travels.
  package let author: AuthorSchema?
  /// The changes, in the format of SQLite's session extension.
  package let changeset: TemporaryBuffer
  /// The tables, and how many changes each has.
  package let inspection: ChangesetInspection
  /// Where the changes come from, unless they are all the sender's own edits.
  package let annotations: Annotations?
  /// The attachments.
  package let attachments: [Attachment]
}
