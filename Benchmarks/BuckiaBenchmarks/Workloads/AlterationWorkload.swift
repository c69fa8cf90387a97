import SQLiteConnections

extension ImplementationName {
  /// One prepared UPDATE and one prepared DELETE over rows in key order.
  package static let bareAlterations: ImplementationName = "bare loop of UPDATE and DELETE"
}

extension Comparison {
  /// Updates and deletes of random rows, an eighth of the table each.
  ///
  /// - Parameters:
  ///   - rows: How many rows the table has.
  ///   - target: How many times as fast as SQLite's own call it should be.
  package static func alterations(_ shape: TableShape, rows: Int, target: Double? = nil) -> Comparison {
    Comparison(
      id: "updates-and-deletes-\(shape.id)",
      title: "\(Quantity.grouped(max(2, rows / 4))) updates and deletes, \(shape.rawValue)",
      figures: [Figure(.speed, against: .stock, target: target), Figure(.speed, against: .bareAlterations)]
    ) { try AlterationWorkload(shape, rows: rows, in: $0).workload }
  }

  /// Updates or deletes alone, of a quarter of the table.
  package static func alterations(_ shape: TableShape, rows: Int, only kind: AlterationKind) -> Comparison {
    Comparison(
      id: "\(kind.rawValue)-\(shape.id)",
      title: "\(Quantity.grouped(max(2, rows / 4))) \(kind.rawValue), \(shape.rawValue)",
      figures: [Figure(.speed, against: .stock), Figure(.speed, against: .bareAlterations)]
    ) { try AlterationWorkload(shape, rows: rows, only: kind, in: $0).workload }
  }
}

/// A kind of change to existing rows.
package enum AlterationKind: String, Sendable {
  case updates
  case deletes
}

/// Changes of existing rows, and the database to apply them to.
private struct AlterationWorkload {
  let rows: Int
  let database: OriginalDatabase
  let changes: RecordedChanges

  init(_ shape: TableShape, rows: Int, only kind: AlterationKind? = nil, in folder: ScratchFolder) throws {
    self.rows = rows
    database = try OriginalDatabase(shape, rows: rows, in: folder)
    let source = try database.sourceConnection()
    var random = SeededGenerator(seed: 1)
    try shape.choose(random.distinct(max(2, rows / 4), from: 1...rows), on: source)
    switch kind {
    case .updates: changes = try RecordedChanges(of: TableShape.update, on: source)
    case .deletes: changes = try RecordedChanges(of: TableShape.deletion, on: source)
    case nil: changes = try RecordedChanges(of: TableShape.alteration, on: source)
    }
  }

  var workload: Workload {
    Workload(
      size: "of \(Quantity.grouped(rows)) rows, changeset of \(changes.size), file database in WAL, default cache",
      implementations: [
        database.implementation(.stock) { [changes] in try StockCalls.apply(changes.recorded, to: $0) },
        database.implementation(.bareAlterations) { [changes] in try PreparedStatementLoop.apply(changes.sorted, to: $0)
        },
        database.implementation(.buckia, isSubject: true) { [changes] in
          try EngineCalls.apply(try EngineCalls.changes(changes.sorted), to: $0)
        },
      ])
  }
}
