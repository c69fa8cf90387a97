import Buckia
import CBuckia

@c @implementation
package func buckia_changes_open(
  _ path: CString, _ options: UnsafePointer<buckia_file_options>?, _ changes: UnsafeMutablePointer<OpaquePointer?>?,
  _ error: ErrorPlace
) -> buckia_status {
  call(error) { try open(to: changes, options) { .path(try Arguments.text(path, "path")) } }
}

@c @implementation
package func buckia_changes_open_bytes(
  _ bytes: UnsafeRawPointer?, _ length: Int, _ options: UnsafePointer<buckia_file_options>?,
  _ changes: UnsafeMutablePointer<OpaquePointer?>?, _ error: ErrorPlace
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
package func buckia_changes_manifest(_ changes: OpaquePointer?) -> CString {
  Handle.object(changes, as: ChangeStream.self)?.manifest?.pointer
}

@c @implementation
package func buckia_changes_next(
  _ changes: OpaquePointer?, _ change: UnsafeMutablePointer<UnsafePointer<buckia_change>?>?, _ error: ErrorPlace
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
  _ buffer: UnsafeMutableRawPointer?, _ length: Int, _ read: UnsafeMutablePointer<Int>?, _ error: ErrorPlace
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

/// What `buckia_changes` points to: the changes of a file, of which C sees one at a time.
///
/// The bytes of the present change are copied into one buffer, and its values point into that.
final class ChangeStream {
  /// The manifest of the file; nil for a raw changeset.
  let manifest: CText?
  private var iteration: ChangeIteration
  private let change: UnsafeMutablePointer<buckia_change>
  /// The old values, followed by the new ones.
  private var values = UnsafeMutableBufferPointer<buckia_value>(start: nil, count: 0)
  private var longValues: [LongValue?] = []
  private var isKey = UnsafeMutableBufferPointer<Bool>(start: nil, count: 0)
  private var bytes = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  private var table = CText("")
  private var columns = CTexts([])

  init(_ file: InspectedFile) {
    manifest = file.manifest.map { CText($0.lineText()) }
    iteration = ChangeIteration(of: file)
    change = .allocate(capacity: 1)
    change.initialize(to: buckia_change())
  }

  deinit {
    change.deallocate()
    values.deallocate()
    isKey.deallocate()
    bytes.deallocate()
  }

  /// Goes on to the next change.
  ///
  /// - Returns: The change, which is valid until the next call; nil after the last one.
  func next() throws -> UnsafePointer<buckia_change>? {
    longValues.removeAll(keepingCapacity: true)
    // The previous change becomes invalid.
    change.pointee.column_count = 0
    let found: Void? = try iteration.next { next, columns, scan, source in
      guard let table = scan.reader.table else { return }
      if next.startsTable { begin(table, columns) }
      copy(source.extracting(next.range))
      let count = table.columnCount
      for column in 0..<count {
        set(column, scan.reader.old[column], of: next, scan)
        set(count + column, scan.reader.new[column], of: next, scan)
      }
      fill(next, count)
    }
    return found == nil ? nil : UnsafePointer(change)
  }

  private func begin(_ table: ChangesetTable, _ names: [String]) {
    self.table = CText(table.name)
    columns = CTexts(names)
    values.deallocate()
    values = .allocate(capacity: 2 * table.columnCount)
    values.initialize(repeating: buckia_value())
    isKey.deallocate()
    isKey = .allocate(capacity: table.columnCount)
    _ = isKey.initialize(from: (0..<table.columnCount).map { table.isKey($0) })
  }

  private func copy(_ source: RawSpan) {
    if bytes.count < source.byteCount {
      bytes.deallocate()
      bytes = .allocate(byteCount: max(2 * source.byteCount, 4_096), alignment: 16)
    }
    // Sound: there is room for all of it.
    source.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: bytes[..<$0.count]).copyMemory(from: $0) }
  }

  private func set(_ place: Int, _ slice: ValueSlice, of next: Change, _ scan: ChangesetScan) {
    var value = buckia_value()
    let start = slice.payload - next.range.lowerBound
    switch slice.kind {
    case .undefined: value.type = BUCKIA_NONE
    case .null: value.type = BUCKIA_NULL
    case .integer:
      value.type = BUCKIA_INTEGER
      value.integer = Int64(bitPattern: number(at: start))
    case .real:
      value.type = BUCKIA_REAL
      value.real = Double(bitPattern: number(at: start))
    case .text, .blob:
      value.type = slice.kind == .text ? BUCKIA_TEXT : BUCKIA_BLOB
      value.bytes = bytes.baseAddress.map { UnsafeRawPointer($0 + start) }
      value.length = slice.count
      value.whole_length = Int64(slice.count)
      if let long = ChangeIteration.longValue(slice, in: scan) {
        value.whole_length = Int64(long.byteCount)
        longValues += Array(repeating: nil, count: max(0, place + 1 - longValues.count))
        longValues[place] = long
      }
    }
    values[place] = value
  }

  private func number(at start: Int) -> UInt64 {
    // Sound: the number was found to be inside the change, whose bytes these are.
    UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self))
  }

  private func fill(_ next: Change, _ count: Int) {
    change.pointee.table = table.pointer
    change.pointee.operation = next.operation.cValue
    change.pointee.indirect = next.isIndirect
    change.pointee.column_count = count
    change.pointee.columns = columns.pointer
    change.pointee.is_key = UnsafePointer(isKey.baseAddress)
    let start = UnsafePointer(values.baseAddress)
    change.pointee.old_values = next.operation == .insert ? nil : start
    change.pointee.new_values = next.operation == .delete ? nil : start?.advanced(by: count)
  }

  /// Reads a part of a value.
  ///
  /// - Parameters:
  ///   - pointer: A value of the present change.
  ///   - offset: The offset in bytes.
  ///   - buffer: The buffer to fill.
  /// - Returns: The number of read bytes.
  /// - Throws: `BuckiaError` with `misuse` when the value is none of this change; when a temporary file cannot be read.
  func read(
    _ pointer: UnsafePointer<buckia_value>, from offset: Int, into buffer: UnsafeMutableRawBufferPointer
  ) throws -> Int {
    let stride = MemoryLayout<buckia_value>.stride
    // Only compared: the pointer may be any.
    let distance = Int(bitPattern: pointer) &- Int(bitPattern: values.baseAddress)
    let place = distance / stride
    guard change.pointee.column_count > 0, distance >= 0, distance % stride == 0, values.indices.contains(place),
      values[place].type == BUCKIA_TEXT || values[place].type == BUCKIA_BLOB
    else { throw Arguments.misuse("value is no text or blob of the present change") }
    if place < longValues.count, let long = longValues[place] {
      return try iteration.file.read(long, from: offset, into: buffer)
    }
    let value = values[place]
    let count = max(0, min(buffer.count, value.length - min(offset, value.length)))
    guard count > 0, let bytes = value.bytes else { return 0 }
    buffer.copyMemory(from: UnsafeRawBufferPointer(start: bytes + offset, count: count))
    return count
  }
}
