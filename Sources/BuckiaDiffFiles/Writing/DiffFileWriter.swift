import BuckiaKSUID
import CBuckiaZstd
import SQLiteChangesets
import SQLiteSchemas

/// Writes diff files.
///
/// ```swift
/// let draft = DiffFileDraft(manifest: Manifest(id: id), schema: .included(tables))
/// let written = try DiffFileWriter().write(draft, changeset: spool, to: "outbox/\(DiffFileName.diff(id))")
/// print(written.bytes)
/// ```
public struct DiffFileWriter: Sendable {
  /// zstd's level, 1 to 19. On changesets 3 and 9 gain next to nothing over 1.
  public var level = 1
  /// Whether a file of that name is replaced; else it is an error.
  public var replacesExisting = false
  /// Who signs, or nil. The manifest's `sender.identity` becomes the signer's.
  public var signer: ManifestSigner?
  /// Bounds that a reader will set, so that nothing is written that could not be read.
  public var limits = DiffFileLimits()

  /// The version of the zstd library, such as `1.5.4`. Another version may compress the same bytes differently.
  public static var zstdVersion: String { String(cString: ZSTD_versionString()) }

  /// Makes a writer of unsigned files.
  public init() {}

  /// Writes a diff file.
  ///
  /// The changeset is read twice, once to count and hash it, once to write it; memory does not grow with it.
  ///
  /// - Parameters:
  ///   - draft: What the file is to say.
  ///   - changeset: The changes, a changeset of SQLite's session extension. May be empty.
  ///   - path: The file. For an inbound folder it must be called `<KSUID>.bdiff`.
  /// - Returns: What was written.
  /// - Throws: `DiffFileError`: for what a reader would refuse, `alreadyExists`, `fullDisk`, or `unwritable`. The file
  ///   then does not exist (or is still the old one), and nothing is left behind.
  @discardableResult
  public func write(
    _ draft: DiffFileDraft, changeset: ChangesetSpool, to path: String
  ) throws(DiffFileError) -> WrittenDiffFile {
    do throws(DiffFileError) {
      return try writeNamed(draft, changeset: changeset, to: path)
    } catch {
      throw error.naming(path: path)
    }
  }

  private func writeNamed(
    _ draft: DiffFileDraft, changeset: ChangesetSpool, to path: String
  ) throws(DiffFileError) -> WrittenDiffFile {
    var plan = try MemberPlan(draft, changeset: changeset, limits: limits)
    if let signer {
      var sender = plan.manifest.sender ?? Manifest.Sender()
      guard sender.identity == nil || sender.identity == signer.identity else {
        throw DiffFileError(.badSignature, "the manifest names another sender than the one who signs")
      }
      sender.identity = signer.identity
      plan.manifest.sender = sender
    }
    let manifestBytes = plan.manifest.json.bytes()
    // The reader's own parser is the judge of what may be written.
    guard try Manifest(parsing: manifestBytes, splitBytes: limits.splitBytes) == plan.manifest else {
      throw DocumentKind.manifest.fault("manifest", "would not be read as written")
    }

    let file = try NewFile(at: path, replacing: replacesExisting)
    let archive = try ArchiveWriter(file, level: level)
    try archive.append(MemberName.manifest, manifestBytes)
    if let signer { try archive.append(MemberName.signature, signer.signature(of: manifestBytes)) }
    for member in plan.contents { try member.write(to: archive) }
    let fileDigest = try archive.finish()
    let content = plan.manifest.members.reduce(Int64(0)) { $0 + $1.size }
    try limits.check(content: content, fileBytes: file.count)
    try file.publish(replacing: replacesExisting)
    return WrittenDiffFile(
      id: plan.manifest.id, path: path, bytes: file.count, manifest: plan.manifest,
      manifestDigest: RunningDigest.of(manifestBytes), fileDigest: fileDigest)
  }
}

/// A diff file that has been written.
public struct WrittenDiffFile: Sendable {
  /// The diff's id.
  public let id: KSUID
  /// Where it is.
  public let path: String
  /// The size of the file.
  public let bytes: Int64
  /// The manifest as written, with counts and digests.
  public let manifest: Manifest
  /// SHA-256 of the manifest's bytes, by which successors name this diff.
  public let manifestDigest: ContentDigest
  /// SHA-256 of the file's bytes.
  public let fileDigest: ContentDigest
}
