import Buckia
import BuckiaBytes
import BuckiaFormat
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension ImplementationName {
  /// SQLite's own call for one file after the other.
  package static let stockPerFile: ImplementationName = "sqlite3changeset_apply_v2, one transaction a file"
  /// Buckia with a folder of many files.
  package static let buckiaManyFiles: ImplementationName = "Buckia, many files in a folder"
  /// Buckia with all rows in one file.
  package static let buckiaOneFile: ImplementationName = "Buckia, the same rows in one file"
}

extension Comparison {
  /// A folder of many small files, as from a sender who ships often.
  ///
  /// - Parameters:
  ///   - rowsPerFile: How many new rows each holds.
  ///   - place: Where the files are made that every run gets copies of.
  ///   - speed: How many times as fast as SQLite's own call, file by file, it should be.
  ///   - extra: How many seconds more a file it may take than the same rows in one file.
  package static func smallFiles(
    _ files: Int, rowsPerFile: Int = 20, preparing place: PreparationPlace = .onDisk, speed: Double? = nil,
    extra: Double? = nil
  ) -> Comparison {
    Comparison(
      id: "small-files",
      title: "\(Quantity.grouped(files)) inbound files of \(rowsPerFile) rows, one folder, synchronous FULL",
      figures: [
        Figure(.speed, of: .buckiaManyFiles, against: .stockPerFile, target: speed),
        Figure(.extraPerItem(items: files), of: .buckiaManyFiles, against: .buckiaOneFile, target: extra),
      ]
    ) { try SmallFilesWorkload(files: files, rowsPerFile: rowsPerFile, preparing: place, in: $0).workload }
  }
}

/// Where to make files that are only copied later.
package enum PreparationPlace: Sendable {
  /// In the comparison's folder.
  case onDisk
  /// In memory, if the system has a folder for that. Writing a diff file synchronizes the disk, and for ten thousand
  /// files that takes longer than the whole measurement.
  case inMemory
}

/// The same rows as many diff files, as many raw changesets, and as one diff file.
private struct SmallFilesWorkload {
  private static let shape = TableShape.textKey
  let files: Int
  let rowsPerFile: Int
  // Holds the three folders.
  let folder: ScratchFolder
  let diffs: String
  let changesets: String
  let oneDiff: String

  init(files: Int, rowsPerFile: Int, preparing place: PreparationPlace, in parent: ScratchFolder) throws {
    self.files = files
    self.rowsPerFile = rowsPerFile
    folder = try place == .inMemory ? .inMemory() : ScratchFolder(in: parent)
    (diffs, changesets, oneDiff) = (folder.file("diffs"), folder.file("changesets"), folder.file("one"))
    for path in [diffs, changesets, oneDiff] {
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }
    let source = try SQLiteConnection(opening: ":memory:", as: .create)
    try source.execute(Self.shape.definition)
    for number in 0..<files {
      let first = number * rowsPerFile + 1
      let insertion = Self.shape.insertion(of: first...(first + rowsPerFile - 1))
      let changes = try RecordedChanges(of: insertion, on: source)
      let id = EngineCalls.id(number)
      try Data(changes.recorded.bytes).write(to: URL(fileURLWithPath: "\(changesets)/\(DiffFileName.changeset(id))"))
      try DiffFileDraft.write(changes.sorted, shape: Self.shape, number: number, into: diffs)
    }
    let whole = try SQLiteConnection(opening: ":memory:", as: .create)
    try whole.execute(Self.shape.definition)
    let all = try RecordedChanges(of: Self.shape.insertion(of: 1...(files * rowsPerFile)), on: whole)
    try DiffFileDraft.write(all.sorted, shape: Self.shape, number: 0, into: oneDiff)
  }

  var workload: Workload {
    Workload(
      size: "\(Quantity.grouped(files * rowsPerFile)) new rows in all, TEXT key, file database in WAL",
      implementations: [
        Implementation(.stockPerFile) { folder in
          let names = try folder.copy(of: changesets, suffix: "")
          let connection = try emptyDatabase(in: folder)
          try connection.execute("PRAGMA synchronous = FULL")
          return ConnectionRun(connection) { connection in
            for name in try FileManager.default.contentsOfDirectory(atPath: names).sorted() {
              let file = URL(fileURLWithPath: "\(names)/\(name)")
              try StockCalls.apply(StockChangeset([UInt8](Data(contentsOf: file))), to: connection)
            }
          }
        },
        buckia(.buckiaManyFiles, diffs),
        buckia(.buckiaOneFile, oneDiff),
      ])
  }

  private func buckia(_ name: ImplementationName, _ original: String) -> Implementation {
    Implementation(name, isSubject: true) { folder in
      let inbound = try folder.copy(of: original, suffix: "")
      let connection = try emptyDatabase(in: folder)
      // The façade opens the database itself, with SQLite's defaults.
      guard try connection.integer("PRAGMA synchronous") == 2 else {
        throw BuckiaError(
          .unsuitable, "this SQLite's default is not synchronous FULL, so commits cannot be compared")
      }
      let path = connection.path
      return ConnectionRun(connection) { _ in try EngineCalls.apply(inbound: inbound, to: path) }
    }
  }

  private func emptyDatabase(in folder: ScratchFolder) throws -> SQLiteConnection {
    let connection = try SQLiteConnection(opening: folder.newFile(), as: .create)
    try connection.execute("PRAGMA journal_mode = WAL")
    try connection.execute(Self.shape.definition)
    return connection
  }
}

extension DiffFileDraft {
  /// Writes changes of the table `t` as the diff file with this number.
  ///
  /// - Returns: The file and its size in bytes.
  @discardableResult
  static func write(
    _ sorted: [UInt8], shape: TableShape, number: Int, into folder: String
  ) throws -> (path: String, bytes: Int) {
    let id = EngineCalls.id(number)
    let draft = DiffFileDraft(
      manifest: Manifest(id: id), schema: .included([try EngineCalls.definition(of: shape)]),
      tablesInKeyOrder: [TableName(TableShape.table)])
    let path = "\(folder)/\(DiffFileName.diff(id))"
    let written = try DiffFileWriter().write(draft, changeset: TemporaryBuffer(sorted), to: path)
    return (path, Int(written.bytes))
  }
}
