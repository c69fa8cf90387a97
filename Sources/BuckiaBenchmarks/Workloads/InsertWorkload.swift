import SQLiteConnections

extension ContenderName {
  /// SQLite's own call on changes in key order, which it does not make by itself.
  public static let stockSorted: ContenderName = "sqlite3changeset_apply_v2, sorted by key"
  /// One prepared INSERT over rows in key order.
  public static let bareInserts: ContenderName = "bare loop of INSERT"
}

extension Comparison {
  /// Many new rows in an empty table: what a first share or a long time apart comes down to.
  ///
  /// - Parameter target: How many times as fast as SQLite's own call it should be.
  public static func inserts(_ shape: TableShape, rows: Int, target: Double? = nil) -> Comparison {
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
  // A copy, which SQLite's call may have to itself.
  let sorted: StockChangeset

  init(_ shape: TableShape, rows: Int) throws {
    self.shape = shape
    self.rows = rows
    let author = try SQLiteConnection(opening: ":memory:", as: .create)
    try author.execute(shape.definition)
    changes = try RecordedChanges(of: shape.insertion(of: 1...rows), on: author)
    sorted = StockChangeset(changes.sorted)
  }

  var workload: Workload {
    Workload(
      size: "\(Quantity.grouped(rows)) rows, changeset of \(changes.size), file database in WAL, default cache",
      contenders: [
        contender(.stock) { try StockCalls.apply(changes.recorded, to: $0) },
        contender(.stockSorted) { try StockCalls.apply(sorted, to: $0) },
        contender(.bareInserts) { try BareLoop.apply(changes.sorted, to: $0) },
        contender(.buckia, isSubject: true) { try EngineCalls.apply(try EngineCalls.changes(changes.sorted), to: $0) },
      ])
  }

  private func contender(
    _ name: ContenderName, isSubject: Bool = false, _ work: @escaping (borrowing SQLiteConnection) throws -> Void
  ) -> Contender {
    Contender(name, isSubject: isSubject) { folder in
      let connection = try SQLiteConnection(opening: folder.newFile(), as: .create)
      try connection.execute("PRAGMA journal_mode = WAL")
      try connection.execute(shape.definition)
      return ConnectionTrial(connection, work)
    }
  }
}
