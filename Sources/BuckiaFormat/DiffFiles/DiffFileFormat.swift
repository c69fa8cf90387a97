import BuckiaBytes

/// The names of sent files: an id and a suffix for the kind.
package enum DiffFileName {
  /// `.bdiff`
  package static let diffSuffix = ".bdiff"
  /// `.changeset`
  package static let changesetSuffix = ".changeset"

  /// `.bdiff.age`
  package static let encryptedSuffix = ".bdiff.age"
  /// `.accept`: the answer to an invitation
  package static let acceptanceSuffix = ".accept"
  /// The suffixes of sent files.
  package static let suffixes = [diffSuffix, encryptedSuffix, changesetSuffix, acceptanceSuffix]

  /// The name of the diff file with that id.
  package static func diff(_ id: KSUID) -> String { "\(id)\(diffSuffix)" }

  /// The name of the encrypted diff file with that id.
  package static func encrypted(_ id: KSUID) -> String { "\(id)\(encryptedSuffix)" }

  /// The name of the raw changeset with that id.
  package static func changeset(_ id: KSUID) -> String { "\(id)\(changesetSuffix)" }

  /// The name of the answer to an invitation with that id.
  package static func acceptance(_ id: KSUID) -> String { "\(id)\(acceptanceSuffix)" }

  /// The id of a file called `<KSUID>.accept`, or nil. `path` may have folders in front.
  package static func acceptanceID(_ path: String) -> KSUID? { id(path, suffix: acceptanceSuffix) }

  /// The id of a file called `<KSUID>.bdiff`, or nil. `path` may have folders in front.
  package static func diffID(_ path: String) -> KSUID? { id(path, suffix: diffSuffix) }

  /// The id of a file called `<KSUID>.bdiff.age`, or nil. `path` may have folders in front.
  package static func encryptedID(_ path: String) -> KSUID? { id(path, suffix: encryptedSuffix) }

  /// The id of a file called `<KSUID>.changeset`, or nil. `path` may have folders in front.
  package static func changesetID(_ path: String) -> KSUID? { id(path, suffix: changesetSuffix) }

  /// The id of a file of any of these kinds, or nil. `path` may have folders in front.
  package static func id(_ path: String) -> KSUID? { suffixes.lazy.compactMap { id(path, suffix: $0) }.first }

  private static func id(_ path: String, suffix: String) -> KSUID? {
    let name =
      path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path.utf8[path.utf8.index(after: $0)...] }
      ?? path.utf8[...]
    guard name.count == KSUID.textLength + suffix.utf8.count,
      name.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
    else { return nil }
    return KSUID(String(decoding: name.prefix(KSUID.textLength), as: UTF8.self))
  }
}

