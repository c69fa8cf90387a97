import SQLiteConnections

/// What ``DatabaseManager/backupDatabase(to:)`` made.
public struct BackupCopy: Sendable, Equatable {
  /// The file.
  public let path: String
  /// Its size in bytes.
  public let bytes: Int64
  /// Whether it replaced an earlier one.
  public let isReplacement: Bool
}

extension DatabaseManager {
  /// Copies the whole database as it is at one moment into a file of its own, also while others use it: with everything that Buckia keeps in it.
  ///
  /// The copy is complete under its name or not there at all, replaces an earlier one in one step, and needs no file beside it. A database that is
  /// restored from it is another incarnation of its replica, which Buckia notices by itself; see <doc:Replicas>. What the next difference is made from is
  /// not a backup but a snapshot, ``snapshot(to:)``.
  ///
  /// ```swift
  /// try database.backupDatabase(to: "backup.sqlite")
  /// ```
  ///
  /// - Parameter path: The file. Only an SQLite database is replaced, and not one that is in use.
  /// - Returns: What was made.
  /// - Throws: `BuckiaError`: `notReplaceable` when the path is something else than a database, or the database itself; `busy` when the
  ///   database is locked; `misuse` for a borrowed database inside a transaction of the app; what SQLite says when the copy cannot be
  ///   written. An earlier copy then stays as it is.
  @discardableResult
  public func backupDatabase(to path: String) throws -> BackupCopy {
    try withReader { connection in
      guard !isBorrowed || !connection.isInTransaction else {
        throw BuckiaError(.misuse, "a backup cannot be made inside a transaction of the app, which may still roll back")
      }
      if !isBorrowed { try connection.requireContent() }
      let target = DatabaseFileTarget(path, for: "backup")
      let isReplacement = try target.requireReplaceable(by: connection.path)
      let temporary = try target.makeTemporaryFile(like: connection.path)
      try connection.copyState(to: temporary.path)
      try target.publish(temporary)
      return BackupCopy(path: path, bytes: FileSystem.byteCount(of: path), isReplacement: isReplacement)
    }
  }
}
