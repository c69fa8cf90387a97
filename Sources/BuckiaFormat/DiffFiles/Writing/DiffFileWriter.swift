import BuckiaBytes
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
package struct DiffFileWriter: Sendable {
  /// zstd's level, 1 to 19. On changesets 3 and 9 gain next to nothing over 1.
  package var level = 1
  /// Whether a file of that name is replaced; else it is an error.
  package var replacesExisting = false
  /// True if only its owner may read the file.
  package var isPrivate = false
  /// Who signs. The manifest's `sender.identity` becomes the signer's; without one it must name none.
  package var signer: ManifestSigner?
  /// Bounds that a reader will set, so that nothing is written that could not be read.
  package var limits = DiffFileLimits()

  /// The version of the zstd library, such as `1.5.4`. Another version may compress the same bytes differently.
  package static var zstdVersion: String { String(cString: ZSTD_versionString()) }

  /// Makes a writer of unsigned files.
  package init() {}

  /// Writes a diff file under a name, complete or not at all.
  ///
  /// - Parameters:
  ///   - draft: What the file is to say.
  ///   - changeset: The changes, a changeset of SQLite's session extension. May be empty.
  ///   - path: The file. For an inbound folder it must be called `<KSUID>.bdiff`.
  /// - Returns: What was written.
  /// - Throws: `DiffFileError`: for what a reader would refuse, `alreadyExists`, `fullDisk`, or `unwritable`. The file
  ///   then does not exist (or is still the old one), and nothing is left behind.
  @discardableResult
  package func write(
    _ draft: DiffFileDraft, changeset: TemporaryBuffer, to path: String
  ) throws(DiffFileError) -> WrittenDiffFile {
    do throws(DiffFileError) {
      let prepared = try prepare(draft, changeset: changeset)
      let file: AtomicFileOutput
      do throws(ByteStreamError) {
        file = try AtomicFileOutput(
          at: path, replacing: replacesExisting, followingLinks: true, isPrivate: isPrivate)
      } catch {
        throw DiffFileError(error)
      }
      let written = try write(prepared, to: file)
      do throws(ByteStreamError) { try file.publish() } catch { throw DiffFileError(error) }
      return written
    } catch {
      throw error.naming(path: path)
    }
  }

  /// Writes a diff file to any output.
  ///
  /// - Parameters:
  ///   - draft: What the file is to say.
  ///   - changeset: The changes, a changeset of SQLite's session extension. May be empty.
  ///   - output: Where its bytes go.
  /// - Returns: What was written.
  /// - Throws: `DiffFileError`: for what a reader would refuse, or one of the output's. What has been written by then must
  ///   not be used.
  @discardableResult
  package func write(
    _ draft: DiffFileDraft, changeset: TemporaryBuffer, to output: any ByteOutput
  ) throws(DiffFileError) -> WrittenDiffFile {
    try write(prepare(draft, changeset: changeset), to: output)
  }

  /// Counts, hashes and signs what is to be written.
  ///
  /// The changeset is read twice, once here and once to write it; memory does not grow with it.
  private func prepare(_ draft: DiffFileDraft, changeset: TemporaryBuffer) throws(DiffFileError) -> PreparedDiffFile {
    var prepared = try PreparedDiffFile(draft, changeset: changeset, limits: limits)
    if let signer {
      var sender = prepared.manifest.sender ?? Manifest.Sender()
      guard sender.identity == nil || sender.identity == signer.identity else {
        throw DiffFileError(.badSignature, "the manifest names another sender than the one who signs")
      }
      sender.identity = signer.identity
      prepared.manifest.sender = sender
    } else if prepared.manifest.sender?.identity != nil {
      throw DiffFileError(.badSignature, "the manifest names the key of its sender, who does not sign")
    }
    return prepared
  }

  private func write(
    _ prepared: PreparedDiffFile, to output: any ByteOutput
  ) throws(DiffFileError) -> WrittenDiffFile {
    let manifest = prepared.manifest
    let manifestBytes = manifest.json.bytes()
    // What the parser refuses must not be written.
    guard try Manifest(parsing: manifestBytes, splitBytes: limits.splitBytes) == manifest else {
      throw JSONMember.manifest.invalid("manifest", "would not be read as written")
    }
    let file = DigestingOutput(output, ContentHasher())
    let archive = try ArchiveWriter(file, level: level)
    try archive.append(MemberName.manifest, manifestBytes)
    if let signer { try archive.append(MemberName.signature, signer.signature(of: manifestBytes)) }
    for member in prepared.members { try member.write(to: archive) }
    try archive.finish()
    let content = manifest.members.reduce(Int64(0)) { $0 + $1.size }
    try limits.check(content: content)
    try limits.check(content: content, fileBytes: file.byteCount)
    return WrittenDiffFile(
      bytes: file.byteCount, manifest: manifest, manifestDigest: ContentDigest(of: manifestBytes),
      fileDigest: file.hasher.digest)
  }
}

/// A diff file that has been written.
package struct WrittenDiffFile: Sendable {
  /// The size of the file.
  package let bytes: Int64
  /// The manifest as written, with counts and digests.
  package let manifest: Manifest
  /// SHA-256 of the manifest's bytes, by which successors name this diff.
  package let manifestDigest: ContentDigest
  /// SHA-256 of the file's bytes.
  package let fileDigest: ContentDigest
}
