import BuckiaBytes
import CBuckia

/// Runs a function, and converts its error into a status and an error for C.
func call(_ error: ErrorPlace, _ body: () throws -> Void) -> buckia_status {
  error?.pointee = nil
  do {
    try body()
    return BUCKIA_OK
  } catch let thrown {
    let failure = ErrorObject(thrown)
    let status = failure.status
    error?.pointee = Handle.give(failure)
    return status
  }
}

/// The same for the work of a function on a database.
func call(_ error: ErrorPlace, on database: OpaquePointer?, _ body: (Database) throws -> Void) -> buckia_status {
  call(error) { try body(Handle.required(database, "database")) }
}

/// The same for a function that gives a document.
func call(_ error: ErrorPlace, _ json: TextPlace, _ body: () throws -> JSONValue) -> buckia_status {
  json?.pointee = nil
  return call(error) {
    let document = try body()
    try Results.give(document, to: json)
  }
}

/// The same for a function that gives a document about a database.
func call(
  _ error: ErrorPlace, on database: OpaquePointer?, _ json: TextPlace, _ body: (Database) throws -> JSONValue
) -> buckia_status {
  call(error, json) { try body(Handle.required(database, "database")) }
}
