import SQLiteConnections

extension ImplementationName {
  /// SQLite's own call on a changeset in key order, which the session extension does not write.
  package static let stockSorted: ImplementationName = "sqlite3changeset_apply_v2, sorted by key"
  /// One prepared INSERT over rows in key order.
  package static let bareInserts: ImplementationName = "bare loop of INSERT"
}

extension Comparison {
  /// Many new rows in an empty table, as in a first synchronization.
  ///
  /// - Parameter target: How many times as fast as SQLite's own call it should be.
  package static func inserts(_ shape: TableShape, rows: Int, target: Double? = nil) -> Comparison {
    Comparison(
      id: "inserts-\(shape.id)", title: "\(Quantity.grouped(rows)) inserts, \(shape.rawValue)",
      figures: [
        Figure(.speed, against: .stock, target: target),
        Figure(.speed, against: .bareInserts, target: target == nil ? nil : 1),
        Figure(.speed, against: .stockSorted),
      ]
    ) { _ in try InsertWorkload(shape, rows: rows).workload }
  }
}

/// Rows for an empty table.
private struct InsertWorkload {
  let shape: TableShape
  let rows: Int
  let changes: RecordedChanges
  // A copy, because SQLite's call needs a mutable array that is not shared.
  let sorted: StockChangeset

  init(_ shape: TableShape, rows: Int) throws {
    self.shape = shape
    self.rows = rows
    let source = try SQLiteConnection(opening: ":memory:", as: .create)
    try source.execute(shape.definition)
    changes = try RecordedChanges(of: shape.insertion(of: 1...rows), on: source)
    sorted = StockChangeset(changes.sorted)
  }

  var workload: Workload {
    Workload(
      size: "\(Quantity.grouped(rows)) rows, changeset of \(changes.size), file database in WAL, default cache",
      implementations: [
        implementation(.stock) { try StockCalls.apply(changes.recorded, to: $0) },
        implementation(.stockSorted) { try StockCalls.apply(sorted, to: $0) },
        implementation(.bareInserts) { try PreparedStatementLoop.apply(changes.sorted, to: $0) },
        implementation(.buckia, isSubject: true) {
          try EngineCalls.apply(try EngineCalls.changes(changes.sorted), to: $0)
        },
      ])
  }

  private func implementation(
    _ name: ImplementationName, isSubject: Bool = false, _ work: @escaping (borrowing SQLiteConnection) throws -> Void
  ) -> Implementation {
    Implementation(name, isSubject: isSubject) { folder in
      let connection = try SQLiteConnection(opening: folder.newFile(), as: .create)
      try connection.execute("PRAGMA journal_mode = WAL")
      try connection.execute(shape.definition)
      return ConnectionRun(connection, work)
    }
  }
}
