import SQLiteConnections

extension ImplementationName {
  /// Buckia, with every index kept up to date row by row.
  package static let buckiaKeepingIndexes: ImplementationName = "Buckia, keeping all indexes"
}

/// What is done to a table with four indexes besides its key.
package enum IndexedWork: String, CaseIterable, Sendable {
  /// New rows in an empty table.
  case inserts
  /// As many new rows as there are already, with one of the indexes unique.
  case additions
  /// Updates of a quarter of the rows, which touch two of the indexes.
  case updates
}

extension Comparison {
  /// Many changes of a table with indexes, as real tables have them.
  ///
  /// - Parameters:
  ///   - rows: How many rows the table has in the end.
  ///   - target: How many times as fast as SQLite's own call it should be.
  package static func indexed(
    _ work: IndexedWork, _ shape: TableShape, rows: Int, target: Double? = nil
  ) -> Comparison {
    Comparison(
      id: "indexed-\(work.rawValue)-\(shape.id)", title: work.title(shape, rows: rows),
      figures: [
        Figure(.speed, against: .stock, target: target),
        // Where all of them are kept, the two do the same, but never take exactly as long.
        Figure(.speed, against: .buckiaKeepingIndexes, target: target == nil ? nil : 0.95),
      ]
    ) { try IndexedWorkload(work, shape, rows: rows, in: $0).workload }
  }
}

extension IndexedWork {
  fileprivate func title(_ shape: TableShape, rows: Int) -> String {
    switch self {
    case .inserts: "\(Quantity.grouped(rows)) inserts under four indexes, \(shape.rawValue)"
    case .additions:
      "\(Quantity.grouped(rows / 2)) inserts beside \(Quantity.grouped(rows / 2)) rows under four indexes, one unique, "
        + shape.rawValue
    case .updates: "\(Quantity.grouped(max(2, rows / 4))) updates of two of four indexes, \(shape.rawValue)"
    }
  }

  /// How many rows there are before.
  fileprivate func existing(of rows: Int) -> Int {
    switch self {
    case .inserts: 0
    case .additions: rows / 2
    case .updates: rows
    }
  }

  /// SQL that makes the indexes: over numbers, texts and blobs, and over two columns.
  package var indexes: String {
    """
    CREATE INDEX t_a ON t(a); CREATE INDEX t_b ON t(b); CREATE INDEX t_ca ON t(c, a);
    CREATE \(self == .additions ? "UNIQUE " : "")INDEX t_d ON t(d)
    """
  }
}

/// Changes of a table with indexes, and the database to apply them to.
private struct IndexedWorkload {
  let work: IndexedWork
  let rows: Int
  let database: OriginalDatabase
  let changes: RecordedChanges

  init(_ work: IndexedWork, _ shape: TableShape, rows: Int, in folder: ScratchFolder) throws {
    self.work = work
    self.rows = rows
    let existing = work.existing(of: rows)
    database = try OriginalDatabase(shape, rows: existing, in: folder)
    let source = try database.sourceConnection()
    switch work {
    case .inserts, .additions:
      changes = try RecordedChanges(of: shape.insertion(of: existing + 1...max(existing + 1, rows)), on: source)
    case .updates:
      var random = SeededGenerator(seed: 1)
      try shape.choose(random.distinct(max(2, rows / 4), from: 1...rows), on: source)
      changes = try RecordedChanges(of: TableShape.update, on: source)
    }
    let original = try SQLiteConnection(opening: database.path, as: .readWrite)
    try original.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -262144; \(work.indexes)")
  }

  var workload: Workload {
    let changes = changes
    return Workload(
      size: "\(Quantity.grouped(rows)) rows, changeset of \(changes.size), file database in WAL, default cache",
      implementations: [
        database.implementation(.stock) { try StockCalls.apply(changes.recorded, to: $0) },
        database.implementation(.buckiaKeepingIndexes, isSubject: true) {
          try EngineCalls.apply(try EngineCalls.changes(changes.sorted), indexes: .keep, to: $0)
        },
        database.implementation(.buckia, isSubject: true) {
          try EngineCalls.apply(try EngineCalls.changes(changes.sorted), to: $0)
        },
      ])
  }
}
