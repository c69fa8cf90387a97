import BuckiaByteStreams
import BuckiaKSUID
import SQLiteChangesets
import SQLiteSchemas

/// A diff file that has been read once and checked wholly.
///
/// Only ``verified(at:name:)`` and its siblings make one, so whoever holds one knows: the container is exactly what the
/// format says, every member has the bytes its manifest speaks of, the signature, if there is one, is its sender's, and
/// manifest, schema, annotations and changeset agree. It does not know whether the sender is to be believed, nor whether
/// the changes fit a database.
///
/// ```swift
/// let diff = try DiffFile.verified(at: "inbound/0ujtsYcgvSTl8PAuAdqWYSMnLOv.bdiff")
/// print(diff.manifest.id, diff.manifest.tables.map(\.name))
/// ```
public struct DiffFile: ~Copyable {
  /// Whether a file's name must be its diff's id.
  public enum NameRule: Sendable {
    /// The name must be `<KSUID>.bdiff` with the id of the manifest. The rule of inbound folders.
    case mustMatch
    /// A name that is `<KSUID>.bdiff` must have the manifest's id; any other name is fine.
    case ifNamedByID
  }

  /// Who signed.
  package enum Signature: Equatable, Sendable {
    /// Nobody: what the manifest says of its sender is only a claim.
    case unsigned
    /// The owner of this key, which is also the manifest's `sender.identity`.
    case signed(by: SigningKey)
  }

  /// An attachment.
  package struct Attachment {
    /// Its name below `files/`, safe to use as a relative path.
    package let name: String
    /// Where its bytes stand among those of all attachments.
    ///
    /// They share one buffer: a file of few bytes can hold thousands of attachments, and as many buffers would take
    /// gigabytes of memory, or all the files that a process may have open.
    let range: Range<Int64>
    let all: TemporaryBuffer

    /// How many bytes it has.
    package var byteCount: Int64 { range.upperBound - range.lowerBound }

    /// Its bytes, once more from the beginning with each call.
    package func input() -> any ByteInput { all.input(range) }
  }

  /// The manifest.
  package let manifest: Manifest
  /// The manifest's exact bytes.
  package let manifestBytes: [UInt8]
  /// SHA-256 of the manifest's bytes, which identifies the diff.
  package let manifestDigest: ContentDigest
  /// SHA-256 of the file's bytes.
  package let fileDigest: ContentDigest
  /// The size of the file in bytes.
  package let fileBytes: Int64
  /// Who signed.
  package let signature: Signature
  /// The definitions of the tables, unless the file leaves them out.
  package let schema: [TableDefinition]?
  /// The changes, in the format of SQLite's session extension.
  package let changeset: ChangesetSpool
  /// What one pass over the changes found.
  public let inspection: ChangesetInspection
  /// Where the changes come from, unless they are all the sender's own edits.
  package let annotations: Annotations?
  /// The attachments.
  package let attachments: [Attachment]
}
