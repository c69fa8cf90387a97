import SQLiteConnections

/// The functions that the triggers of a GeoPackage's spatial indexes call.
///
/// SQLite does not have them, so each application that writes to a GeoPackage defines them. They return NULL for a value
/// that is not a geometry, and the bounds are NULL for an empty one. See OGC 12-128r18 (GeoPackage), Annex F.3.
enum GeoPackageFunctions {
  private static let bounds: [String: @Sendable (Envelope) -> Double] = [
    "st_minx": { $0.minX }, "st_maxx": { $0.maxX }, "st_miny": { $0.minY }, "st_maxy": { $0.maxY },
  ]

  /// The names of the functions, in lower case.
  static let names: Set<String> = Set(bounds.keys).union(["st_isempty"])

  /// Adds some of the functions.
  ///
  /// - Throws: `SQLiteError` when SQLite refuses one.
  static func add(_ names: Set<String>, to functions: inout SQLiteFunctions) throws(SQLiteError) {
    for name in names.sorted() {
      if name == "st_isempty" {
        try functions.add(name, argumentCount: 1) { arguments in
          guard let geometry = geometry(arguments) else { return .null }
          return .integer(geometry.envelope == nil ? 1 : 0)
        }
      } else if let bound = bounds[name] {
        try functions.add(name, argumentCount: 1) { arguments in
          guard let envelope = geometry(arguments)?.envelope else { return .null }
          return .real(bound(envelope))
        }
      }
    }
  }

  private static func geometry(_ arguments: borrowing SQLiteArguments) -> GeoPackageGeometry? {
    arguments.withBlob(at: 0) { GeoPackageGeometry($0) }
  }
}

/// A geometry in the GeoPackage binary format: a header, which may contain the envelope, and Well-Known Binary (WKB).
///
/// Reads only what spatial indexes need. See OGC 12-128r18 (GeoPackage), 2.1.3.
struct GeoPackageGeometry: Equatable {
  /// The bounding box; nil if the geometry is empty.
  let envelope: Envelope?

  /// The size of a header without an envelope, in bytes.
  private static let headerSize = 8

  /// Reads a geometry.
  ///
  /// - Parameter blob: The value of a geometry column. Any bytes are safe.
  /// - Returns: nil when the bytes are not a geometry, or are an extended one.
  init?(_ blob: RawSpan) {
    guard blob.byteCount >= Self.headerSize else { return nil }
    // Sound: the header is there, and every bit pattern is a byte.
    let header = (0..<4).map { blob.unsafeLoadUnaligned(fromByteOffset: $0, as: UInt8.self) }
    guard header[0] == UInt8(ascii: "G"), header[1] == UInt8(ascii: "P"), header[2] == 0 else { return nil }
    let flags = header[3]
    let contents = Int(flags >> 1 & 7)
    guard contents <= 4 else { return nil }
    let body = Self.headerSize + [0, 32, 48, 48, 64][contents]
    guard blob.byteCount >= body else { return nil }
    if flags & 0x10 != 0 {
      envelope = nil
      return
    }
    if contents != 0 {
      let bounds = (0..<4).map { blob.double(at: Self.headerSize + 8 * $0, isLittleEndian: flags & 1 != 0) }
      let written = Envelope(minX: bounds[0], maxX: bounds[1], minY: bounds[2], maxY: bounds[3])
      if written.isValid {
        envelope = written
        return
      }
    }
    var reader = WKBReader(at: body)
    let isExtended = flags & 0x20 != 0
    guard !isExtended, reader.read(blob) else { return nil }
    envelope = reader.envelope.isValid ? reader.envelope : nil
  }
}

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

/// The bounding box of a geometry.
struct Envelope: Equatable {
  var minX = Double.infinity
  var maxX = -Double.infinity
  var minY = Double.infinity
  var maxY = -Double.infinity

  /// True if the envelope contains a point. The envelope of an empty geometry is written as NaN.
  var isValid: Bool { minX <= maxX && minY <= maxY }

  /// Extends the envelope to a point. A point with NaN is ignored, because WKB writes an empty point as NaN.
  mutating func include(x: Double, y: Double) {
    guard !x.isNaN, !y.isNaN else { return }
    minX = min(minX, x)
    maxX = max(maxX, x)
    minY = min(minY, y)
    maxY = max(maxY, y)
  }

  /// Extends the envelope to the arc from `a` through `b` to `c`, three points that it contains already.
  ///
  /// The arc extends beyond them if it contains the leftmost, rightmost, lowest or highest point of its circle. It contains
  /// those of them that are on the same side of the chord as `b`.
  mutating func includeArc(from a: (x: Double, y: Double), _ b: (x: Double, y: Double), to c: (x: Double, y: Double)) {
    let chord = (x: c.x - a.x, y: c.y - a.y)
    let middle = (x: b.x - a.x, y: b.y - a.y)
    var center = (x: middle.x / 2, y: middle.y / 2)
    let isCircle = chord.x == 0 && chord.y == 0
    if !isCircle {
      let area = 2 * (middle.x * chord.y - middle.y * chord.x)
      let middleSquare = middle.x * middle.x + middle.y * middle.y
      let chordSquare = chord.x * chord.x + chord.y * chord.y
      center.x = (chord.y * middleSquare - middle.y * chordSquare) / area
      center.y = (middle.x * chordSquare - chord.x * middleSquare) / area
    }
    let radius = (center.x * center.x + center.y * center.y).squareRoot()
    // Three points on a line have no circle: their area is 0.
    guard radius.isFinite else { return }
    let side = chord.x * middle.y - chord.y * middle.x
    for (x, y) in [(radius, 0), (-radius, 0), (0, radius), (0, -radius)] {
      let point = (x: center.x + x, y: center.y + y)
      if isCircle || (chord.x * point.y - chord.y * point.x) * side > 0 {
        include(x: a.x + point.x, y: a.y + point.y)
      }
    }
  }
}
