import Buckia
import BuckiaStorage

extension BackupStore {
  /// Brings rows of a database back to their state in a point.
  ///
  /// They come as a diff that is applied like any other: conflicts follow the policies, `undo` takes it back, and the
  /// next share sends it. The database can be in use.
  ///
  /// ```swift
  /// var photos = SharedTable("photo")
  /// photos.condition = "album = 7"
  /// let (point, report, _) = try await store.restoreRows(of: ShareScope(tables: [photos]), into: database)
  /// print(point.time, report?.applied.count ?? 0)
  /// ```
  ///
  /// - Parameters:
  ///   - scope: The tables and rows: those that either state has in the scope. Rows that they refer to come back, too, if
  ///     they were deleted since.
  ///   - database: The database.
  ///   - selection: The point.
  ///   - history: The history of the point; nil for that of the database, or for any.
  ///   - identities: The secret keys, of which one opens an encrypted backup.
  ///   - deletesNewer: True to delete the rows of the scope that the point does not have.
  ///   - options: How the diff is applied; nil to take the values of the point.
  /// - Returns: The point, what became of the diff, nil if nothing differs, and the columns that the database no longer
  ///   has, as `table.column`, whose values stay out.
  /// - Throws: As ``restore(to:at:of:with:)``; `BuckiaError` for a scope that does not fit the database.
  @discardableResult
  public func restoreRows(
    of scope: ShareScope, into database: DatabaseManager, at selection: PointSelection = .newest,
    of history: String? = nil, with identities: [AgeIdentity] = [], deletesNewer: Bool = false,
    options: ApplyOptions? = nil
  ) async throws -> (point: BackupPoint, report: ApplyReport?, missingColumns: [String]) {
    let files = try await runBlocking { try WorkingFiles(besides: database.home.backupFolder() + "/rows") }
    let own = try await runBlocking { try knownHistory(of: database) }
    let point = try await assemble(selection, of: history ?? own, with: identities, in: files)
    let (report, missing) = try await CancellationFlag.onThreadOfItsOwn { _ in
      try database.restoreRows(
        of: scope, from: files.assembly, deletes: deletesNewer,
        options: options ?? ApplyOptions(conflicts: .takeIncoming))
    }
    return (point, report, missing)
  }
}
