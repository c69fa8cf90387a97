import Buckia
import CBuckia

@c @implementation
package func buckia_open(
  _ path: CString, _ database: UnsafeMutablePointer<OpaquePointer?>?, _ error: ErrorPlace
) -> buckia_status {
  call(error) { try give(to: database) { Database(try Arguments.text(path, "path")) } }
}

@c @implementation
package func buckia_open_handle(
  _ handle: OpaquePointer?, _ routines: UnsafeRawPointer?, _ database: UnsafeMutablePointer<OpaquePointer?>?,
  _ error: ErrorPlace
) -> buckia_status {
  call(error) {
    try give(to: database) {
      guard let handle else { throw Arguments.misuse("handle is NULL") }
      return try Database(handle, of: routines.map { try SQLiteCopy(routines: $0) })
    }
  }
}

@c @implementation
package func buckia_open_handle_finding(
  _ handle: OpaquePointer?, _ find: buckia_symbol_callback?, _ context: UnsafeMutableRawPointer?,
  _ database: UnsafeMutablePointer<OpaquePointer?>?, _ error: ErrorPlace
) -> buckia_status {
  call(error) {
    try give(to: database) {
      guard let handle else { throw Arguments.misuse("handle is NULL") }
      guard let find else { throw Arguments.misuse("find is NULL") }
      let copy = try SQLiteCopy { symbol in symbol.withCString { find(context, $0) } }
      return try Database(handle, of: copy)
    }
  }
}

/// Stores a database in an output argument.
private func give(to place: UnsafeMutablePointer<OpaquePointer?>?, _ make: () throws -> Database) throws {
  guard let place else { throw Arguments.misuse("database is NULL") }
  place.pointee = nil
  place.pointee = Handle.give(try make())
}

@c @implementation
package func buckia_close(_ database: OpaquePointer?) { Handle.free(database, as: Database.self) }

@c @implementation
package func buckia_set_home(
  _ database: OpaquePointer?, _ home: CString, _ passphrase: CString, _ error: ErrorPlace
) -> buckia_status {
  call(error, on: database) { database in
    database.home = try BuckiaHome(home, passphrase)
  }
}

@c @implementation
package func buckia_set_busy_timeout(
  _ database: OpaquePointer?, _ milliseconds: Int32, _ error: ErrorPlace
) -> buckia_status {
  call(error, on: database) { database in
    guard milliseconds >= 0 else { throw Arguments.misuse("milliseconds is negative") }
    database.busyTimeout = milliseconds
  }
}

@c @implementation
package func buckia_init(
  _ database: OpaquePointer?, _ trust: buckia_trust, _ json: TextPlace, _ error: ErrorPlace
) -> buckia_status {
  call(error, on: database, json) { database in
    let mode = try trust.mode
    return try database.with { manager in
      let report = try manager.initialize(trust: mode)
      return try report.json(dataset: manager.dataset())
    }
  }
}
