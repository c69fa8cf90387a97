import CBuckiaSQLite

extension SQLiteConnection {
  /// The name of the collating sequence that ``registerByteCollation()`` adds.
  package static let byteCollation = "buckia_bytes"

  /// Adds the collating sequence ``byteCollation``, which compares text byte by byte as UTF-8 in any database encoding.
  ///
  /// In a UTF-16 database `BINARY` compares UTF-16 code units in memory order, which differs from all other encodings.
  ///
  /// A borrowed connection has it until it is given back.
  package func registerByteCollation() throws(SQLiteError) {
    try registerByteCollation(named: Self.byteCollation)
    handle.hasByteCollation = true
  }

  /// Removes the collating sequence ``byteCollation``. SQLite keeps it while a statement of the connection is running.
  func removeByteCollation() {
    _ = handle.routines.create_collation_v2(handle.pointer, Self.byteCollation, nil)
  }

  /// Adds a collating sequence of that name, which compares byte by byte.
  package func registerByteCollation(named name: String) throws(SQLiteError) {
    try handle.check(ByteCollation.register(name, on: handle.pointer, handle.routines))
  }

  /// Replaces every unknown collating sequence with a byte-by-byte comparison, so that tables which use one can be read.
  ///
  /// SQLite refuses to read a WITHOUT ROWID table whose key it cannot compare, although a full scan compares nothing. Only
  /// for a connection that reads whole tables: index lookups and writes would go wrong.
  package func readThroughUnknownCollations() throws(SQLiteError) {
    // The callback stays with the connection, perhaps beyond this value: its context is a number, not an address.
    let code = handle.routines.collation_needed(handle.pointer, library.context) { context, pointer, _, bytes in
      guard let pointer, let name = bytes.map({ String(cString: $0) }) else { return }
      // SQLite has its own for UTF-8 only, and asks before it uses them for UTF-16.
      if builtInCollations.contains(name.uppercased()) { return }
      // Where this fails, SQLite reports that there is no such collating sequence.
      _ = ByteCollation.register(name, on: pointer, SQLiteLibrary(context: context).routines)
    }
    try handle.check(code)
  }
}

/// SQLite's own collating sequences.
private let builtInCollations: Set<String> = ["BINARY", "NOCASE", "RTRIM"]

/// Compares text byte by byte.
private enum ByteCollation {
  static func register(_ name: String, on pointer: OpaquePointer, _ routines: SQLiteRoutines) -> Int32 {
    routines.create_collation_v2(pointer, name) { _, firstCount, first, secondCount, second in
      // Sound: SQLite passes buffers of exactly these lengths, alive for the call.
      let order = UnsafeRawBufferPointer(start: first, count: Int(firstCount))
        .byteOrder(against: UnsafeRawBufferPointer(start: second, count: Int(secondCount)))
      return Int32(order)
    }
  }
}
