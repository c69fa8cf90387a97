import SQLiteConnections

extension ImplementationName {
  /// Buckia, recording both versions of each conflict.
  package static let buckiaRecording: ImplementationName = "Buckia, recording both versions"
  /// Buckia, recording no conflicts.
  package static let buckiaResolving: ImplementationName = "Buckia, the resolver alone"
  /// SQLite's own call, keeping the local row.
  package static let stockKeepingLocal: ImplementationName = "sqlite3changeset_apply_v2, recording nothing"
}

extension Comparison {
  /// Inserts whose keys all exist already; the local rows are kept.
  ///
  /// - Parameters:
  ///   - resolving: How many times as fast as SQLite's own call the resolver alone should be.
  ///   - recording: The same with both versions of each conflict recorded, which SQLite does not do.
  package static func conflicts(
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

/// New rows, and the database to apply them to.
private struct ConflictWorkload {
  let rows: Int
  let database: OriginalDatabase
  let changes: RecordedChanges

  init(_ shape: TableShape, rows: Int, in folder: ScratchFolder) throws {
    self.rows = rows
    database = try OriginalDatabase(shape, rows: rows, in: folder)
    let local = try SQLiteConnection(opening: database.path, as: .readWrite)
    try local.execute("PRAGMA synchronous = OFF; \(TableShape.localEdit)")
    let source = try SQLiteConnection(opening: ":memory:", as: .create)
    try source.execute(shape.definition)
    changes = try RecordedChanges(of: shape.insertion(of: 1...rows), on: source)
  }

  var workload: Workload {
    let changes = changes
    let implementations = [
      database.implementation(.stockKeepingLocal) { try StockCalls.apply(changes.recorded, onConflict: .omit, to: $0) },
      database.implementation(.buckiaRecording, isSubject: true) {
        try EngineCalls.apply(try EngineCalls.changes(changes.sorted), policy: .keepLocal, to: $0)
      },
      database.implementation(.buckiaResolving, isSubject: true) {
        try EngineCalls.apply(
          try EngineCalls.changes(changes.sorted), resolver: { _ in .keepLocal }, recordsConflicts: false, to: $0)
      },
    ]
    return Workload(
      size: "\(Quantity.grouped(rows)) rows on both sides, changeset of \(changes.size)",
      implementations: implementations)
  }
}
