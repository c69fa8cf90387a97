/// The header that opens the changes of a table, and where it lies in the bytes.
struct ChangesetHeader {
  let table: ChangesetTable
  let range: Range<Int>
  /// The bytes of the name, without the NUL that ends it.
  let nameRange: Range<Int>

  /// Reads the header that stands at `position` and moves on behind it.
  ///
  /// - Throws: `ChangesetError` when no whole header stands there; `position` stays then.
  init(reading bytes: RawSpan, at position: inout Int) throws(ChangesetError) {
    let start = position
    guard start < bytes.byteCount, let format = ChangesetFormat(rawValue: bytes.byte(at: start)) else {
      throw ChangesetError(.unknownOperation, offset: start)
    }
    var cursor = start + 1
    let columns = try readVarint(at: &cursor, in: bytes)
    guard columns > 0, columns <= UInt64(ChangesetLimits.columns) else {
      throw ChangesetError(.badColumnCount, offset: start)
    }
    let count = Int(columns)
    guard bytes.byteCount - cursor >= count else { throw ChangesetError(.truncated, offset: start) }
    let keyFlags = bytes.array(cursor..<(cursor + count))
    guard keyFlags.contains(where: { $0 != 0 }) else { throw ChangesetError(.missingKey, offset: start) }
    cursor += count
    let nameStart = cursor
    while cursor < bytes.byteCount, bytes.byte(at: cursor) != 0 {
      guard cursor - nameStart < ChangesetLimits.nameBytes else { throw ChangesetError(.badLength, offset: start) }
      cursor += 1
    }
    guard cursor < bytes.byteCount else { throw ChangesetError(.truncated, offset: start) }
    let name = String(decoding: bytes.array(nameStart..<cursor), as: UTF8.self)
    position = cursor + 1
    range = start..<position
    nameRange = nameStart..<cursor
    table = ChangesetTable(name: name, format: format, keyFlags: keyFlags)
  }
}
