/// Finds the bounding box of a geometry in ISO Well-Known Binary (WKB), with Z and M coordinates and curves.
///
/// Any bytes are safe: counts are checked against the remaining bytes, and the depth of nested collections is limited.
/// See OGC 06-103r4 (Simple Feature Access), 8.2, and ISO/IEC 13249-3, 5.1.67.
struct WKBReader {
  private(set) var envelope = Envelope()
  private var position: Int

  /// The deepest nesting of collections that is read.
  private static let depthLimit = 32

  /// Creates a reader that starts at an offset.
  init(at position: Int) { self.position = position }

  /// Reads a geometry and extends the envelope to it.
  ///
  /// - Returns: false when the bytes are not a geometry.
  mutating func read(_ bytes: RawSpan, depth: Int = 0) -> Bool {
    guard depth <= Self.depthLimit, position < bytes.byteCount else { return false }
    // Sound: the position was checked, and every bit pattern is a byte.
    let first = bytes.unsafeLoadUnaligned(fromByteOffset: position, as: UInt8.self)
    guard first <= 1 else { return false }
    let isLittleEndian = first == 1
    position += 1
    guard let type = count(bytes, isLittleEndian), type < 4_000 else { return false }
    let width = [2, 3, 3, 4][type / 1_000]
    switch type % 1_000 {
    case 1: return readPoints(1, width, bytes, isLittleEndian)
    case 2: return readPoints(count(bytes, isLittleEndian), width, bytes, isLittleEndian)
    case 8: return readPoints(count(bytes, isLittleEndian), width, bytes, isLittleEndian, areArcs: true)
    case 3, 17:
      guard let rings = count(bytes, isLittleEndian) else { return false }
      for _ in 0..<rings where !readPoints(count(bytes, isLittleEndian), width, bytes, isLittleEndian) { return false }
      return true
    case 4...7, 9...12, 15, 16:
      guard let members = count(bytes, isLittleEndian) else { return false }
      for _ in 0..<members where !read(bytes, depth: depth + 1) { return false }
      return true
    default: return false
    }
  }

  /// Reads a number of four bytes.
  private mutating func count(_ bytes: RawSpan, _ isLittleEndian: Bool) -> Int? {
    guard bytes.byteCount - position >= 4 else { return nil }
    // Sound: four bytes are left, and every bit pattern is a number.
    let raw = bytes.unsafeLoadUnaligned(fromByteOffset: position, as: UInt32.self)
    position += 4
    return Int(isLittleEndian ? UInt32(littleEndian: raw) : UInt32(bigEndian: raw))
  }

  private mutating func readPoints(
    _ count: Int?, _ width: Int, _ bytes: RawSpan, _ isLittleEndian: Bool, areArcs: Bool = false
  ) -> Bool {
    guard let count, count <= (bytes.byteCount - position) / (8 * width) else { return false }
    var before = (x: Double.nan, y: Double.nan)
    var middle = before
    for index in 0..<count {
      let point = (
        x: bytes.double(at: position, isLittleEndian: isLittleEndian),
        y: bytes.double(at: position + 8, isLittleEndian: isLittleEndian)
      )
      position += 8 * width
      envelope.include(x: point.x, y: point.y)
      // Every second point ends one arc and starts the next.
      if areArcs, index >= 2, index.isMultiple(of: 2) { envelope.includeArc(from: before, middle, to: point) }
      before = middle
      middle = point
    }
    return true
  }
}

extension RawSpan {
  /// The eight bytes at an offset as a floating-point number. The caller has checked that they exist.
  func double(at offset: Int, isLittleEndian: Bool) -> Double {
    // Sound: the load checks the bounds, and every bit pattern is a number.
    let raw = unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
    return Double(bitPattern: isLittleEndian ? UInt64(littleEndian: raw) : UInt64(bigEndian: raw))
  }
}
