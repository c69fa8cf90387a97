/// Finds the envelope of a geometry in Well-Known Binary, the ISO form with Z and M, curves included.
///
/// Any bytes are safe: every count is checked against the bytes that are left, and collections nest only so deep.
/// See OGC 06-103r4 (Simple Feature Access), 8.2, and ISO/IEC 13249-3, 5.1.67.
struct WKBReader {
  private(set) var envelope = Envelope()
  private var position: Int

  /// The deepest nesting that is followed.
  private static let depthLimit = 32

  private enum Order {
    case big
    case little
  }

  /// Begins at an offset of the bytes.
  init(at position: Int) { self.position = position }

  /// Reads one geometry and widens the envelope to it.
  ///
  /// - Returns: false when the bytes are no geometry.
  mutating func read(_ bytes: RawSpan, depth: Int = 0) -> Bool {
    guard depth <= Self.depthLimit, position < bytes.byteCount else { return false }
    // Sound: the position was checked, and every bit pattern is a byte.
    let first = bytes.unsafeLoadUnaligned(fromByteOffset: position, as: UInt8.self)
    guard first <= 1 else { return false }
    let order = first == 1 ? Order.little : .big
    position += 1
    guard let type = count(bytes, order), type < 4_000 else { return false }
    let width = [2, 3, 3, 4][type / 1_000]
    switch type % 1_000 {
    case 1: return readPoints(1, width, bytes, order)
    case 2: return readPoints(count(bytes, order), width, bytes, order)
    case 8: return readPoints(count(bytes, order), width, bytes, order, areArcs: true)
    case 3, 17:
      guard let rings = count(bytes, order) else { return false }
      for _ in 0..<rings where !readPoints(count(bytes, order), width, bytes, order) { return false }
      return true
    case 4...7, 9...12, 15, 16:
      guard let members = count(bytes, order) else { return false }
      for _ in 0..<members where !read(bytes, depth: depth + 1) { return false }
      return true
    default: return false
    }
  }

  /// A number of four bytes.
  private mutating func count(_ bytes: RawSpan, _ order: Order) -> Int? {
    guard bytes.byteCount - position >= 4 else { return nil }
    // Sound: four bytes are left, and every bit pattern is a number.
    let raw = bytes.unsafeLoadUnaligned(fromByteOffset: position, as: UInt32.self)
    position += 4
    return Int(order == .little ? UInt32(littleEndian: raw) : UInt32(bigEndian: raw))
  }

  private mutating func readPoints(
    _ count: Int?, _ width: Int, _ bytes: RawSpan, _ order: Order, areArcs: Bool = false
  ) -> Bool {
    guard let count, count <= (bytes.byteCount - position) / (8 * width) else { return false }
    var before = (x: Double.nan, y: Double.nan)
    var middle = before
    for index in 0..<count {
      let point = (
        x: Self.double(bytes, at: position, order), y: Self.double(bytes, at: position + 8, order)
      )
      position += 8 * width
      envelope.include(x: point.x, y: point.y)
      // Every second point ends an arc and begins the next.
      if areArcs, index >= 2, index.isMultiple(of: 2) { envelope.includeArc(from: before, middle, to: point) }
      before = middle
      middle = point
    }
    return true
  }

  private static func double(_ bytes: RawSpan, at offset: Int, _ order: Order) -> Double {
    GeoPackageGeometry.double(bytes, at: offset, isLittleEndian: order == .little)
  }
}