/// How much a diff file may ask of its reader.
///
/// Every number is checked before memory or disk is used by it.
package struct DiffFileLimits: Sendable {
  /// The longest manifest in bytes: with its tar header exactly the first mebibyte of the archive.
  package static let manifestBytes = 1 << 20 - 512
  /// The longest `schema.json` in bytes.
  package static let schemaBytes = 16 << 20
  /// The longest `annotations` in bytes, whatever the changes.
  package static let annotationsBytes = 16 << 20
  /// The maximum size of `annotations` in bytes for any diff.
  private static let freeAnnotationsBytes = 64 << 10
  /// The additional bytes of `annotations` for each value of the changes. Ours need a few hundred for a change.
  private static let annotationsBytesPerValue = 1 << 10
  /// The most tables a manifest or a schema may list.
  package static let tables = 10_000
  /// The most columns of a table, generated ones included: SQLite's own default limit.
  package static let columns = 2_000
  /// The longest name of a table, a column or a collation, and the longest declared type, in bytes.
  package static let nameBytes = 1_024
  /// The most UNIQUE constraints, and the most foreign keys, of a table.
  package static let constraints = 1_000
  /// The maximum number of recipients of one diff. Their hashes are two thirds of the largest manifest.
  package static let recipients = 10_000
  /// The largest integer that documents write as a number: the largest that JavaScript represents exactly.
  package static let number: Int64 = 1 << 53 - 1
  /// The maximum number of rows with one content that a replica can insert: their sums stay far below the largest
  /// number.
  package static let copies: Int64 = 1 << 40
  /// The largest member: the largest size in eleven octal digits of a tar header, 8 GiB - 1.
  package static let memberBytes: Int64 = 1 << 33 - 1

  /// The most bytes all members together may have. 1 TiB unless set.
  package var contentBytes: Int64
  /// Up to how many bytes of content the expansion is not looked at. 1 GiB unless set.
  package var freeContentBytes: Int64
  /// The maximum ratio of the content beyond `freeContentBytes` to the file. 1,000 unless set.
  ///
  /// Honest changesets shrink to a tenth, rarely to a hundredth; a bomb to a thirty-thousandth.
  package var expansion: Int64
  /// The most bytes that one change may have: all of it is in memory, several times over, when it is applied. No limit unless set.
  package var changeBytes = Int64.max
  /// The size up to which a change is always allowed, however little memory applying may take.
  private static let minimumChangeBytes = 64 << 10
  /// True if a file above the limits may be honest and a person can approve it: the error then has the code
  /// `overLimit`. Otherwise no honest file is above them.
  package var mayBeMeant = false
  /// The size at which the changeset is split. Only tests change it.
  var splitBytes = DiffFileLimits.memberBytes

  /// Creates limits.
  package init(contentBytes: Int64 = 1 << 40, freeContentBytes: Int64 = 1 << 30, expansion: Int64 = 1_000) {
    self.contentBytes = contentBytes
    self.freeContentBytes = freeContentBytes
    self.expansion = expansion
  }

  /// The limits of a file that was found in a folder, to which other people write.
  ///
  /// - Parameter memory: The maximum memory for applying, in bytes.
  package static func unattended(memory: Int) -> DiffFileLimits {
    var limits = DiffFileLimits(freeContentBytes: 64 << 20, expansion: 100)
    limits.changeBytes = Int64(max(memory / 2, minimumChangeBytes))
    limits.mayBeMeant = true
    return limits
  }

  private var code: DiffFileError.Code { mayBeMeant ? .overLimit : .tooLarge }

  /// The maximum size of `annotations` in bytes, which depends on the number of changes.
  static func annotationsBytes(of manifest: Manifest) -> Int64 {
    let values = manifest.tables.reduce(Int64(0)) { sum, table in
      let changes = min(table.inserted + table.updated + table.deleted, Int64(annotationsBytes))
      return min(sum + changes * Int64(table.columns + 1), Int64(annotationsBytes))
    }
    return min(Int64(annotationsBytes), Int64(freeAnnotationsBytes) + values * Int64(annotationsBytesPerValue))
  }

  /// Refuses content that is too large in itself.
  func check(content: Int64) throws(DiffFileError) {
    guard content <= contentBytes else {
      throw DiffFileError(code, "it holds at least \(content) bytes; the limit is \(contentBytes)")
    }
  }

  /// Throws if the content is too large for its file, or for the part of it that has been read.
  func check(content: Int64, fileBytes: Int64) throws(DiffFileError) {
    let (expanded, overflow) = fileBytes.multipliedReportingOverflow(by: expansion)
    guard content <= freeContentBytes || overflow || content <= expanded else {
      throw DiffFileError(
        code, "\(fileBytes) bytes would unpack to \(content), more than \(expansion) times as much")
    }
  }

  /// Refuses a change that takes too much memory.
  func check(change: Int) throws(DiffFileError) {
    guard Int64(change) <= changeBytes else {
      throw DiffFileError(
        code,
        "one change has \(change) bytes, which take several times as much memory; \(changeBytes) are allowed, half of the memory for applying"
      )
    }
  }
}
