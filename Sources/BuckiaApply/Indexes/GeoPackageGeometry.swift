/// A geometry in the GeoPackage binary format: a header, which may contain the envelope, and Well-Known Binary (WKB).
///
/// Reads only what spatial indexes need. See OGC 12-128r18 (GeoPackage), 2.1.3.
struct GeoPackageGeometry: Equatable {
  /// The bounding box; nil when the geometry is empty.
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
