import SQLiteChangesets
import SQLiteSchemas

/// A diff file whose manifest has been read, and its signature and table definitions checked, while its changes are still
/// being decompressed, digested and checked in another thread.
///
/// For whoever owns the transaction that applies them and rolls it back when the rest turns out to be no good: nothing
/// may be committed before `file()` has returned. Everybody else waits for a ``DiffFile``.
package final class StreamedDiffFile: @unchecked Sendable {
  /// A box, because what cannot be copied cannot be handed from thread to thread otherwise.
  package final class Box: @unchecked Sendable {
    /// The file, verified wholly.
    package let file: DiffFile
    init(_ file: consuming DiffFile) { self.file = file }
  }

  // All of these are set before another thread sees the object, and never change.
  package let manifest: Manifest
  package let manifestDigest: ContentDigest
  package let signature: DiffFile.Signature
  package let schema: [TableDefinition]?
  /// Where the changes arrive.
  package let changeset: ChangesetSpool
  package let feed = ChangesetFeed()
  /// Set before the feed is finished, read after: the feed's lock is between the two.
  private var box: Box?

  init(
    manifest: Manifest, digest: ContentDigest, signature: DiffFile.Signature, schema: [TableDefinition]?,
    changeset: ChangesetSpool
  ) {
    self.manifest = manifest
    manifestDigest = digest
    self.signature = signature
    self.schema = schema
    self.changeset = changeset
  }

  /// Says that the file has been verified wholly.
  func finish(_ file: consuming DiffFile) {
    let summary = file.inspection.summary
    box = Box(file)
    feed.finish(summary)
  }

  /// Waits for the file to be verified wholly.
  ///
  /// - Throws: `DiffFileError` when it is not what it should be.
  package func file() throws -> Box {
    _ = try feed.summary()
    guard let box else { throw DiffFileError(.truncated, "the file ends too early") }
    return box
  }
}

extension StreamedDiffFile {
  /// From how many bytes of changes on it is worth not to wait for all of them.
  private static let minimumBytes: Int64 = 4 << 20

  /// How many bytes of changes there will be, when they are many and in the order in which they are best applied.
  static func worthwhileBytes(of manifest: Manifest) -> Int? {
    let members = manifest.members.filter { MemberName.role(of: $0.name) == .changeset }
    let bytes = members.reduce(Int64(0)) { $0 + $1.size }
    guard bytes >= minimumBytes, manifest.tables.allSatisfy({ $0.order == .key }) else { return nil }
    return Int(bytes)
  }

  /// Checks the changes as they arrive, and publishes those that are in order.
  struct Publisher {
    /// How many bytes are read before the changes among them are checked and published.
    private static let step = 1 << 20

    private let diff: StreamedDiffFile
    private var walk: ChangesetInspection.Walk
    private var checked = 0

    init(_ diff: StreamedDiffFile) {
      self.diff = diff
      walk = ChangesetInspection.Walk(of: diff.changeset)
    }

    /// To be called when some more bytes are in the spool.
    ///
    /// - Throws: `DiffFileError` when they are no changes, with code `abandoned` when nobody wants the rest.
    mutating func advance() throws(DiffFileError) {
      guard diff.changeset.count - checked >= Self.step else { return }
      do throws(ChangesetSpool.Failure) { try diff.changeset.flush() } catch { throw DiffFileError(error) }
      checked = diff.changeset.count
      try walk.advance(to: checked, isLast: false)
      guard diff.feed.publish(walk.summary) else {
        throw DiffFileError(.abandoned, "nobody waits for the rest of it any more")
      }
    }

    /// The inspection of all changes; they must all be in the spool.
    consuming func finish() throws(DiffFileError) -> ChangesetInspection {
      do throws(ChangesetSpool.Failure) { try diff.changeset.flush() } catch { throw DiffFileError(error) }
      try walk.advance(to: diff.changeset.count, isLast: true)
      return try walk.finish()
    }
  }
}
