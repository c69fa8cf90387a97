import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Completes a snapshot that was not made anew, because the process died when diffs had been applied. Without them what
/// others have sent would count as edited here, and go out again.
enum SnapshotRepair {
  /// Brings what is missing into the snapshot, if anything is.
  ///
  /// - Parameters:
  ///   - path: The snapshot.
  ///   - mark: What it says of itself; nil where it says nothing.
  ///   - database: The database.
  /// - Returns: A remark where it is not known any more what the diffs did; the snapshot stays as it was then.
  /// - Throws: `SQLiteError`, `LedgerError`.
  static func run(
    _ path: String, marked mark: SnapshotMark?, of database: borrowing SQLiteConnection
  ) throws -> Remark? {
    guard var mark, let applied = try SnapshotRuns.entries(for: mark.id, on: database),
      applied.upperBound > mark.through
    else { return nil }
    let missing = max(applied.lowerBound, mark.through + 1)...applied.upperBound
    let diffs = try SnapshotRuns.diffs(among: missing, on: database)
    guard !diffs.isEmpty else { return nil }
    var effects = EffectReader()
    var parts: [AppliedEffects.Part] = []
    for diff in diffs {
      let found = try effects.parts(of: diff.entry, on: database)
      guard !found.isEmpty else { return Remark(.snapshotIncomplete, path, diff.file) }
      parts += found
    }
    let snapshot = try SQLiteConnection(opening: path, as: .readWrite)
    let transaction = try SQLiteTransaction(on: snapshot)
    do {
      let schema = try SchemaReader(snapshot)
      // What was sent before these came was sent of the snapshot as it is.
      try apply(SentChanges.read(from: snapshot), schema, to: snapshot)
      for part in parts {
        let definitions = try part.tables.map { try $0.definition(in: schema, for: "a diff") }
        try PlainChanges(TemporaryBuffer(part.changes), definitions).apply(to: snapshot, conflicts: .takeIncoming)
      }
    } catch let error as any FileFault where error.refusal != nil {
      transaction.rollback()
      return Remark(.snapshotIncomplete, path, diffs[0].file)
    }
    try SentChanges.clear(in: snapshot)
    mark.through = applied.upperBound
    try mark.write(to: snapshot)
    try transaction.commit()
    return nil
  }

  private static func apply(
    _ changes: TemporaryBuffer, _ schema: SchemaReader, to snapshot: borrowing SQLiteConnection
  ) throws {
    guard !changes.isEmpty else { return }
    let summary = try ChangesetSummary.of(changes)
    let definitions = try summary.tables.map { table in
      guard let entry = schema.entry(named: TableName(table.table.name)) else {
        throw ReplicationError(.missingTable, "no table \"\(table.table.name)\"", table: table.table.name)
      }
      return try schema.definition(of: entry)
    }
    try PlainChanges(changes, definitions, summary).apply(to: snapshot, conflicts: .takeIncoming)
  }
}
