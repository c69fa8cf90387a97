import SQLiteConnections

/// What reading leaves beside databases with a write-ahead log: an empty log and its index, which only a connection that may write
/// can take away again. See <https://sqlite.org/wal.html>.
struct ReadTraces {
  /// The databases that have no log yet.
  private let paths: [String]

  /// Looks at databases before they are read.
  init(besides paths: [String]) { self.paths = paths.filter { !FileSystem.exists("\($0)-wal") } }

  /// Lets SQLite remove the logs that are there now and that nobody uses. To be called when all connections are closed.
  func remove() {
    for path in paths where FileSystem.exists("\(path)-wal") {
      do {
        let connection = try SQLiteConnection(opening: path, as: .readWrite, busyTimeout: 0)
        _ = try connection.integer("SELECT count(*) FROM main.sqlite_schema")
      } catch {
        // A file that can only be read, or is in use by now, keeps them: they do no harm.
        continue
      }
    }
  }
}
