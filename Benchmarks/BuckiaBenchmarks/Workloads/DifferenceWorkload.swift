import Buckia
import BuckiaApply
import BuckiaDiff
import SQLiteConnections

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension ImplementationName {
  /// Buckia in this process: from two database files to a diff file on disk.
  package static let buckiaDiff: ImplementationName = "Buckia, in-process"
  /// The same with the row method, which Buckia uses where it cannot compare pages.
  package static let buckiaRowDiff: ImplementationName = "Buckia row by row, in-process"
  /// SQLite's own comparison of two attached databases.
  package static let sessionDiff: ImplementationName = "sqlite3session_diff, in-process"
}

/// How many rows of a database were changed.
package enum ChangedRows: Sendable {
  /// One in a hundred.
  case onePercent
  /// This many.
  case exactly(Int)

  func count(of rows: Int) -> Int {
    switch self {
    case .onePercent: max(1, rows / 100)
    case .exactly(let count): min(count, rows)
    }
  }

  /// What was changed, for titles.
  package var title: String {
    switch self {
    case .onePercent: "1% changed"
    case .exactly(let count): "\(Quantity.grouped(count)) rows changed"
    }
  }

  var id: String {
    switch self {
    case .onePercent: "one-percent"
    case .exactly(let count): "\(count)-rows"
    }
  }
}

extension Comparison {
  /// From two database files to a file of changes, in this process.
  ///
  /// - Parameter others: Makes further implementations for the pair of databases.
  package static func difference(
    _ shape: TableShape, rows: Int, changed: ChangedRows, id: String = "difference", figures: [Figure]? = nil,
    others: @escaping (DatabasePair) throws -> (implementations: [Implementation], notes: [String]) = { _ in ([], [])
    }
  ) -> Comparison {
    Comparison(
      id: "\(id)-\(shape.id)-\(changed.id)",
      title: "Difference of two databases, \(Quantity.grouped(rows)) rows, \(changed.title), \(shape.rawValue)",
      figures: figures ?? [Figure(.speed, of: .buckiaDiff, against: .sessionDiff)]
    ) { folder in
      let pair = try DatabasePair(shape, rows: rows, changed: changed, in: folder)
      let others = try others(pair)
      return Workload(
        size: pair.size, notes: others.notes,
        implementations: [pair.sessionDiff, pair.buckiaDiff] + others.implementations)
    }
  }
}

/// An older and a newer version of a database.
package final class DatabasePair {
  /// The older database.
  package let older: String
  /// The newer database.
  package let newer: String
  /// The size of the databases, for people.
  package let size: String

  /// Makes a database with wide rows, and a copy with random changes: of 20 changed rows, one is deleted, one is new and
  /// 18 have other values in two columns.
  package init(_ shape: TableShape, rows: Int, changed: ChangedRows, in folder: ScratchFolder) throws {
    older = folder.newFile()
    newer = folder.newFile()
    try shape.makeDatabase(at: older, rows: rows, width: .wide)
    try FileManager.default.copyItem(atPath: older, toPath: newer)
    let source = try SQLiteConnection(opening: newer, as: .readWrite)
    try source.execute("PRAGMA synchronous = OFF")
    var random = SeededGenerator(seed: 2)
    let count = changed.count(of: rows)
    let (new, gone) = (count / 20, count / 20)
    try shape.choose(random.distinct(count - new, from: 1...rows), on: source)
    try source.execute(
      """
      DELETE FROM t WHERE k IN (SELECT k FROM chosen ORDER BY k LIMIT \(gone));
      \(TableShape.update)
      """)
    if new > 0 { try source.execute(shape.insertion(of: (rows + 1)...(rows + new), width: .wide)) }
    let bytes = FileSystem.byteCount(of: older)
    size = "\(Quantity.grouped(rows)) rows, \(Quantity.size(Int(bytes))), \(Quantity.grouped(count)) rows changed"
  }

  /// The hash of the older database's rows after a changeset was applied.
  package func contentAfter(changeset: [UInt8], in folder: ScratchFolder) throws -> UInt64 {
    try StockCalls.contentAfter(changeset, on: older, in: folder)
  }

  /// The hash of the older database's rows after a diff file was applied.
  package func contentAfter(diffFile: String, in folder: ScratchFolder) throws -> UInt64 {
    try contentAfter(changeset: try EngineCalls.changeset(in: diffFile), in: folder)
  }

  /// The hash of a database's rows.
  package func content(of database: String) throws -> UInt64 { try ContentHash.of(TableShape.table, in: database) }

  var sessionDiff: Implementation {
    Implementation(.sessionDiff) { folder in
      let file = folder.newFile(".changeset")
      return ClosureRun(content: { try self.contentAfter(changeset: Self.bytes(of: file), in: folder) }) {
        let changes = try StockCalls.difference(from: self.older, to: self.newer, tables: [TableShape.table])
        try Data(changes).write(to: URL(fileURLWithPath: file))
        return nil
      }
    }
  }

  var buckiaDiff: Implementation { buckiaDiff(.buckiaDiff, by: nil) }

  private func buckiaDiff(_ name: ImplementationName, by method: DiffMethod?) -> Implementation {
    Implementation(name, isSubject: true) { folder in
      let file = folder.newFile(".bdiff")
      return ClosureRun(content: { try self.contentAfter(diffFile: file, in: folder) }) {
        try EngineCalls.diff(from: self.older, to: self.newer, file: file, home: folder.file("home"), by: method)
        return nil
      }
    }
  }

  /// Buckia with the row method.
  package var rowDiff: Implementation { buckiaDiff(.buckiaRowDiff, by: .rows) }

  /// The bytes of a file.
  package static func bytes(of file: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(fileURLWithPath: file)))
  }
}
