import Buckia
import BuckiaBenchmarks
import BuckiaFormat
import Foundation
import SQLiteConnections

extension ImplementationName {
  fileprivate static let applying: ImplementationName = "Buckia, a process that applies it"
  fileprivate static let comparing: ImplementationName = "Buckia, a process that compares them"
}

extension Comparison {
  /// The peak resident memory of a process that applies a large file.
  static func memory(of form: LargeChangeset.Form, rows: Int) -> Comparison {
    let bytes = rows * LargeChangeset.rowBytes
    let gibibytes = String(format: "%.2g GiB", Double(bytes) / Double(1 << 30))
    let allowed = Double(96 << 20 + 4 * LargeChangeset.rowBytes)
    return Comparison(
      id: "memory-\(form.rawValue.split(separator: " ").joined(separator: "-"))",
      title: "Peak memory, a changeset of \(gibibytes) in a \(form.rawValue)", unit: .bytes,
      figures: [Figure(.value, of: .applying, against: nil, target: allowed)]
    ) { folder in
      // The file, its unpacked changeset, the database and its log.
      try folder.requireRoom(bytes: 5 * bytes)
      let file = try LargeChangeset(rows: rows).write(form, into: folder)
      return Workload(
        size: "\(Quantity.grouped(rows)) new rows of \(LargeChangeset.rowBytes) bytes, changeset of "
          + Quantity.size(file.changeset),
        implementations: [
          Implementation(.applying, isSubject: true) { folder in
            let database = folder.newFile()
            let connection = try SQLiteConnection(opening: database, as: .create)
            try connection.execute("PRAGMA journal_mode = WAL")
            try connection.execute(LargeChangeset.definition)
            let inbound = try folder.link(file.path)
            return ClosureRun(content: { try content(of: database, rows: rows) }) {
              try MemoryCommand.peak("apply", database, inbound)
            }
          }
        ])
    }
  }

  /// The peak resident memory of a process that applies many rows to a table with four indexes, in the memory that it is
  /// allowed where nothing else is said.
  static func memoryOfIndexedInserts(rows: Int) -> Comparison {
    let allowed = ApplyOptions().memoryLimit
    return Comparison(
      id: "memory-indexed-inserts",
      title: "Peak memory, \(Quantity.grouped(rows)) inserts under four indexes, \(allowed >> 20) MiB allowed",
      unit: .bytes,
      // What the process itself takes up comes on top, as in the other comparisons.
      figures: [Figure(.value, of: .applying, against: nil, target: Double(allowed + 64 << 20))]
    ) { folder in
      let file = try ShippedChanges(.inserts, .textKey, rows: rows, in: folder)
      return Workload(
        size: file.size,
        implementations: [
          Implementation(.applying, isSubject: true) { folder in
            let database = try folder.copy(of: file.database)
            let connection = try SQLiteConnection(opening: database, as: .readWrite)
            try connection.execute(IndexedWork.inserts.indexes)
            let inbound = try folder.link(file.diffFile)
            return ClosureRun(content: { try ShippedChanges.content(of: database) }) {
              try MemoryCommand.peak("apply", database, inbound)
            }
          }
        ])
    }
  }

  /// The peak resident memory of a process that compares two large databases.
  static func memoryOfDifference(rows: Int) -> Comparison {
    let gibibytes = String(format: "%.2g GiB", Double(rows * LargePair.rowBytes) / Double(1 << 30))
    return Comparison(
      id: "memory-difference",
      title: "Peak memory, the difference of two databases of \(gibibytes), \(ChangedRows.onePercent.title)",
      unit: .bytes,
      figures: [Figure(.value, of: .comparing, against: nil, target: Double(128 << 20))]
    ) { folder in
      let pair = try LargePair(rows: rows, changed: .onePercent, in: folder)
      return Workload(
        size: pair.size,
        implementations: [
          Implementation(.comparing, isSubject: true) { folder in
            let file = folder.newFile(".bdiff")
            return ClosureRun(content: { try changes(in: file, wanted: pair.changed) }) {
              try MemoryCommand.peak("diff", pair.older, pair.newer, file, folder.file("home"))
            }
          }
        ])
    }
  }

  private static func changes(in file: String, wanted: Int) throws -> UInt64 {
    let found = try DiffFile.verified(at: file, name: .ifNamedByID).inspection.summary.tables.reduce(0) {
      $0 + $1.changeCount
    }
    guard found == wanted else {
      throw BuckiaError(.resultsDiffer, "\(found) of \(wanted) changes were found")
    }
    return UInt64(found)
  }

  private static func content(of database: String, rows: Int) throws -> UInt64 {
    let connection = try SQLiteConnection(opening: database, as: .readOnly)
    let count = try connection.integer("SELECT count(*) FROM large") ?? 0
    guard count == rows else {
      throw BuckiaError(.resultsDiffer, "\(count) of \(rows) rows arrived")
    }
    return UInt64(count)
  }
}

extension ScratchFolder {
  /// Makes a hard link to a file in this folder.
  fileprivate func link(_ path: String) throws -> String {
    let link = file(URL(fileURLWithPath: path).lastPathComponent)
    try FileManager.default.linkItem(atPath: path, toPath: link)
    return link
  }
}
