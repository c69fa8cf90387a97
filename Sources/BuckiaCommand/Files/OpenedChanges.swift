import BuckiaDiffFiles
import BuckiaKSUID
import SQLiteChangesets
import SQLiteSchemas

/// The changes of a diff file or raw changeset that was named on the command line, read once and checked wholly, and
/// what a new diff file made of them has to keep.
struct OpenedChanges {
  /// The file, for people.
  let path: String
  /// The id, when it has one.
  let id: KSUID?
  /// The changes.
  let changeset: ChangesetSpool
  /// The tables and how many changes each has.
  let tables: [ChangesetInspection.Table]
  /// The definitions of the tables; nil for a raw changeset.
  let definitions: [TableDefinition]?
  /// The shared database it belongs to.
  let dataset: DatasetID?
  /// Whether it holds more than changes of one author: what a new file could not keep.
  let carriesMore: Bool

  /// Opens a file, or standard input for `-`.
  ///
  /// What ends in `.bdiff` must be a diff file and what ends in `.changeset` a changeset; anything else may be either.
  ///
  /// - Throws: `DiffFileError` that names the file.
  init(argument: String) throws {
    self = try ArgumentFile.withPath(argument) { path in
      do throws(DiffFileError) {
        return try Self.open(path, shownAs: ArgumentFile.name(of: argument))
      } catch {
        var named = error
        named.path = ArgumentFile.name(of: argument)
        throw named
      }
    }
  }

  private static func open(_ file: String, shownAs path: String) throws(DiffFileError) -> OpenedChanges {
    if file.hasSuffix(DiffFileName.changesetSuffix) {
      return OpenedChanges(try RawChangeset.verified(at: file), path: path)
    }
    do throws(DiffFileError) {
      return OpenedChanges(try DiffFile.verified(at: file, name: .ifNamedByID), path: path)
    } catch {
      guard error.code == .notZstd, !file.hasSuffix(DiffFileName.diffSuffix) else { throw error }
    }
    return OpenedChanges(try RawChangeset.verified(at: file), path: path)
  }

  private init(_ diff: borrowing DiffFile, path: String) {
    self.path = path
    id = diff.manifest.id
    changeset = diff.changeset
    tables = diff.inspection.tables
    definitions = diff.schema
    dataset = diff.manifest.dataset
    carriesMore = diff.annotations != nil || !diff.attachments.isEmpty || !diff.manifest.renames.isEmpty
  }

  private init(_ raw: borrowing RawChangeset, path: String) {
    self.path = path
    id = raw.id
    changeset = raw.changeset
    tables = raw.inspection.tables
    definitions = nil
    dataset = nil
    carriesMore = false
  }
}
