import BenchmarkRounds
import BuckiaBenchmarks
import Foundation
import SQLiteConnections

extension ContenderName {
  fileprivate static let applying: ContenderName = "Buckia, a process that applies it"
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
      try requireRoom(bytes: 5 * bytes, in: folder.path)
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
              let printed = try ChildProcess(probe, [database, inbound]).run()
              guard let peak = Double(printed.trimmingCharacters(in: .whitespacesAndNewlines)), peak > 0 else {
                throw BenchmarkError(.otherProgram, "\(probe) did not say how much memory it took")
              }
              return peak
            }
          }
        ])
    }
  }

  private static func content(of database: String, rows: Int) throws -> UInt64 {
    let connection = try SQLiteConnection(opening: database, as: .readOnly)
    let count = try connection.integer("SELECT count(*) FROM large") ?? 0
    guard count == rows else {
      throw BenchmarkError(.resultsDiffer, "\(count) of \(rows) rows arrived")
    }
    return UInt64(count)
  }

  /// The file, what it unpacks to, the database and its log.
  private static func requireRoom(bytes: Int, in folder: String) throws {
    let free = try FileManager.default.attributesOfFileSystem(forPath: folder)[.systemFreeSize] as? Int ?? .max
    guard free >= bytes else {
      throw BenchmarkError(
        .unsuitable,
        "\(folder) has \(Quantity.size(free)) left, and \(Quantity.size(bytes)) are needed; TMPDIR chooses another folder"
      )
    }
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
