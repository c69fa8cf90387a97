import BuckiaBytes
import SQLiteChangesets

/// A changeset or patchset file without manifest, read once and verified. An empty file has no changes; SQLite's
/// sessions create such files.
///
/// Its sender is unknown. Its columns are positional: a changed table must begin with as many columns and have the same
/// key. Further columns keep their values, as in SQLite.
package struct RawChangeset: ~Copyable {
  /// SHA-256 of the file's bytes, by which a ledger identifies it.
  package let digest: ContentDigest
  /// The bytes.
  package let changeset: TemporaryBuffer
  /// The tables and how many changes each has.
  package let inspection: ChangesetInspection
  /// The id, when the file is called `<KSUID>.changeset`.
  package let id: KSUID?

  /// True if the bytes are a changeset, with old values, or a patchset.
  package var format: ChangesetFormat { inspection.format ?? .changeset }

  /// Reads and checks a file, as carefully as ``DiffFile/verified(at:name:limits:temporaryFolder:cache:)``.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - limits: How much the file may ask for.
  ///   - temporaryFolder: The folder for temporary files.
  ///   - isWanted: Called every few thousand changes; false stops the reading.
  /// - Throws: `DiffFileError` with the file's path, with code `abandoned` when it is not wanted any more.
  package static func verified(
    at path: String, limits: DiffFileLimits = DiffFileLimits(),
    temporaryFolder: String = TemporaryBuffer.standardFolder, isWanted: () -> Bool = { true }
  ) throws(DiffFileError) -> RawChangeset {
    try verified(
      OpenedFile(at: path), limits: limits, temporaryFolder: temporaryFolder, isWanted: isWanted)
  }

  /// The same for an open file.
  package static func verified(
    _ file: OpenedFile, limits: DiffFileLimits = DiffFileLimits(),
    temporaryFolder: String = TemporaryBuffer.standardFolder, isWanted: () -> Bool = { true }
  ) throws(DiffFileError) -> RawChangeset {
    do throws(DiffFileError) {
      // A file that is too large is refused before it is read.
      try limits.check(content: file.byteCount)
      return try RawChangeset(file, limits: limits, temporaryFolder: temporaryFolder, isWanted: isWanted)
    } catch {
      var named = error.naming(path: file.path)
      named.member = nil
      throw named
    }
  }

  /// Up to this size, the bytes are kept in memory, and checked after all are read.
  private static let memoryBytes = 4 << 20
  /// Above that size, the number of bytes that are read before their changes are checked.
  private static let step = 1 << 20

  private init(
    _ opened: OpenedFile, limits: DiffFileLimits, temporaryFolder: String, isWanted: () -> Bool
  ) throws(DiffFileError) {
    let file = DigestingInput(opened.input, ContentHasher())
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: streamChunkBytes, alignment: 16)
    defer { buffer.deallocate() }
    let isLarge = opened.byteCount > Self.memoryBytes
    do {
      let spool =
        try isLarge
        ? TemporaryBuffer(arriving: Int(opened.byteCount), folder: temporaryFolder)
        : TemporaryBuffer(folder: temporaryFolder)
      // Checked during the copy, to stop early at bytes that are no changeset: a sparse file of gigabytes is easy to
      // make.
      var scanner = isLarge ? ChangesetInspection.Scanner(of: spool, in: .rawFile, limits: limits) : nil
      var checked = 0
      while case let count = try file.read(into: buffer), count > 0 {
        guard isWanted() else { throw DiffFileError.abandoned }
        // A file that grows while it is read must not grow past the limit either.
        try limits.check(content: file.byteCount)
        try spool.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        if scanner != nil, spool.storedCount > 0, checked == 0 || spool.storedCount - checked >= Self.step {
          checked = spool.storedCount
          try scanner?.advance(to: checked, isLast: false, isWanted: isWanted)
        }
      }
      if var scanner {
        try spool.finish()
        try scanner.advance(to: spool.count, isLast: true, isWanted: isWanted)
        inspection = try scanner.finish()
      } else {
        inspection = try ChangesetInspection(spool, in: .rawFile, limits: limits, isWanted: isWanted)
      }
      changeset = spool
    } catch {
      throw DiffFileError(spooling: error)
    }
    digest = file.hasher.digest
    id = DiffFileName.changesetID(opened.name)
  }
}

/// Writes changesets as files of their own, which any SQLite tool reads.
extension RawChangeset {
  /// Writes a changeset.
  ///
  /// - Parameters:
  ///   - changeset: The bytes.
  ///   - path: The file. For an inbound folder it must be called `<KSUID>.changeset`.
  ///   - replacing: True to replace a file of that name; else it is an error.
  ///   - isPrivate: True if only its owner may read the file.
  /// - Returns: The size of the file in bytes.
  /// - Throws: `DiffFileError` with code `alreadyExists`, `fullDisk` or `unwritable`, or for a temporary file.
  ///   Nothing is left behind.
  @discardableResult
  package static func write(
    _ changeset: TemporaryBuffer, to path: String, replacing: Bool, isPrivate: Bool = false
  ) throws(DiffFileError) -> Int64 {
    do {
      let file = try AtomicFileOutput(at: path, replacing: replacing, followingLinks: true, isPrivate: isPrivate)
      try changeset.forEachPiece { try file.write($0) }
      try file.publish()
    } catch {
      throw DiffFileError(spooling: error)
    }
    return Int64(changeset.count)
  }
}
