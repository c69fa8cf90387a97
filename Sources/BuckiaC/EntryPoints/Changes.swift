import Buckia
import BuckiaBytes
import CBuckia

@c @implementation
package func buckia_changes_open(
  _ path: UnsafePointer<CChar>?, _ options: UnsafePointer<buckia_file_options>?,
  _ changes: UnsafeMutablePointer<OpaquePointer?>?, _ error: UnsafeMutablePointer<OpaquePointer?>?
) -> buckia_status {
  call(error) { try open(to: changes, options) { .path(try Arguments.text(path, "path")) } }
}

@c @implementation
package func buckia_changes_open_bytes(
  _ bytes: UnsafeRawPointer?, _ length: Int, _ options: UnsafePointer<buckia_file_options>?,
  _ changes: UnsafeMutablePointer<OpaquePointer?>?, _ error: UnsafeMutablePointer<OpaquePointer?>?
) -> buckia_status {
  call(error) {
    try open(to: changes, options) {
      let bytes = try Arguments.array(bytes?.assumingMemoryBound(to: UInt8.self), length, "bytes")
      let input = PositionedInput(TemporaryBuffer(Array(bytes)))
      return .spooled(try SpooledInput(input, named: "bytes"))
    }
  }
}

private func open(
  to place: UnsafeMutablePointer<OpaquePointer?>?, _ options: UnsafePointer<buckia_file_options>?,
  _ source: () throws -> InboundSource
) throws {
  guard let place else { throw Arguments.misuse("changes is NULL") }
  place.pointee = nil
  let options = try FileOptions(options)
  try options.watch.check()
  let file = try DiffInspection.open(
    source(), home: options.home, decryption: options.decryption, progress: { options.watch.tell($0) },
    poll: { try options.watch.check() })
  place.pointee = Handle.give(ChangeStream(file))
}

@c @implementation
package func buckia_changes_manifest(_ changes: OpaquePointer?) -> UnsafePointer<CChar>? {
  Handle.object(changes, as: ChangeStream.self)?.manifest?.pointer
}

@c @implementation
package func buckia_changes_next(
  _ changes: OpaquePointer?, _ change: UnsafeMutablePointer<UnsafePointer<buckia_change>?>?,
  _ error: UnsafeMutablePointer<OpaquePointer?>?
) -> buckia_status {
  change?.pointee = nil
  var found: UnsafePointer<buckia_change>?
  let status = call(error) {
    let changes: ChangeStream = try Handle.required(changes, "changes")
    guard change != nil else { throw Arguments.misuse("change is NULL") }
    found = try changes.next()
  }
  guard status == BUCKIA_OK else { return status }
  change?.pointee = found
  return found == nil ? BUCKIA_DONE : BUCKIA_ROW
}

@c @implementation
package func buckia_changes_read(
  _ changes: OpaquePointer?, _ value: UnsafePointer<buckia_value>?, _ offset: Int64,
  _ buffer: UnsafeMutableRawPointer?, _ length: Int, _ read: UnsafeMutablePointer<Int>?,
  _ error: UnsafeMutablePointer<OpaquePointer?>?
) -> buckia_status {
  read?.pointee = 0
  return call(error) {
    let changes: ChangeStream = try Handle.required(changes, "changes")
    guard let value else { throw Arguments.misuse("value is NULL") }
    guard let read else { throw Arguments.misuse("read is NULL") }
    guard length >= 0, buffer != nil || length == 0 else { throw Arguments.misuse("buffer is NULL") }
    guard offset >= 0 else { throw Arguments.misuse("offset is negative") }
    read.pointee = try changes.read(
      value, from: Int(clamping: offset), into: UnsafeMutableRawBufferPointer(start: buffer, count: length))
  }
}

@c @implementation
package func buckia_changes_close(_ changes: OpaquePointer?) { Handle.free(changes, as: ChangeStream.self) }
