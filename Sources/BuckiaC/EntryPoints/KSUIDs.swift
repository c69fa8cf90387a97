import Buckia
import CBuckia

@c @implementation
package func buckia_ksuid_new(
  _ home: CString, _ id: UnsafeMutablePointer<buckia_ksuid>?, _ error: ErrorPlace
) -> buckia_status {
  call(error) {
    guard let id else { throw Arguments.misuse("id is NULL") }
    let made = try BuckiaHome(home, nil).next(after: [])
    // Without the clock an id is unique, but not the largest.
    if let warning = made.warning { throw BuckiaError(.unwritable, warning.description) }
    give(made.id, to: id)
  }
}

@c @implementation
package func buckia_ksuid_parse(
  _ text: CString, _ id: UnsafeMutablePointer<buckia_ksuid>?, _ error: ErrorPlace
) -> buckia_status {
  call(error) {
    guard let id else { throw Arguments.misuse("id is NULL") }
    give(try KSUID(parsing: Arguments.text(text, "text")), to: id)
  }
}

/// Writes an id as C has it.
private func give(_ id: KSUID, to place: UnsafeMutablePointer<buckia_ksuid>) {
  var result = buckia_ksuid()
  // Sound: both arrays have room for all of it, and a NUL follows the text.
  withUnsafeMutableBytes(of: &result.text) { $0.copyBytes(from: id.description.utf8) }
  withUnsafeMutableBytes(of: &result.bytes) { $0.copyBytes(from: id.bytes) }
  result.unix_seconds = id.unixSeconds
  place.pointee = result
}
