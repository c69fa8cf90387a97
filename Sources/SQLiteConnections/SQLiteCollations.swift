import BuckiaBytes
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
    try handle.check(BuiltInCollation.binary.register(name, on: handle.pointer, handle.routines))
  }

  /// Replaces every unknown collating sequence with a byte-by-byte comparison, to make tables that use one readable.
  ///
  /// SQLite refuses to read a WITHOUT ROWID table whose key it cannot compare, although a full scan compares nothing. Only
  /// for a connection that reads whole tables: index lookups and writes would go wrong.
  package func readThroughUnknownCollations() throws(SQLiteError) {
    // The callback stays with the connection, perhaps beyond this value: its context is a number, not an address.
    let code = handle.routines.collation_needed(handle.pointer, library.context) { context, pointer, _, bytes in
      guard let pointer, let name = bytes.map({ String(cString: $0) }) else { return }
      // SQLite has its own for UTF-8 only, and asks before it uses them for UTF-16.
      if BuiltInCollation(named: name) != nil { return }
      // If this fails, SQLite reports that there is no such collating sequence.
      _ = BuiltInCollation.binary.register(name, on: pointer, SQLiteLibrary(context: context).routines)
    }
    try handle.check(code)
  }
}

/// SQLite's own collating sequences (<https://sqlite.org/datatype3.html#collating_sequences>), which can be had under other names.
package enum BuiltInCollation: String, Sendable {
  case binary, nocase, rtrim

  /// The one that has a name, whatever its case.
  package init?(named name: some StringProtocol) { self.init(rawValue: name.lowercased()) }

  /// Adds it to a connection under another name.
  func register(_ name: String, on pointer: OpaquePointer, _ routines: SQLiteRoutines) -> Int32 {
    switch self {
    case .binary:
      routines.create_collation_v2(pointer, name) { _, firstCount, first, secondCount, second in
        Int32(text(first, firstCount).byteOrder(against: text(second, secondCount)))
      }
    case .nocase:
      routines.create_collation_v2(pointer, name) { _, firstCount, first, secondCount, second in
        for (one, other) in zip(text(first, firstCount), text(second, secondCount)) {
          let difference = Int32(ASCIIName.folded(one)) - Int32(ASCIIName.folded(other))
          if difference != 0 { return difference }
        }
        return firstCount - secondCount
      }
    case .rtrim:
      routines.create_collation_v2(pointer, name) { _, firstCount, first, secondCount, second in
        Int32(trimmed(text(first, firstCount)).byteOrder(against: trimmed(text(second, secondCount))))
      }
    }
  }
}

/// What SQLite gives a collating sequence to compare.
private func text(_ start: UnsafeRawPointer?, _ count: Int32) -> UnsafeRawBufferPointer {
  // Sound: SQLite passes buffers of exactly these lengths, alive for the call.
  UnsafeRawBufferPointer(start: start, count: Int(count))
}

/// The text without the spaces at its end.
private func trimmed(_ text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
  UnsafeRawBufferPointer(rebasing: text.prefix(text.lastIndex { $0 != 0x20 }.map { $0 + 1 } ?? 0))
}

/// Additions to each connection that the program opens: functions and collating sequences of the app that made the
/// database. Without them SQLite can neither read nor write tables that use them.
///
/// Connections that an app lends have their own.
package struct ConnectionExtensions: Sendable {
  /// The paths of loadable extensions.
  package var files: [String] = []
  /// Built-in collating sequences that stand in for an app's own, by the names of the latter.
  ///
  /// They must put the present values into the same order: in an index with another order, SQLite misses rows. An
  /// integrity check finds such indexes.
  package var collations: [String: BuiltInCollation] = [:]

  /// Nothing is added.
  package init() {}

  /// The additions for connections that are opened later. Set once when the program starts, before other threads run.
  nonisolated(unsafe) package static var ofProcess = ConnectionExtensions()

  /// Adds all of it to a connection that was just opened.
  func install(on handle: SQLiteHandle) throws(SQLiteError) {
    for (name, collation) in collations {
      try handle.check(collation.register(name, on: handle.pointer, handle.routines))
    }
    guard !files.isEmpty else { return }
    // A build of SQLite can lack it, such as that of Apple's systems.
    guard let load = handle.routines.table.pointee.load_extension else {
      throw SQLiteError(code: SQLITE_ERROR, message: "this copy of SQLite loads no extensions", path: handle.path)
    }
    var isEnabled: Int32 = 0
    let option = SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION
    try handle.check(handle.routines.db_config(handle.pointer, option, 1, &isEnabled))
    defer { _ = handle.routines.db_config(handle.pointer, option, 0, &isEnabled) }
    for file in files {
      var message: UnsafeMutablePointer<CChar>?
      defer { handle.routines.free(message) }
      let code = load(handle.pointer, file, nil, &message)
      guard code == SQLITE_OK else {
        let reason = message.map { String(cString: $0) } ?? "unknown error"
        throw SQLiteError(code: code, message: "the extension cannot be loaded: \(reason)", path: file)
      }
    }
  }
}
