/// Geometries as GeoPackages store them, byte by byte.
struct GeometryBlob {
  /// The byte order of numbers.
  var isLittleEndian = true
  private(set) var bytes: [UInt8] = []

  init(isLittleEndian: Bool = true) { self.isLittleEndian = isLittleEndian }

  /// A header. The contents indicator follows from the number of envelope values: 0, 4, 6 or 8.
  static func header(
    envelope: [Double] = [], isEmpty: Bool = false, isLittleEndian: Bool = true, extraFlags: UInt8 = 0
  ) -> GeometryBlob {
    var blob = GeometryBlob(isLittleEndian: isLittleEndian)
    let contents: UInt8 = [0: 0, 4: 1, 6: 2, 8: 4][envelope.count] ?? 0
    blob.bytes = [0x47, 0x50, 0, (isLittleEndian ? 1 : 0) | contents << 1 | (isEmpty ? 0x10 : 0) | extraFlags]
    blob.append(count: 4326)
    for value in envelope { blob.append(value) }
    return blob
  }

  /// A point with an envelope or without one.
  static func point(_ x: Double, _ y: Double, hasEnvelope: Bool = false, isLittleEndian: Bool = true) -> [UInt8] {
    var blob = header(envelope: hasEnvelope ? [x, x, y, y] : [], isLittleEndian: isLittleEndian)
    blob.begin(1)
    blob.append(x)
    blob.append(y)
    return blob.bytes
  }

  static func emptyPoint(isFlagged: Bool = true) -> [UInt8] {
    var blob = header(isEmpty: isFlagged)
    blob.begin(1)
    blob.append(.nan)
    blob.append(.nan)
    return blob.bytes
  }

  /// Starts a geometry of a WKB type: byte order and type.
  mutating func begin(_ type: Int) {
    bytes.append(isLittleEndian ? 1 : 0)
    append(count: type)
  }

  mutating func append(count: Int) {
    let value = UInt32(truncatingIfNeeded: count)
    for shift in isLittleEndian ? [0, 8, 16, 24] : [24, 16, 8, 0] { bytes.append(UInt8(value >> UInt32(shift) & 255)) }
  }

  mutating func append(_ value: Double) {
    let bits = isLittleEndian ? value.bitPattern : value.bitPattern.byteSwapped
    for shift in 0..<8 { bytes.append(UInt8(bits >> UInt64(8 * shift) & 255)) }
  }

  /// Appends points, with their number first.
  mutating func append(points: [[Double]]) {
    append(count: points.count)
    for value in points.joined() { append(value) }
  }

  /// The bytes as an SQL literal.
  static func literal(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef")
    return "x'" + String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }) + "'"
  }
}
