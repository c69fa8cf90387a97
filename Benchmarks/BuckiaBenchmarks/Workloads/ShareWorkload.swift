import Buckia
import SQLiteConnections

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension ImplementationName {
  /// Buckia in this process: from a database that was shared, and has been changed since, to a diff file on disk.
  package static let sharing: ImplementationName = "Buckia, sharing what has changed"
  /// Buckia in this process: applying the first diff of a stream.
  package static let applyingShare: ImplementationName = "Buckia, the first diff of a stream"
  /// The same rows in a diff of two databases, which belongs to no stream.
  package static let applyingDiff: ImplementationName = "Buckia, a diff of two databases"
}

extension Comparison {
  /// Sharing what has changed since the last time, compared with the difference of two database files.
  ///
  /// - Parameter share: The target: how many times as long it may take.
  package static func sharing(
    _ shape: TableShape, rows: Int, changed: ChangedRows, share: Double? = nil
  ) -> Comparison {
    Comparison(
      id: "sharing-\(shape.id)-\(changed.id)",
      title: "Sharing what has changed of \(Quantity.grouped(rows)) rows, \(changed.title), \(shape.rawValue)",
      figures: [Figure(.share, of: .sharing, against: .buckiaDiff, target: share)]
    ) { folder in
      let pair = try DatabasePair(shape, rows: rows, changed: changed, in: folder)
      let changes = try StockCalls.difference(from: pair.older, to: pair.newer, tables: [TableShape.table])
      return Workload(
        size: pair.size, notes: ["What was shared before is in the database, too, which is twice as large by that."],
        implementations: [
          pair.sessionDiff, pair.buckiaDiff,
          Implementation(.sharing, isSubject: true) { folder in
            let database = try folder.copy(of: pair.older)
            let home = folder.file("home")
            try EngineCalls.share(database, into: folder.newFile(".bdiff"), home: home)
            try StockCalls.apply(
              StockChangeset(changes), to: SQLiteConnection(opening: database, as: .readWrite))
            let file = folder.newFile(".bdiff")
            return ClosureRun(content: { try pair.contentAfter(diffFile: file, in: folder) }) {
              try EngineCalls.share(database, into: file, home: home)
              return nil
            }
          },
        ])
    }
  }

  /// Applying the first diff of a stream, which has everything that is shared, compared with a diff that belongs to no stream.
  ///
  /// - Parameter share: The target: how many times as long it may take.
  package static func receivingShare(_ shape: TableShape, rows: Int, share: Double? = nil) -> Comparison {
    Comparison(
      id: "receiving-\(shape.id)",
      title: "The first diff of a stream, \(Quantity.grouped(rows)) rows, \(shape.rawValue)",
      figures: [Figure(.share, of: .applyingShare, against: .applyingDiff, target: share)]
    ) { folder in
      let source = folder.newFile()
      try shape.makeDatabase(at: source, rows: rows)
      let empty = folder.newFile()
      try shape.makeDatabase(at: empty, rows: 0)
      let diff = folder.newFile(".bdiff")
      let home = folder.file("home")
      try EngineCalls.diff(from: empty, to: source, file: diff, home: home)
      let shared = folder.newFile(".bdiff")
      try EngineCalls.share(source, into: shared, home: home)
      func applying(_ file: String, as name: ImplementationName, isSubject: Bool) -> Implementation {
        Implementation(name, isSubject: isSubject) { folder in
          let inbound = try folder.copy(of: file, suffix: ".bdiff")
          let database = try SQLiteConnection(opening: try folder.copy(of: empty), as: .readWrite)
          let path = database.path
          return ConnectionRun(database) { _ in try EngineCalls.apply(inbound: inbound, to: path) }
        }
      }
      return Workload(
        size: "diff file of \(Quantity.size(Int(FileSystem.byteCount(of: shared))))",
        implementations: [
          applying(shared, as: .applyingShare, isSubject: true), applying(diff, as: .applyingDiff, isSubject: false),
        ])
    }
  }
}
