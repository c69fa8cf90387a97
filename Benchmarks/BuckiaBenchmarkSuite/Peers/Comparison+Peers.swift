import Buckia
import BuckiaBenchmarks
import Foundation

extension Comparison {
  /// From two database files to a file of changes, with other programs.
  ///
  /// - Parameter target: How many times as fast as `sqldiff` Buckia should be.
  static func peerDifference(_ shape: TableShape, rows: Int, changed: BuckiaBenchmarks.ChangedRows, target: Double)
    -> Comparison
  {
    let others: [ImplementationName] = [.geodiffDiff, .apswDiff]
    return .difference(
      shape, rows: rows, changed: changed, id: "peer-difference",
      figures: [Figure(.speed, of: .buckiaProcess, against: .sqldiff, target: target)]
        + others.map { Figure(.speed, of: .buckiaProcess, against: $0) }
        + [Figure(.speed, of: .buckiaDiff, against: .sqldiff)]
    ) { pair in
      let peers = try Peers.find()
      var implementations = [
        diffing(.buckiaProcess, suffix: ".bdiff", isSubject: true) { file, folder in
          try ChildProcess(peers.buckia, ["diff", pair.older, pair.newer, "-o", file, "--home", folder.path]).run()
          return nil
        } content: {
          try pair.contentAfter(diffFile: $0, in: $1)
        }
      ]
      if let sqldiff = peers.sqldiff {
        implementations.append(
          diffing(.sqldiff) { file, _ in
            try ChildProcess(sqldiff, ["--changeset", file, pair.older, pair.newer]).run()
            return nil
          } content: {
            try pair.contentAfter(changeset: DatabasePair.bytes(of: $0), in: $1)
          })
      }
      if peers.python != nil {
        implementations += [
          diffing(.geodiffDiff) { file, _ in
            try peers.seconds("geodiff-diff", pair.older, pair.newer, file)
          } content: { file, folder in
            // The format is pygeodiff's own.
            let copy = try folder.copy(of: pair.older)
            _ = try peers.seconds("geodiff-apply", copy, file)
            return try pair.content(of: copy)
          },
          diffing(.apswDiff) { file, _ in
            try peers.seconds("apsw-diff", pair.older, pair.newer, file)
          } content: {
            try pair.contentAfter(changeset: DatabasePair.bytes(of: $0), in: $1)
          },
        ]
      }
      return (implementations, peers.notes)
    }
  }

  private static func diffing(
    _ name: ImplementationName, suffix: String = ".changeset", isSubject: Bool = false,
    _ work: @escaping (String, ScratchFolder) throws -> Double?,
    content: @escaping (String, ScratchFolder) throws -> UInt64
  ) -> Implementation {
    Implementation(name, isSubject: isSubject) { folder in
      let file = folder.newFile(suffix)
      return ClosureRun(content: { try content(file, folder) }) { try work(file, folder) }
    }
  }

  /// Finding out that two large databases are equal, compared with `cmp`, which only reads both files.
  static func equalFiles(rows: Int) -> Comparison {
    Comparison(
      id: "peer-equal-files", title: "Two equal databases of \(gibibytes(rows)), in memory, whole programs",
      figures: [Figure(.speed, of: .buckiaProcess, against: .cmp, target: 1)]
    ) { folder in
      let peers = try Peers.find()
      guard let cmp = ChildProcess.find("cmp") else {
        throw BuckiaError(.otherProgram, "there is no cmp (Debian's package is diffutils)")
      }
      let pair = try LargePair(rows: rows, changed: nil, in: folder)
      return Workload(
        size: pair.size, notes: ["Both files were read before the clock starts."],
        implementations: [
          Implementation(.buckiaProcess, isSubject: true) { folder in
            let file = folder.newFile(".bdiff")
            try pair.warm()
            return ClosureRun(content: { FileManager.default.fileExists(atPath: file) ? 1 : 0 }) {
              try ChildProcess(peers.buckia, ["diff", pair.older, pair.newer, "-o", file, "--home", folder.path]).run()
              return nil
            }
          },
          // It fails when they differ.
          Implementation(.cmp) { _ in
            try pair.warm()
            return ClosureRun(content: { 0 }) {
              try ChildProcess(cmp, [pair.older, pair.newer]).run()
              return nil
            }
          },
        ])
    }
  }

  private static func gibibytes(_ rows: Int) -> String {
    String(format: "%.2g GiB", Double(rows * LargePair.rowBytes) / Double(1 << 30))
  }

  /// Applying one file of changes, with other programs.
  static func peerApplication(_ kind: ShippedChanges.Kind, _ shape: TableShape, rows: Int) -> Comparison {
    Comparison(
      id: "peer-\(kind.id)-\(shape.id)", title: "\(kind.title(rows: rows)), \(shape.rawValue), whole programs",
      figures: [
        Figure(.speed, of: .buckiaProcess, against: .geodiffApply),
        Figure(.speed, of: .buckiaProcess, against: .apswApply),
      ]
    ) { folder in
      let peers = try Peers.find()
      let changes = try ShippedChanges(kind, shape, rows: rows, in: folder)
      var implementations = [
        applying(.buckiaProcess, to: changes, isSubject: true) { database, folder in
          try ChildProcess(
            peers.buckia, ["apply", database, changes.diffFile, "--quiet"],
            environment: ["BUCKIA_HOME": folder.path]
          ).run()
          return nil
        }
      ]
      if peers.python != nil {
        let command = kind == .conflictingInserts ? "apsw-apply-omitting" : "apsw-apply"
        implementations.append(
          applying(.apswApply, to: changes) { database, _ in try peers.seconds(command, database, changes.changeset) })
        // It cannot resolve conflicts.
        if kind != .conflictingInserts {
          let own = folder.newFile(".geodiff")
          _ = try peers.seconds("geodiff-diff", changes.database, changes.changed, own)
          implementations.append(
            applying(.geodiffApply, to: changes) { database, _ in try peers.seconds("geodiff-apply", database, own) })
        }
      }
      return Workload(size: changes.size, notes: peers.notes, implementations: implementations)
    }
  }

  private static func applying(
    _ name: ImplementationName, to changes: ShippedChanges, isSubject: Bool = false,
    _ work: @escaping (String, ScratchFolder) throws -> Double?
  ) -> Implementation {
    Implementation(name, isSubject: isSubject) { folder in
      let database = try folder.copy(of: changes.database)
      return ClosureRun(content: { try ShippedChanges.content(of: database) }) { try work(database, folder) }
    }
  }
}

extension ShippedChanges.Kind {
  fileprivate var id: String {
    switch self {
    case .inserts: "inserts"
    case .alterations: "updates-and-deletes"
    case .conflictingInserts: "conflicts"
    }
  }

  fileprivate func title(rows: Int) -> String {
    switch self {
    case .inserts: "\(Quantity.grouped(rows)) inserts"
    case .alterations: "\(Quantity.grouped(max(2, rows / 4))) updates and deletes"
    case .conflictingInserts: "\(Quantity.grouped(rows)) conflicting inserts, the local rows kept"
    }
  }
}
