import CBuckiaSQLite

/// What Buckia adds to a connection for the length of a call.
extension SQLiteConnection {
  /// The prefix of all TEMP tables and triggers of Buckia. ``borrowing(_:of:_:)`` drops the remaining ones.
  package static let temporaryPrefix = "buckia_temp_"

  /// The connections of the app's that are borrowed at the moment.
  private static let loans = ConnectionCounts()

  /// Records that the connection is borrowed.
  func beginLoan() { Self.loans.begin(handle.pointer) }

  /// Removes Buckia's additions to a borrowed connection. A call inside another, such as a resolver's, leaves the outer
  /// one's additions.
  ///
  /// - Throws: `SQLiteError`.
  func giveBack() throws {
    handle.statements = [:]
    if handle.hasByteCollation { removeByteCollation() }
    if Self.loans.end(handle.pointer) == 0 { try dropTemporaryObjects() }
  }

  private static let isOurs = "substr(iif(type = 'trigger', name, tbl_name), 1, 12) = '\(temporaryPrefix)'"

  /// True if the schema `temp` has objects other than Buckia's.
  ///
  /// - Throws: `SQLiteError` when the schema cannot be read.
  var hasTemporaryObjectsOfOthers: Bool {
    get throws(SQLiteError) {
      guard hasTemporarySchema else { return false }
      return try integer("SELECT 1 FROM temp.sqlite_schema WHERE NOT \(Self.isOurs) LIMIT 1") != nil
    }
  }

  /// Drops the TEMP tables and triggers of Buckia.
  ///
  /// SQLite drops no table while a statement of the connection reads. Such a table is emptied, and dropped after a later call.
  ///
  /// - Throws: `SQLiteError`.
  private func dropTemporaryObjects() throws {
    guard hasTemporarySchema else { return }
    var triggers: [String] = []
    var tables: [String] = []
    try forEachRow(
      of: """
        SELECT type, printf('temp."%w"', name) FROM temp.sqlite_schema
        WHERE type IN ('table', 'trigger') AND \(Self.isOurs)
        """
    ) { row in
      let name = row.text(at: 1) ?? ""
      if row.text(at: 0) == "table" { tables.append(name) } else { triggers.append(name) }
    }
    for name in triggers { try execute("DROP TRIGGER \(name)") }
    for name in tables {
      do throws(SQLiteError) {
        try execute("DROP TABLE \(name)")
      } catch {
        guard error.primaryCode == SQLITE_LOCKED else { throw error }
        try execute("DELETE FROM \(name)")
      }
    }
  }

  /// True if the connection has used the schema `temp`. SQLite creates it on first use, and then refuses to change its
  /// storage inside a transaction.
  private var hasTemporarySchema: Bool { handle.routines.db_readonly(handle.pointer, "temp") >= 0 }

  /// The size of the connection's page caches in bytes.
  ///
  /// See [`SQLITE_DBSTATUS_CACHE_USED`](https://sqlite.org/c3ref/c_dbstatus_options.html).
  package var cacheBytes: Int { status(SQLITE_DBSTATUS_CACHE_USED) }

  /// Writes the changed pages in the page cache to the database file or its WAL, to free the cache.
  ///
  /// They stay part of the open transaction. See <https://sqlite.org/c3ref/db_cacheflush.html>.
  ///
  /// - Throws: `SQLiteError` when they cannot be written.
  package func flushCache() throws(SQLiteError) {
    let code = handle.routines.db_cacheflush(handle.pointer)
    // Pages in use by a running statement are left in the cache.
    if code != SQLITE_BUSY { try handle.check(code) }
  }

  /// Runs `body` with a limit of at least this many bytes for the page cache of `main`.
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

  /// Runs `body` while SQLite keeps temporary data in memory, without a limit, and writes no temporary files.
  ///
  /// See <https://sqlite.org/pragma.html#pragma_temp_store>.
  ///
  /// The setting is as before afterwards, unless the app has made TEMP tables meanwhile, which would be lost.
  ///
  /// - Returns: nil, without running `body`, if that is impossible: the connection has TEMP tables or triggers of the
  ///   app, which would be lost, or a transaction is open, in which SQLite does not change the setting, or its SQLite
  ///   was built to write such files always.
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

  /// True if SQLite keeps temporary data, such as the parts of a sort, in memory without a limit, and not in files.
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
