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
  /// - Returns: What became of the diff; nil if nothing differs.
  /// - Throws: `BuckiaError`, as ``processInboundChanges(_:options:resolver:progress:)``.
  package func restoreRows(
    of scope: ShareScope, from earlier: String, deletes: Bool, options: ApplyOptions
  ) throws -> ApplyReport? {
    let folder = try home.backupFolder()
    let file = try BuckiaError.wrapping { try TemporaryFile(in: folder, shownAs: folder, isPrivate: true) }
    let signer = try home.backupSigner()
    let difference = try withReader { present in
      try requireOwnTransaction(or: "rows cannot be restored", on: present)
      // Rows of a restored database are given row versions.
      let source = try SQLiteConnection(opening: earlier, as: .readWrite)
      let reading = try SQLiteTransaction(.deferred, on: source)
      let comparing = try SQLiteTransaction(.deferred, on: present)
      let rows = try ScopeRows(scope, on: source, SchemaReader(source))
      let selections = try rows.selections(
        restoring: ScopeRows(scope, on: present, SchemaReader(present)), deletes: deletes)
      var options = DiffOptions(tables: rows.tables, method: .rows, keyless: .content)
      options.allowsUnrelated = true
      let report = try Self.writeDiff(
        from: RowSource(on: present, selecting: selections.present),
        to: RowSource(on: source, selecting: selections.earlier), output: .file(file.path, replacing: true),
        options: options, signer: signer, home: AnonymousIDs(home: home))
      comparing.rollback()
      reading.rollback()
      return report
    }
    guard let id = difference.id else { return nil }
    let diff = try BuckiaError.wrapping { try PositionedInput(PosixFile(reading: file.path), from: 0) }
    return try processInboundChanges([.spooled(SpooledInput(diff, named: DiffFileName.diff(id)))], options: options)
  }
}

/// Ids for diffs that name no replica as their sender.
private struct AnonymousIDs: OutgoingIDs {
  let home: BuckiaHome

  func next(after observed: [KSUID]) throws -> (id: KSUID, warning: Warning?) { try home.next(after: observed) }

  func begin(_ id: KSUID, from database: RowSource) -> (sender: Manifest.Sender?, warnings: [Warning]) { (nil, []) }
}
