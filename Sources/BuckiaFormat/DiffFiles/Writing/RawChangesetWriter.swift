import BuckiaBytes
import SQLiteChangesets

/// Writes changesets as files of their own, which any SQLite tool reads.
package enum RawChangesetWriter {
  /// Writes a changeset.
  ///
  /// - Parameters:
  ///   - changeset: The bytes.
  ///   - path: The file. For an inbound folder it must be called `<KSUID>.changeset`.
  ///   - replacing: Whether a file of that name is replaced; else it is an error.
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
