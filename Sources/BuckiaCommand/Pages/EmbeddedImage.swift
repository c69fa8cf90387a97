/// An image whose bytes stand in the page: one of the formats that browsers decode as nothing but pixels.
///
/// What it is, its bytes say. SVG is none of these formats: it is a document that can hold scripts and links. A few bytes can stand for more pixels than a
/// browser has memory for, so an image says how large it is before it is put into a page.
package struct EmbeddedImage: Equatable, Sendable {
  /// A format.
  package enum Format: String, CaseIterable, Sendable {
    case png = "PNG"
    case jpeg = "JPEG"
    case gif = "GIF"
    case webp = "WebP"

    /// Its media type.
    package var mediaType: String { "image/\(rawValue.lowercased())" }
  }

  /// The format.
  package let format: Format
  /// The width in pixels.
  package let width: Int
  /// The height in pixels.
  package let height: Int
  /// The file.
  package let bytes: [UInt8]

  /// How many pixels an image may have, some hundred megabytes once it is decoded.
  private static let pixelLimit = 40_000_000

  /// Recognises an image by its bytes.
  ///
  /// - Returns: nil where the bytes are no image, do not say how large it is, or where it has too many pixels.
  package init?(_ bytes: [UInt8]) {
    guard let (format, size) = Self.header(of: ImageHeader(bytes)), let size else { return nil }
    guard size.width > 0, size.height > 0, size.width <= Self.pixelLimit / size.height else { return nil }
    self.format = format
    (width, height) = size
    self.bytes = bytes
  }

  private typealias Size = (width: Int, height: Int)

  private static func header(of header: ImageHeader) -> (Format, Size?)? {
    if header.has([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A], at: 0) { return (.png, pngSize(header)) }
    if header.has(Array("GIF87a".utf8), at: 0) || header.has(Array("GIF89a".utf8), at: 0) {
      return (.gif, size(header.little(2, at: 6), header.little(2, at: 8)))
    }
    if header.has(Array("RIFF".utf8), at: 0), header.has(Array("WEBP".utf8), at: 8) { return (.webp, webpSize(header)) }
    if header.has([0xFF, 0xD8, 0xFF], at: 0) { return (.jpeg, jpegSize(header)) }
    return nil
  }

  private static func size(_ width: Int?, _ height: Int?) -> Size? {
    guard let width, let height else { return nil }
    return (width, height)
  }

  /// PNG's first chunk, see [its specification](https://www.w3.org/TR/png-3/#11IHDR).
  private static func pngSize(_ header: ImageHeader) -> Size? {
    guard header.has(Array("IHDR".utf8), at: 12) else { return nil }
    return size(header.big(4, at: 16), header.big(4, at: 20))
  }

  /// The frame header of a JPEG, behind any number of other segments.
  private static func jpegSize(_ header: ImageHeader) -> Size? {
    var place = 2
    while let start = header.big(1, at: place), start == 0xFF, let marker = header.big(1, at: place + 1) {
      switch marker {
      case 0xFF: place += 1
      case 0x01, 0xD0...0xD7: place += 2
      case 0xC0...0xCF where marker != 0xC4 && marker != 0xC8 && marker != 0xCC:
        return size(header.big(2, at: place + 7), header.big(2, at: place + 5))
      default:
        guard let length = header.big(2, at: place + 2), length >= 2 else { return nil }
        place += 2 + length
      }
    }
    return nil
  }

  /// The first chunk of a WebP file, which is of one of three kinds; see [RFC 9649](https://www.rfc-editor.org/rfc/rfc9649).
  private static func webpSize(_ header: ImageHeader) -> Size? {
    if header.has(Array("VP8 ".utf8), at: 12), header.has([0x9D, 0x01, 0x2A], at: 23) {
      return size(header.little(2, at: 26).map { $0 & 0x3FFF }, header.little(2, at: 28).map { $0 & 0x3FFF })
    }
    if header.has(Array("VP8L".utf8), at: 12), header.has([0x2F], at: 20) {
      guard let bits = header.little(4, at: 21) else { return nil }
      return ((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    }
    if header.has(Array("VP8X".utf8), at: 12) {
      return size(header.little(3, at: 24).map { $0 + 1 }, header.little(3, at: 27).map { $0 + 1 })
    }
    return nil
  }
}

/// The numbers in the first bytes of a file; nil where it ends before them.
private struct ImageHeader {
  private let bytes: [UInt8]

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  func has(_ expected: [UInt8], at place: Int) -> Bool {
    place + expected.count <= bytes.count && bytes[place..<place + expected.count].elementsEqual(expected)
  }

  func big(_ count: Int, at place: Int) -> Int? {
    guard place + count <= bytes.count else { return nil }
    return bytes[place..<place + count].reduce(0) { $0 << 8 | Int($1) }
  }

  func little(_ count: Int, at place: Int) -> Int? {
    guard place + count <= bytes.count else { return nil }
    return bytes[place..<place + count].reversed().reduce(0) { $0 << 8 | Int($1) }
  }
}
