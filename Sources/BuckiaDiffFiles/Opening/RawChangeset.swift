import BuckiaKSUID
import SQLiteChangesets

/// A changeset or patchset file without manifest, read once and checked wholly.
///
/// Nothing says who made it. Its columns are positional: a table it changes must begin with as many, with the same key
/// among them; columns behind those are left alone, as SQLite leaves them.
public struct RawChangeset: ~Copyable {
  /// SHA-256 of the file's bytes, by which a ledger knows it.
  public let digest: ContentDigest
  /// The bytes.
  public let changeset: ChangesetSpool
  /// The tables and how many changes each has.
  public let inspection: ChangesetInspection
  /// The id, when the file is called `<KSUID>.changeset`.
  public let id: KSUID?

  /// Whether the bytes are a changeset, with old values, or a patchset.
  public var format: ChangesetFormat { inspection.format ?? .changeset }

  /// Reads and checks a file, as carefully as ``DiffFile/verified(at:name:limits:spoolFolder:)``.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - limits: How much the file may ask for.
  ///   - spoolFolder: Where temporary files go.
  /// - Throws: `DiffFileError` with the file's path; an empty file is `truncated`.
  public static func verified(
    at path: String, limits: DiffFileLimits = DiffFileLimits(),
    spoolFolder: String = ChangesetSpool.temporaryFolder
  ) throws(DiffFileError) -> RawChangeset {
    do throws(DiffFileError) {
      return try RawChangeset(at: path, limits: limits, spoolFolder: spoolFolder)
    } catch {
      var named = error.naming(path: path)
      named.member = nil
      throw named
    }
  }

  private init(at path: String, limits: DiffFileLimits, spoolFolder: String) throws(DiffFileError) {
    let file = try InboundFile(at: path)
    try limits.check(content: file.size, fileBytes: file.size)
    let spool = ChangesetSpool(folder: spoolFolder)
    while true {
      let bytes = try file.read(upTo: Int.max)
      if bytes.isEmpty { break }
      // A file that grows while it is read must not grow past the limit either.
      guard file.offset <= limits.contentBytes else {
        throw DiffFileError(.tooLarge, "it has more than \(limits.contentBytes) bytes")
      }
      do throws(ChangesetSpool.Failure) { try spool.append(bytes) } catch { throw DiffFileError(error) }
    }
    guard !spool.isEmpty else { throw DiffFileError(.truncated, "the file is empty") }
    let inspection = try ChangesetInspection(spool)
    self.inspection = inspection
    digest = file.digest.digest
    changeset = spool
    id = DiffFileName.changesetID(path)
  }
}
