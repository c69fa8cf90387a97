import SQLiteConnections

extension ContenderName {
  /// Buckia, writing both versions of each conflict down.
  public static let buckiaRecording: ContenderName = "Buckia, recording both versions"
  /// Buckia, writing no conflict down.
  public static let buckiaResolving: ContenderName = "Buckia, the resolver alone"
  /// SQLite's own call, keeping what is there.
  public static let stockKeepingLocal: ContenderName = "sqlite3changeset_apply_v2, recording nothing"
}

extension Comparison {
  /// New rows for a table that has others under all of their keys; what is there stays.
  ///
  /// - Parameters:
  ///   - resolving: How many times as fast as SQLite's own call the resolver alone should be.
  ///   - recording: The same with both versions of each conflict recorded, which SQLite does not do.
  public static func conflicts(
    _ shape: TableShape, rows: Int, resolving: Double? = nil, recording: Double? = nil
  ) -> Comparison {
    Comparison(
      id: "conflicts-\(shape.id)",
      title: "\(Quantity.grouped(rows)) conflicting inserts, keep-local, \(shape.rawValue)",
      figures: [
        Figure(.speed, of: .buckiaResolving, against: .stockKeepingLocal, target: resolving),
        Figure(.speed, of: .buckiaRecording, against: .stockKeepingLocal, target: recording),
      ]
    ) { try ConflictWorkload(shape, rows: rows, in: $0).workload }
  }
}

/// New rows, and a database that each contender gets a copy of.
private struct ConflictWorkload {
  let rows: Int
  let database: OriginalDatabase
  let changes: RecordedChanges

  init(_ shape: TableShape, rows: Int, in folder: ScratchFolder) throws {
    self.rows = rows
    database = try OriginalDatabase(shape, rows: rows, in: folder)
    let local = try SQLiteConnection(opening: database.path, as: .readWrite)
    try local.execute("PRAGMA synchronous = OFF; \(TableShape.localEdit)")
    let author = try SQLiteConnection(opening: ":memory:", as: .create)
    try author.execute(shape.definition)
    changes = try RecordedChanges(of: shape.insertion(of: 1...rows), on: author)
  }

  var workload: Workload {
    let changes = changes
    let contenders = [
      database.contender(.stockKeepingLocal) { try StockCalls.apply(changes.recorded, onConflict: .omit, to: $0) },
      database.contender(.buckiaRecording, isSubject: true) {
        try EngineCalls.apply(try EngineCalls.changes(changes.sorted), policy: .keepLocal, to: $0)
      },
      database.contender(.buckiaResolving, isSubject: true) {
        try EngineCalls.apply(
          try EngineCalls.changes(changes.sorted), resolver: { _ in .keepLocal }, recordsConflicts: false, to: $0)
      },
    ]
    return Workload(
      size: "\(Quantity.grouped(rows)) rows on both sides, changeset of \(changes.size)", contenders: contenders)
  }
}
