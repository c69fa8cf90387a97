import BuckiaByteStreams
import BuckiaKSUID
import SQLiteChangesets

/// A changeset or patchset file without manifest, read once and verified. An empty file is one without changes, which is what
/// SQLite's sessions make where nothing has changed.
///
/// Nothing says who made it. Its columns are positional: a table that it changes must begin with as many columns and have
/// the same key. Further columns keep their values, as in SQLite.
package struct RawChangeset: ~Copyable {
  /// SHA-256 of the file's bytes, by which a ledger knows it.
  package let digest: ContentDigest
  /// The bytes.
  package let changeset: TemporaryBuffer
  /// The tables and how many changes each has.
  package let inspection: ChangesetInspection
  /// The id, when the file is called `<KSUID>.changeset`.
  package let id: KSUID?

  /// Whether the bytes are a changeset, with old values, or a patchset.
  package var format: ChangesetFormat { inspection.format ?? .changeset }

  /// Reads and checks a file, as carefully as ``DiffFile/verified(at:name:limits:temporaryFolder:cache:)``.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - limits: How much the file may ask for.
  ///   - temporaryFolder: Where temporary files go.
  ///   - isWanted: Is asked every few thousand changes whether to go on.
  /// - Throws: `DiffFileError` with the file's path, with code `abandoned` when it is not wanted any more.
  package static func verified(
    at path: String, limits: DiffFileLimits = DiffFileLimits(),
    temporaryFolder: String = TemporaryBuffer.standardFolder, isWanted: () -> Bool = { true }
  ) throws(DiffFileError) -> RawChangeset {
    do throws(DiffFileError) {
      let file = try PosixFile(readingInbound: path)
      // A file that is too large is refused before it is read.
      try limits.check(content: file.initialByteCount)
      return try RawChangeset(
        file, id: DiffFileName.changesetID(path), limits: limits, temporaryFolder: temporaryFolder, isWanted: isWanted)
    } catch {
      var named = error.naming(path: path)
      named.member = nil
      throw named
    }
  }

  private init(
    _ source: any ByteInput, id: KSUID?, limits: DiffFileLimits, temporaryFolder: String, isWanted: () -> Bool
  ) throws(DiffFileError) {
    let file = DigestingInput(source, ContentHasher())
    let spool = TemporaryBuffer(folder: temporaryFolder)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: streamChunkBytes, alignment: 16)
    defer { buffer.deallocate() }
    do {
      while case let count = try file.read(into: buffer), count > 0 {
        guard isWanted() else { throw DiffFileError.abandoned }
        // A file that grows while it is read must not grow past the limit either.
        try limits.check(content: file.byteCount)
        try spool.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      }
    } catch {
      throw DiffFileError(spooling: error)
    }
    inspection = try ChangesetInspection(spool, in: .rawFile, isWanted: isWanted)
    digest = file.hasher.digest
    changeset = spool
    self.id = id
  }
}
