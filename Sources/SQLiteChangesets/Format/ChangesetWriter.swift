/// Writes changeset and patchset bytes into memory.
///
/// The caller gives tables, changes and values in the order of the format: a table header, then for each change
/// its operation and one value for each column (an UPDATE of a changeset: all old values, then all new ones). The
/// writer does not judge; `ChangesetReader` does.
///
/// ```swift
/// var writer = ChangesetWriter()
/// writer.beginTable(ChangesetTable(name: "notes", keyFlags: [1, 0]))
/// writer.beginChange(.insert)
/// writer.append(integer: 1)
/// writer.append(text: "hello")
/// ```
public struct ChangesetWriter: Sendable {
  /// What has been written so far.
  public private(set) var bytes: [UInt8] = []

  /// Makes an empty writer.
  public init() {}

  /// How many bytes have been written.
  public var count: Int { bytes.count }

  /// Forgets what has been written, keeping the memory.
  public mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

  /// Forgets the last bytes.
  package mutating func removeLast(_ count: Int) { bytes.removeLast(count) }

  /// Opens the changes of a table.
  public mutating func beginTable(_ table: ChangesetTable) {
    bytes.append(table.format.rawValue)
    append(varint: UInt64(table.keyFlags.count))
    bytes.append(contentsOf: table.keyFlags)
    bytes.append(contentsOf: table.name.utf8)
    bytes.append(0)
  }

  /// Opens a change.
  public mutating func beginChange(_ operation: ChangeOperation, isIndirect: Bool = false) {
    bytes.append(operation.rawValue)
    bytes.append(isIndirect ? 1 : 0)
  }

  /// Adds "no value": the column is left alone.
  public mutating func appendUndefined() { bytes.append(ValueKind.undefined.rawValue) }

  /// Adds SQL NULL.
  public mutating func appendNull() { bytes.append(ValueKind.null.rawValue) }

  /// Adds an integer.
  public mutating func append(integer value: Int64) {
    bytes.append(ValueKind.integer.rawValue)
    append(bits: UInt64(bitPattern: value))
  }

  /// Adds a floating-point number, bit for bit.
  public mutating func append(real value: Double) {
    bytes.append(ValueKind.real.rawValue)
    append(bits: value.bitPattern)
  }

  /// Adds text.
  public mutating func append(text value: String) {
    var value = value
    value.withUTF8 { append(.text, UnsafeRawBufferPointer($0)) }
  }

  /// Adds a blob.
  public mutating func append(blob value: [UInt8]) { value.withUnsafeBytes { append(.blob, $0) } }

  /// Adds text or a blob from its bytes, which are copied. Text is taken as it is, valid UTF-8 or not.
  public mutating func append(_ kind: ValueKind, _ payload: UnsafeRawBufferPointer) {
    bytes.append(kind.rawValue)
    append(varint: UInt64(payload.count))
    bytes.append(contentsOf: payload)
  }

  /// Copies an encoded value, or a whole change, from other changeset bytes.
  public mutating func append(_ range: Range<Int>, of source: RawSpan) {
    source.extracting(range).withUnsafeBytes { bytes.append(contentsOf: $0) }
  }

  /// Copies one value from other changeset bytes; an undefined one is written as such.
  public mutating func append(_ value: ValueSlice, of source: RawSpan) {
    if value.isDefined { append(value.encoded, of: source) } else { appendUndefined() }
  }

  /// Adds encoded bytes made elsewhere.
  package mutating func append(encoded: [UInt8]) { bytes.append(contentsOf: encoded) }

  /// Adds encoded bytes made elsewhere.
  package mutating func append(encoded: UnsafeRawBufferPointer) { bytes.append(contentsOf: encoded) }

  /// Some values, one after the other.
  package static func record(of values: [ChangesetValue]) -> [UInt8] {
    var writer = ChangesetWriter()
    for value in values { writer.append(value) }
    return writer.bytes
  }

  /// Adds a value.
  package mutating func append(_ value: ChangesetValue) {
    switch value {
    case .null: appendNull()
    case .integer(let number): append(integer: number)
    case .real(let number): append(real: number)
    case .text(let text): append(text: text)
    case .blob(let bytes): append(blob: bytes)
    }
  }

  private mutating func append(bits: UInt64) {
    withUnsafeBytes(of: bits.bigEndian) { bytes.append(contentsOf: $0) }
  }

  mutating func append(varint value: UInt64) {
    if value < 0x80 {
      bytes.append(UInt8(value))
      return
    }
    // Lengths stay below 2^31, so the nine-byte form is never needed.
    var groups: [UInt8] = [UInt8(value & 0x7f)]
    var rest = value >> 7
    while rest > 0 {
      groups.append(UInt8(rest & 0x7f) | 0x80)
      rest >>= 7
    }
    bytes.append(contentsOf: groups.reversed())
  }
}
