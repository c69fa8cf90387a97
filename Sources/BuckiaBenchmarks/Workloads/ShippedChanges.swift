import BuckiaDiffFiles
import Foundation
import SQLiteConnections

/// Changes as files, for programs that run by themselves: a database, what became of it, and the changes in between.
public final class ShippedChanges {
  /// What was done.
  public enum Kind: Sendable {
    /// New rows in an empty table.
    case inserts
    /// A quarter of the rows, half of them updated, half deleted.
    case alterations
    /// New rows under keys that the database has, with other values.
    case conflictingInserts
  }

  /// The database that the changes are for.
  public let database: String
  /// The database as it was made by the author of the changes.
  public let changed: String
  /// What SQLite's session extension recorded, in a file.
  public let changeset: String
  /// The same changes as a diff file.
  public let diffFile: String
  /// How large they are, for people.
  public let size: String

  /// Makes the files.
  ///
  /// - Parameters:
  ///   - kind: What is done.
  ///   - rows: How many rows the table has, or gets.
  ///   - folder: Where the files go.
  public init(_ kind: Kind, _ shape: TableShape, rows: Int, in folder: ScratchFolder) throws {
    database = folder.newFile()
    changed = folder.newFile()
    changeset = folder.newFile(".changeset")
    try shape.makeDatabase(at: database, rows: kind == .inserts ? 0 : rows)
    // The author of conflicting rows knows nothing of those that are there.
    try shape.makeDatabase(at: changed, rows: kind == .alterations ? rows : 0)
    let author = try SQLiteConnection(opening: changed, as: .readWrite)
    try author.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -262144")
    let changes: RecordedChanges
    switch kind {
    case .inserts, .conflictingInserts:
      changes = try RecordedChanges(of: shape.insertion(of: 1...rows), on: author)
    case .alterations:
      var random = SeededGenerator(seed: 1)
      try shape.choose(random.distinct(max(2, rows / 4), from: 1...rows), on: author)
      changes = try RecordedChanges(of: TableShape.alteration, on: author)
    }
    if kind == .conflictingInserts {
      let local = try SQLiteConnection(opening: database, as: .readWrite)
      try local.execute("PRAGMA synchronous = OFF; \(TableShape.localEdit)")
    }
    try Data(changes.recorded.copy).write(to: URL(fileURLWithPath: changeset))
    let packed = try DiffFileDraft.write(changes.sorted, shape: shape, number: 0, into: folder.path)
    diffFile = packed.path
    size = "\(Quantity.grouped(rows)) rows, changeset of \(changes.size), diff file of \(Quantity.size(packed.bytes))"
  }

  /// The rows of the table of a database file, as one number.
  public static func content(of database: String) throws -> UInt64 {
    try ContentHash.of(TableShape.table, in: database)
  }
}
