import BenchmarkRounds
import BuckiaBenchmarks
import BuckiaDiffFiles
import Foundation
import SQLiteConnections

extension ContenderName {
  fileprivate static let applying: ContenderName = "Buckia, a process that applies it"
  fileprivate static let comparing: ContenderName = "Buckia, a process that compares them"
}

extension Comparison {
  /// The most memory that a process had resident which applied a large file.
  static func memory(of form: LargeChangeset.Form, rows: Int) -> Comparison {
    let bytes = rows * LargeChangeset.rowBytes
    let gibibytes = String(format: "%.2g GiB", Double(bytes) / Double(1 << 30))
    let allowed = Double(96 << 20 + 4 * LargeChangeset.rowBytes)
    return Comparison(
      id: "memory-\(form.rawValue.split(separator: " ").joined(separator: "-"))",
      title: "Peak memory, a changeset of \(gibibytes) in a \(form.rawValue)", unit: .bytes,
      figures: [Figure(.value, of: .applying, against: nil, target: allowed)]
    ) { folder in
      // The file, what it unpacks to, the database and its log.
      try folder.requireRoom(bytes: 5 * bytes)
      let probe = try ChildProcess.beside("MemoryProbe")
      let file = try LargeChangeset(rows: rows).write(form, into: folder)
      return Workload(
        size: "\(Quantity.grouped(rows)) new rows of \(LargeChangeset.rowBytes) bytes, changeset of "
          + Quantity.size(file.changeset),
        contenders: [
          Contender(.applying, isSubject: true) { folder in
            let database = folder.newFile()
            let connection = try SQLiteConnection(opening: database, as: .create)
            try connection.execute("PRAGMA journal_mode = WAL")
            try connection.execute(LargeChangeset.definition)
            let inbound = try folder.link(file.path)
            return ClosureTrial(content: { try content(of: database, rows: rows) }) {
              try peak(of: probe, "apply", database, inbound)
            }
          }
        ])
    }
  }

  /// The most memory that a process had resident which compared two large databases.
  static func memoryOfDifference(rows: Int) -> Comparison {
    let gibibytes = String(format: "%.2g GiB", Double(rows * LargePair.rowBytes) / Double(1 << 30))
    return Comparison(
      id: "memory-difference",
      title: "Peak memory, the difference of two databases of \(gibibytes), \(ChangedRows.onePercent.title)",
      unit: .bytes,
      figures: [Figure(.value, of: .comparing, against: nil, target: Double(128 << 20))]
    ) { folder in
      let probe = try ChildProcess.beside("MemoryProbe")
      let pair = try LargePair(rows: rows, changed: .onePercent, in: folder)
      return Workload(
        size: pair.size,
        contenders: [
          Contender(.comparing, isSubject: true) { folder in
            let file = folder.newFile(".bdiff")
            return ClosureTrial(content: { try changes(in: file, wanted: pair.changed) }) {
              try peak(of: probe, "diff", pair.older, pair.newer, file, folder.file("home"))
            }
          }
        ])
    }
  }

  /// What a process says of its memory.
  private static func peak(of probe: String, _ arguments: String...) throws -> Double {
    let printed = try ChildProcess(probe, arguments).run()
    guard let peak = Double(printed.trimmingCharacters(in: .whitespacesAndNewlines)), peak > 0 else {
      throw BenchmarkError(.otherProgram, "\(probe) did not say how much memory it took")
    }
    return peak
  }

  private static func changes(in file: String, wanted: Int) throws -> UInt64 {
    let found = try DiffFile.verified(at: file, name: .ifNamedByID).inspection.summary.tables.reduce(0) {
      $0 + $1.changeCount
    }
    guard found == wanted else {
      throw BenchmarkError(.resultsDiffer, "\(found) of \(wanted) changes were found")
    }
    return UInt64(found)
  }

  private static func content(of database: String, rows: Int) throws -> UInt64 {
    let connection = try SQLiteConnection(opening: database, as: .readOnly)
    let count = try connection.integer("SELECT count(*) FROM large") ?? 0
    guard count == rows else {
      throw BenchmarkError(.resultsDiffer, "\(count) of \(rows) rows arrived")
    }
    return UInt64(count)
  }
}

extension ScratchFolder {
  /// The same file in this folder, without a copy of its bytes.
  fileprivate func link(_ path: String) throws -> String {
    let link = file(URL(fileURLWithPath: path).lastPathComponent)
    try FileManager.default.linkItem(atPath: path, toPath: link)
    return link
  }
}
