import Buckia
import BuckiaBenchmarks
import Foundation
import SQLiteConnections

extension Comparison {
  /// What a call costs from C, from Python and in the loadable extension, compared with the same call in Swift.
  ///
  /// They are made in memory where the system has a folder for that: the disk would take most of the time, and vary
  /// more than the calls differ.
  ///
  /// - Parameters:
  ///   - call: What is called.
  ///   - rows: How many new rows the newer database, or the diff file, has.
  ///   - repetitions: How many calls a process makes, of which the median counts; the first of several is left out.
  ///   - target: How much longer than in Swift it may take, as a share of that time.
  ///   - find: Looks for the programs.
  static func calls(
    _ call: HostCall, rows: Int, repetitions: Int = 1, target: Double? = nil,
    hosts find: @escaping (HostCall, ScratchFolder) throws -> Hosts = { try Hosts.find(for: $0, in: $1) }
  ) -> Comparison {
    let sameSQLite: [ImplementationName] = [.pythonPackage, .fromC, .extensionFromC]
    return Comparison(
      id: "host-\(repetitions == 1 ? "large" : "small")-\(call.rawValue)",
      title: "\(call.title), \(Quantity.grouped(rows)) new rows, TEXT key",
      figures: sameSQLite.map { Figure(.extraShare, of: $0, against: .fromSwift, target: target) } + [
        Figure(.extraShare, of: .extensionFromPython, against: .fromSwift),
        Figure(.speed, of: .pythonPackage, against: call == .diff ? .geodiffDiff : .geodiffApply),
      ]
    ) { folder in
      let hosts = try find(call, folder)
      let place = try ScratchFolder.inMemory(roomFor: rows * HostCalls.bytesPerRow)
      let calls = HostCalls(
        changes: try ShippedChanges(.inserts, .textKey, rows: rows, in: place), rows: rows, repetitions: repetitions,
        place: place)
      return Workload(
        size: calls.changes.size, notes: HostCalls.notes + calls.ownRemarks + hosts.notes,
        implementations: try hosts.all.map { host in
          switch call {
          case .diff: calls.diffing(host)
          case .apply: try calls.applying(host)
          }
        })
    }
  }
}

/// The calls of one comparison.
private struct HostCalls {
  let changes: ShippedChanges
  let rows: Int
  let repetitions: Int
  /// The folder around all databases and files.
  let place: ScratchFolder

  /// More room than a row takes up in everything that there is at one time.
  static let bytesPerRow = 1_500

  static let notes = [
    "Every language has a process of its own, Swift, too. Only calls are timed, without the start of the process, its "
      + "imports and the loading of libraries.",
    "A call gets its databases by their paths, opens them and closes them again. The extension works on the connection "
      + "of its host: opening and closing that counts, too, and so does bringing to the disk what the host is given as "
      + "a blob.",
    "The files are in memory where there is a /dev/shm with room for them, since the disk varies more than calls do.",
    "Each file is applied to a database that has no ledger yet: making its tables is most of what a small call does.",
  ]

  var ownRemarks: [String] {
    guard repetitions > 1 else { return [] }
    return [
      "With \(Quantity.grouped(rows)) rows, a process makes \(Quantity.grouped(repetitions + 1)) calls in a round, "
        + "each with fresh files. The first is left out, and the median of the others is the value of the round."
    ]
  }

  /// How many calls are made: the first of several only warms up.
  private var count: Int { repetitions == 1 ? 1 : repetitions + 1 }

  /// Writing the difference, again and again.
  func diffing(_ host: HostProgram) -> Implementation {
    Implementation(host.name, isSubject: host.isSubject) { _ in
      let folder = try ScratchFolder(in: place)
      let outputs = (0..<count).map { _ in folder.newFile(host.format == .geodiff ? ".geodiff" : ".bdiff") }
      return ClosureRun(content: { try content(of: outputs[count - 1], by: host, in: folder) }) {
        let seconds = try host.diff(
          from: changes.database, to: changes.changed, home: folder.file("home"), outputs: outputs)
        guard outputs.allSatisfy({ FileSystem.byteCount(of: $0) > 0 }) else {
          throw BuckiaError(.resultsDiffer, "\(host.name) did not write all files")
        }
        return perCall(seconds)
      }
    }
  }

  /// The rows that a file leads to.
  private func content(of file: String, by host: HostProgram, in folder: ScratchFolder) throws -> UInt64 {
    guard host.format == .geodiff else { return try changes.contentAfter(diffFile: file, in: folder) }
    let copy = try folder.copy(of: changes.database)
    try Self.geodiff("geodiff-apply", copy, file)
    return try ShippedChanges.content(of: copy)
  }

  /// Applying the file to one copy of the database after the other.
  func applying(_ host: HostProgram) throws -> Implementation {
    var file = changes.diffFile
    if host.format == .geodiff {
      file = place.newFile(".geodiff")
      try Self.geodiff("geodiff-diff", changes.database, changes.changed, file)
    }
    return Implementation(host.name, isSubject: host.isSubject) { _ in
      let folder = try ScratchFolder(in: place)
      let databases = try (0..<count).map { _ in try folder.copy(of: changes.database) }
      return ClosureRun(content: { try ShippedChanges.content(of: databases[count - 1]) }) {
        let seconds = try host.apply(file, home: folder.file("home"), to: databases)
        for database in databases {
          let found = try SQLiteConnection(opening: database, as: .readOnly).integer("SELECT count(*) FROM t") ?? 0
          guard found == rows else {
            throw BuckiaError(.resultsDiffer, "\(found) of \(rows) rows arrived from \(host.name)")
          }
        }
        return perCall(seconds)
      }
    }
  }

  private static func geodiff(_ arguments: String...) throws {
    guard let python = PythonPeer.find() else { throw BuckiaError(.otherProgram, "there is no Python with pygeodiff") }
    try python.process(arguments).run()
  }

  /// The only call's time, or the median of those after the first.
  private func perCall(_ seconds: [Double]) -> Double {
    guard repetitions > 1 else { return seconds[0] }
    return seconds.dropFirst().sorted()[repetitions / 2]
  }
}
