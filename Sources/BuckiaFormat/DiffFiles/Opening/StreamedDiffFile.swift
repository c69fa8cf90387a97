import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

/// A diff file whose manifest, signature and table definitions are verified, while another thread still decompresses,
/// digests and checks its changes.
///
/// Its changes may only be applied inside a transaction that is rolled back when the rest of the file is refused: nothing
/// may be committed before `file()` has returned. Where that cannot be guaranteed, wait for a ``DiffFile``. While the
/// transaction is open, others cannot write: when the rest takes long to come, the feed throws `Incomplete`.
package final class StreamedDiffFile: @unchecked Sendable {
  /// Lets a noncopyable file be handed to another thread.
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
  /// With more bytes behind the changes, one would wait for these in the end.
  private static let maximumBytesBehind: Int64 = 4 << 20

  /// How many bytes of changes there will be, when they are many and sorted by key; nil when streaming is not worth it.
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
    /// How many bytes are read before the changes among them are checked and published.
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
