import BuckiaApply
import BuckiaDiff
import Foundation
import SQLiteConnections

extension ContenderName {
  /// Buckia in the measuring process: from two files to a diff file on disk.
  public static let buckiaDiff: ContenderName = "Buckia, in-process"
  /// The same, told to compare row by row: what it does where it cannot compare pages.
  public static let buckiaRowDiff: ContenderName = "Buckia row by row, in-process"
  /// SQLite's own comparison of two attached databases.
  public static let sessionDiff: ContenderName = "sqlite3session_diff, in-process"
}

/// How many rows of a database were changed.
public enum ChangedRows: Sendable {
  /// One in a hundred.
  case onePercent
  /// So many.
  case exactly(Int)

  func count(of rows: Int) -> Int {
    switch self {
    case .onePercent: max(1, rows / 100)
    case .exactly(let count): min(count, rows)
    }
  }

  /// What was changed, for titles.
  public var title: String {
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
  /// From two database files to a file of changes, everything in the measuring process.
  ///
  /// - Parameter others: Who else takes part, given the pair of databases.
  public static func difference(
    _ shape: TableShape, rows: Int, changed: ChangedRows, id: String = "difference", figures: [Figure]? = nil,
    others: @escaping (DatabasePair) throws -> (contenders: [Contender], remarks: [String]) = { _ in ([], []) }
  ) -> Comparison {
    Comparison(
      id: "\(id)-\(shape.id)-\(changed.id)",
      title: "Difference of two databases, \(Quantity.grouped(rows)) rows, \(changed.title), \(shape.rawValue)",
      figures: figures ?? [Figure(.speed, of: .buckiaDiff, against: .sessionDiff)]
    ) { folder in
      let pair = try DatabasePair(shape, rows: rows, changed: changed, in: folder)
      let others = try others(pair)
      return Workload(
        size: pair.size, remarks: others.remarks, contenders: [pair.sessionDiff, pair.buckiaDiff] + others.contenders)
    }
  }
}

/// A database, and what became of it.
public final class DatabasePair {
  /// The database as it was.
  public let older: String
  /// The database as it is.
  public let newer: String
  /// How large it is, for people.
  public let size: String

  /// Makes a database with wide rows, and a copy in which some were changed at random: of twenty, one was deleted, one is
  /// new and eighteen have other values in two columns.
  public init(_ shape: TableShape, rows: Int, changed: ChangedRows, in folder: ScratchFolder) throws {
    older = folder.newFile()
    newer = folder.newFile()
    try shape.makeDatabase(at: older, rows: rows, width: .wide)
    try FileManager.default.copyItem(atPath: older, toPath: newer)
    let author = try SQLiteConnection(opening: newer, as: .readWrite)
    try author.execute("PRAGMA synchronous = OFF")
    var random = SeededGenerator(seed: 2)
    let count = changed.count(of: rows)
    let (new, gone) = (count / 20, count / 20)
    try shape.choose(random.distinct(count - new, from: 1...rows), on: author)
    try author.execute(
      """
      DELETE FROM t WHERE k IN (SELECT k FROM chosen ORDER BY k LIMIT \(gone));
      \(TableShape.update)
      """)
    if new > 0 { try author.execute(shape.insertion(of: (rows + 1)...(rows + new), width: .wide)) }
    let bytes = try FileManager.default.attributesOfItem(atPath: older)[.size] as? Int ?? 0
    size = "\(Quantity.grouped(rows)) rows, \(Quantity.size(bytes)), \(Quantity.grouped(count)) rows changed"
  }

  /// What a changeset makes of the older database must be the newer one's rows.
  public func contentAfter(changeset: [UInt8], in folder: ScratchFolder) throws -> UInt64 {
    try StockCalls.contentAfter(changeset, on: older, in: folder)
  }

  /// The same for a diff file of Buckia's.
  public func contentAfter(diffFile: String, in folder: ScratchFolder) throws -> UInt64 {
    try contentAfter(changeset: try EngineCalls.changeset(in: diffFile), in: folder)
  }

  /// The rows of the table of a database file.
  public func content(of database: String) throws -> UInt64 { try ContentHash.of(TableShape.table, in: database) }

  var sessionDiff: Contender {
    Contender(.sessionDiff) { folder in
      let file = folder.newFile(".changeset")
      return ClosureTrial(content: { try self.contentAfter(changeset: Self.bytes(of: file), in: folder) }) {
        let changes = try StockCalls.difference(from: self.older, to: self.newer, tables: [TableShape.table])
        try Data(changes).write(to: URL(fileURLWithPath: file))
        return nil
      }
    }
  }

  var buckiaDiff: Contender { buckiaDiff(.buckiaDiff, by: nil) }

  private func buckiaDiff(_ name: ContenderName, by method: DiffMethod?) -> Contender {
    Contender(name, isSubject: true) { folder in
      let file = folder.newFile(".bdiff")
      return ClosureTrial(content: { try self.contentAfter(diffFile: file, in: folder) }) {
        try EngineCalls.diff(from: self.older, to: self.newer, file: file, home: folder.file("home"), by: method)
        return nil
      }
    }
  }

  /// Buckia, told to compare row by row.
  public var rowDiff: Contender { buckiaDiff(.buckiaRowDiff, by: .rows) }

  /// The bytes of a file.
  public static func bytes(of file: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(fileURLWithPath: file)))
  }
}
