import CBuckiaSQLite

extension SQLiteConnection {
  /// The name of the collating sequence that ``registerByteCollation()`` adds.
  public static let byteCollation = "buckia_bytes"

  /// Adds the collating sequence ``byteCollation``: text compared byte by byte as UTF-8, whatever the database's encoding.
  ///
  /// In a UTF-16 database `BINARY` compares UTF-16 code units in memory order, which no other encoding agrees with.
  public func registerByteCollation() throws(SQLiteError) { try registerByteCollation(named: Self.byteCollation) }

  /// Adds a collating sequence of that name, which compares byte by byte.
  public func registerByteCollation(named name: String) throws(SQLiteError) {
    let code = ByteCollation.register(name, on: handle)
    guard code == SQLITE_OK else { throw lastError(code) }
  }

  /// Puts another collating sequence in the place of any that only the application knows, so that its tables can be read.
  ///
  /// SQLite does not read a WITHOUT ROWID table whose key it cannot compare, though its rows lie there one after the other. Only
  /// for a connection that reads whole tables: whoever looks a value up by such an index, or writes, goes astray.
  public func readThroughUnknownCollations() throws(SQLiteError) {
    let code = sqlite3_collation_needed(handle, nil) { _, handle, _, name in
      guard let handle, let name else { return }
      // Where it fails, SQLite says that there is no such collating sequence.
      _ = ByteCollation.register(String(cString: name), on: handle)
    }
    guard code == SQLITE_OK else { throw lastError(code) }
  }
}

/// Text compared byte by byte.
private enum ByteCollation {
  static func register(_ name: String, on handle: OpaquePointer) -> Int32 {
    sqlite3_create_collation_v2(
      handle, name, SQLITE_UTF8, nil,
      { _, firstCount, first, secondCount, second in
        // Sound: SQLite passes buffers of exactly these lengths, alive for the call.
        let order = UnsafeRawBufferPointer(start: first, count: Int(firstCount))
          .byteOrder(against: UnsafeRawBufferPointer(start: second, count: Int(secondCount)))
        return Int32(order)
      }, nil)
  }
}
