import BuckiaDiffFiles
import BuckiaKSUID
import Foundation
import SQLiteChangesets
import SQLiteSchemas

/// A diff file or raw changeset that was named on the command line, read once and checked wholly.
struct OpenedChanges {
  /// What a diff file says besides its changes.
  struct Envelope {
    let manifest: Manifest
    let manifestBytes: [UInt8]
    let signature: DiffFile.Signature
    let definitions: [TableDefinition]?
    let annotations: Annotations?
    let attachments: [DiffFile.Attachment]
  }

  /// The name of the argument that stands for standard input.
  static let standardInput = "-"

  /// The file, for people.
  let path: String
  /// The id, when it has one.
  let id: KSUID?
  /// The size of the file in bytes.
  let fileBytes: Int
  /// What only diff files have; nil for a raw changeset.
  let envelope: Envelope?
  /// The changes.
  let changeset: ChangesetSpool
  /// The tables and how many changes each has.
  let tables: [ChangesetInspection.Table]

  /// Opens a file, or standard input for `-`.
  ///
  /// What ends in `.bdiff` must be a diff file and what ends in `.changeset` a changeset; anything else may be either.
  ///
  /// - Throws: `DiffFileError` that names the file.
  init(argument path: String) throws {
    guard path == Self.standardInput else {
      try self.init(file: path, shownAs: path)
      return
    }
    let copy = FileManager.default.temporaryDirectory.appendingPathComponent("buckia-stdin-\(UUID().uuidString)")
    guard FileManager.default.createFile(atPath: copy.path, contents: nil, attributes: [.posixPermissions: 0o600])
    else { throw DiffFileError(.unwritable, "no temporary file can be made", path: copy.path) }
    defer { unlink(copy.path) }
    let file = try FileHandle(forWritingTo: copy)
    while let piece = try FileHandle.standardInput.read(upToCount: 1 << 20), !piece.isEmpty {
      try file.write(contentsOf: piece)
    }
    try file.close()
    try self.init(file: copy.path, shownAs: "standard input")
  }

  private init(file: String, shownAs path: String) throws(DiffFileError) {
    do throws(DiffFileError) {
      self = try Self.open(file, shownAs: path)
    } catch {
      var named = error
      named.path = path
      throw named
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
    fileBytes = Int(clamping: diff.fileBytes)
    envelope = Envelope(
      manifest: diff.manifest, manifestBytes: diff.manifestBytes, signature: diff.signature,
      definitions: diff.schema, annotations: diff.annotations, attachments: diff.attachments)
    changeset = diff.changeset
    tables = diff.inspection.tables
  }

  private init(_ raw: borrowing RawChangeset, path: String) {
    self.path = path
    id = raw.id
    fileBytes = raw.changeset.count
    envelope = nil
    changeset = raw.changeset
    tables = raw.inspection.tables
  }

  /// The names of a table's columns: those of its definition, else as SQL names columns that have none.
  func columns(of table: ChangesetTable) -> [String] {
    let definition = envelope?.definitions?.first { TableName($0.name) == TableName(table.name) }
    let names = definition?.changesetColumns ?? []
    return names.count == table.columnCount ? names : (0..<table.columnCount).map { "column\($0 + 1)" }
  }
}
