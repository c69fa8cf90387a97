import CBuckiaSQLite

extension SQLiteConnection {
  /// How many bytes the page caches of the connection take up.
  ///
  /// See [`SQLITE_DBSTATUS_CACHE_USED`](https://sqlite.org/c3ref/c_dbstatus_options.html).
  package var cacheBytes: Int {
    var current: Int32 = 0
    var highest: Int32 = 0
    handle.routines.db_status(handle.pointer, SQLITE_DBSTATUS_CACHE_USED, &current, &highest)
    return Int(current)
  }

  /// Writes the changed pages in the page cache to the database file or its WAL, so that they no longer fill the cache.
  ///
  /// They stay part of the open transaction. See <https://sqlite.org/c3ref/db_cacheflush.html>.
  ///
  /// - Throws: `SQLiteError` when they cannot be written.
  package func flushCache() throws(SQLiteError) {
    let code = handle.routines.db_cacheflush(handle.pointer)
    // Pages in use by a running statement are left in the cache.
    if code != SQLITE_BUSY { try handle.check(code) }
  }

  /// Does something with a page cache of `main` that may take up so many bytes, or more if it may already.
  ///
  /// See <https://sqlite.org/pragma.html#pragma_cache_size>.
  ///
  /// - Throws: `SQLiteError` when the setting cannot be read or changed; what `body` throws.
  package func withPageCache<Result>(of bytes: Int, _ body: () throws -> Result) throws -> Result {
    let size = try integer("PRAGMA main.cache_size") ?? 0
    let pageSize = try integer("PRAGMA main.page_size") ?? 4_096
    let kibibytes = size < 0 ? -size : size * pageSize >> 10
    guard Int64(bytes >> 10) > kibibytes else { return try body() }
    try execute("PRAGMA main.cache_size = -\(bytes >> 10)")
    return try cleaningUp(after: body) { try execute("PRAGMA main.cache_size = \(size)") }
  }

  /// Does something while SQLite writes no temporary files, but keeps what does not fit in memory of any amount.
  ///
  /// See <https://sqlite.org/pragma.html#pragma_temp_store>.
  ///
  /// The setting is as before afterwards, unless the app has made TEMP tables meanwhile, which would be lost.
  ///
  /// - Returns: nil, and nothing is done, where it cannot be had: the connection has TEMP tables or triggers of the app's, which would
  ///   be lost, or a transaction is open, in which SQLite does not change the setting, or its SQLite was built to write such files always.
  /// - Throws: `SQLiteError` when the setting cannot be read or changed; what `body` throws.
  package func withTemporaryFilesInMemory<Result>(_ body: () throws -> Result) throws -> Result? {
    if try keepsTemporaryFilesInMemory { return try body() }
    guard !isInTransaction, try !hasTemporaryObjectsOfOthers else { return nil }
    let chosen = try integer("PRAGMA temp_store") ?? 0
    try execute("PRAGMA temp_store = MEMORY")
    return try cleaningUp(after: { try keepsTemporaryFilesInMemory ? body() : nil }) {
      if try !hasTemporaryObjectsOfOthers { try execute("PRAGMA temp_store = \(chosen)") }
    }
  }

  /// Whether SQLite keeps what does not fit, such as the parts of a sort, in memory of any amount instead of in files.
  ///
  /// See <https://sqlite.org/tempfiles.html#the_sqlite_temp_store_compile_time_parameter_and_pragma>.
  ///
  /// - Throws: `SQLiteError` when the settings cannot be read.
  package var keepsTemporaryFilesInMemory: Bool {
    get throws {
      var compiled: Int64 = 1
      try forEachRow(of: "SELECT compile_options FROM pragma_compile_options") { row in
        let option = row.text(at: 0) ?? ""
        if option.hasPrefix("TEMP_STORE=") { compiled = Int64(option.dropFirst("TEMP_STORE=".count)) ?? compiled }
      }
      let chosen = try integer("PRAGMA temp_store") ?? 0
      return switch compiled {
      case 0: false
      case 1: chosen == 2
      case 2: chosen != 1
      default: true
      }
    }
  }
}
