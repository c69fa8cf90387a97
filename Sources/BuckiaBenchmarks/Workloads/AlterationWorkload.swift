import SQLiteConnections

extension ContenderName {
  /// One prepared UPDATE and one prepared DELETE over rows in key order.
  public static let bareAlterations: ContenderName = "bare loop of UPDATE and DELETE"
}

extension Comparison {
  /// A quarter of a table's rows, chosen at random: half of them updated, half deleted.
  ///
  /// - Parameters:
  ///   - rows: How many rows the table has.
  ///   - target: How many times as fast as SQLite's own call it should be.
  public static func alterations(_ shape: TableShape, rows: Int, target: Double? = nil) -> Comparison {
    Comparison(
      id: "updates-and-deletes-\(shape.id)",
      title: "\(Quantity.grouped(max(2, rows / 4))) updates and deletes, \(shape.rawValue)",
      figures: [Figure(.speed, against: .stock, target: target), Figure(.speed, against: .bareAlterations)]
    ) { try AlterationWorkload(shape, rows: rows, in: $0).workload }
  }

  /// As ``alterations(_:rows:target:)``, one kind alone: a quarter of the rows updated, or deleted.
  public static func alterations(_ shape: TableShape, rows: Int, only kind: AlterationKind) -> Comparison {
    Comparison(
      id: "\(kind.rawValue)-\(shape.id)",
      title: "\(Quantity.grouped(max(2, rows / 4))) \(kind.rawValue), \(shape.rawValue)",
      figures: [Figure(.speed, against: .stock), Figure(.speed, against: .bareAlterations)]
    ) { try AlterationWorkload(shape, rows: rows, only: kind, in: $0).workload }
  }
}

/// What happens to rows that are there.
public enum AlterationKind: String, Sendable {
  case updates
  case deletes
}

/// Changes of rows of a database that each contender gets a copy of.
private struct AlterationWorkload {
  let rows: Int
  let database: OriginalDatabase
  let changes: RecordedChanges

  init(_ shape: TableShape, rows: Int, only kind: AlterationKind? = nil, in folder: ScratchFolder) throws {
    self.rows = rows
    database = try OriginalDatabase(shape, rows: rows, in: folder)
    let author = try database.authorsCopy()
    var random = SeededGenerator(seed: 1)
    try shape.choose(random.distinct(max(2, rows / 4), from: 1...rows), on: author)
    switch kind {
    case .updates: changes = try RecordedChanges(of: TableShape.update, on: author)
    case .deletes: changes = try RecordedChanges(of: TableShape.deletion, on: author)
    case nil: changes = try RecordedChanges(of: TableShape.alteration, on: author)
    }
  }

  var workload: Workload {
    Workload(
      size: "of \(Quantity.grouped(rows)) rows, changeset of \(changes.size), file database in WAL, default cache",
      contenders: [
        database.contender(.stock) { [changes] in try StockCalls.apply(changes.recorded, to: $0) },
        database.contender(.bareAlterations) { [changes] in try BareLoop.apply(changes.sorted, to: $0) },
        database.contender(.buckia, isSubject: true) { [changes] in
          try EngineCalls.apply(try EngineCalls.changes(changes.sorted), to: $0)
        },
      ])
  }
}
