import BuckiaFormat
import SQLiteConnections

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A database, a newer version of it and the changes in between, as files for other programs.
package final class ShippedChanges {
  /// What was done.
  package enum Kind: Sendable {
    /// New rows in an empty table.
    case inserts
    /// A quarter of the rows, half of them updated, half deleted.
    case alterations
    /// New rows under keys that the database has, with other values.
    case conflictingInserts
  }

  /// The database to apply the changes to.
  package let database: String
  /// The database on which the changes were recorded.
  package let changed: String
  /// The changeset as SQLite's session extension recorded it.
  package let changeset: String
  /// The same changes as a diff file.
  package let diffFile: String
  /// The sizes, for people.
  package let size: String

  /// Makes the files.
  ///
  /// - Parameters:
  ///   - kind: What is done.
  ///   - rows: How many rows the table has, or gets.
  ///   - folder: Where the files go.
  package init(_ kind: Kind, _ shape: TableShape, rows: Int, in folder: ScratchFolder) throws {
    database = folder.newFile()
    changed = folder.newFile()
    changeset = folder.newFile(".changeset")
    try shape.makeDatabase(at: database, rows: kind == .inserts ? 0 : rows)
    // Conflicting inserts are recorded on an empty table.
    try shape.makeDatabase(at: changed, rows: kind == .alterations ? rows : 0)
    let source = try SQLiteConnection(opening: changed, as: .readWrite)
    try source.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -262144")
    let changes: RecordedChanges
    switch kind {
    case .inserts, .conflictingInserts:
      changes = try RecordedChanges(of: shape.insertion(of: 1...rows), on: source)
    case .alterations:
      var random = SeededGenerator(seed: 1)
      try shape.choose(random.distinct(max(2, rows / 4), from: 1...rows), on: source)
      changes = try RecordedChanges(of: TableShape.alteration, on: source)
    }
    if kind == .conflictingInserts {
      let local = try SQLiteConnection(opening: database, as: .readWrite)
      try local.execute("PRAGMA synchronous = OFF; \(TableShape.localEdit)")
    }
    try Data(changes.recorded.bytes).write(to: URL(fileURLWithPath: changeset))
    let packed = try DiffFileDraft.write(changes.sorted, shape: shape, number: 0, into: folder.path)
    diffFile = packed.path
    size = "\(Quantity.grouped(rows)) rows, changeset of \(changes.size), diff file of \(Quantity.size(packed.bytes))"
  }

  /// The hash of the rows that a diff file of the changes leads to.
  package func contentAfter(diffFile: String, in folder: ScratchFolder) throws -> UInt64 {
    try StockCalls.contentAfter(EngineCalls.changeset(in: diffFile), on: database, in: folder)
  }

  /// The hash of a database's rows.
  package static func content(of database: String) throws -> UInt64 {
    try ContentHash.of(TableShape.table, in: database)
  }
}
