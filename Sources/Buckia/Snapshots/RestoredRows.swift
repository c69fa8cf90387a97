import BuckiaBytes
import BuckiaDiff
import BuckiaFormat
import BuckiaSharing
import SQLiteConnections
import SQLiteSchemas

extension DatabaseManager {
  /// Brings rows back to their state in an earlier copy of the database, by a diff that is applied like any other.
  ///
  /// - Parameters:
  ///   - scope: The tables and rows. Rows that they refer to come back, too, if they were deleted.
  ///   - earlier: The copy, which no other program uses.
  ///   - deletes: True to delete the rows of the scope that the copy does not have.
  ///   - options: How the diff is applied.
  /// - Returns: What became of the diff; nil if nothing differs. And the columns that the database no longer has, as
  ///   `table.column`, whose values stay out.
  /// - Throws: `BuckiaError`, as ``processInboundChanges(_:options:resolver:progress:)``.
  package func restoreRows(
    of scope: ShareScope, from earlier: String, deletes: Bool, options: ApplyOptions
  ) throws -> (report: ApplyReport?, missingColumns: [String]) {
    let folder = try home.backupFolder()
    let file = try BuckiaError.wrapping { try TemporaryFile(in: folder, shownAs: folder, isPrivate: true) }
    let signer = try home.backupSigner()
    var missing: [String] = []
    let difference = try withReader { present in
      try requireOwnTransaction(or: "rows cannot be restored", on: present)
      // Rows of a restored database are given row versions.
      let source = try SQLiteConnection(opening: earlier, as: .readWrite)
      let reading = try SQLiteTransaction(.deferred, on: source)
      let comparing = try SQLiteTransaction(.deferred, on: present)
      let schema = try SchemaReader(present)
      var remaining = scope
      remaining.tables.removeAll { schema.entry(named: $0.name) == nil }
      let rows = try RestoredRows(
        of: ScopeRows(scope, on: source, SchemaReader(source)),
        into: remaining.tables.isEmpty ? nil : ScopeRows(remaining, on: present, schema), on: present, schema,
        deletes: deletes, replaces: { options.conflicts.policy(for: $0) == .takeIncoming })
      missing = rows.missingColumns
      var comparison = DiffOptions(tables: rows.tables, method: .rows, keyless: .content)
      comparison.allowsUnrelated = true
      let report = try Self.writeDiff(
        from: RowSource(on: present, selecting: rows.present),
        to: RowSource(on: source, selecting: rows.earlier), output: .file(file.path, replacing: true),
        options: comparison, signer: signer, home: AnonymousIDs(home: home))
      comparing.rollback()
      reading.rollback()
      return report
    }
    guard let id = difference.id else { return (nil, missing) }
    let diff = try BuckiaError.wrapping { try PositionedInput(PosixFile(reading: file.path), from: 0) }
    let source = InboundSource.spooled(try SpooledInput(diff, named: DiffFileName.diff(id)))
    return (try processInboundChanges([source], options: options), missing)
  }
}

/// Ids for diffs that name no replica as their sender.
private struct AnonymousIDs: OutgoingIDs {
  let home: BuckiaHome

  func next(after observed: [KSUID]) throws -> (id: KSUID, warning: Warning?) { try home.next(after: observed) }

  func begin(_ id: KSUID, from database: RowSource) -> (sender: Manifest.Sender?, warnings: [Warning]) { (nil, []) }
}
