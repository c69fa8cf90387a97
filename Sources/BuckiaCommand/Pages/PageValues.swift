import Buckia

/// Prepares values for a page, within its limits.
struct PageValues {
  /// A value of a row; nil if there is none. For one that is too long for memory, `whole` reads all of it.
  typealias Version = (value: ChangesetValue?, whole: LongValue?)

  let limits: PageLimits
  /// The bytes of images on the page.
  private var imageBytes = 0

  /// Blobs up to this size are shown byte by byte.
  private static let shownBlobBytes = 64

  init(limits: PageLimits) { self.limits = limits }

  /// Versions of one value. Long ones are shown around the differences.
  ///
  /// - Parameters:
  ///   - versions: The versions.
  ///   - absence: The text for an absent value.
  mutating func values(_ versions: [Version], absence: String) -> [PageValue] {
    var values = shown(
      versions.compactMap { version in version.value.map { (value: $0, whole: version.whole) } })
    return versions.map { $0.value == nil ? PageValue(.absent, absence) : values.removeFirst() }
  }

  private mutating func shown(_ versions: [(value: ChangesetValue, whole: LongValue?)]) -> [PageValue] {
    if versions.contains(where: { $0.whole != nil }) {
      let parts = ChangesetValue.shown(versions, limit: limits.characters)
      return zip(versions, parts).map { version, part in
        var value = PageValue(version.value.pageKind, part)
        value.image = image(in: version.value, whole: version.whole)
        return value
      }
    }
    var texts = shortened(versions.compactMap { $0.value.text })
    let pictures = versions.map { image(in: $0.value, whole: nil) }
    var blobs = shown(blobs: versions.map(\.value).filter(\.isBlob), pictures.contains { $0 != nil })
    return zip(versions, pictures).map { version, picture in
      switch version.value {
      case .text: return texts.removeFirst()
      case .blob:
        let digits = blobs.removeFirst()
        // A visible image needs no digits.
        var value = PageValue(.blob, picture.flatMap { $0.shown == nil ? nil : $0.description } ?? digits)
        value.image = picture
        return value
      default: return PageValue(version.value.pageKind, version.value.shown())
      }
    }
  }

  /// Unescaped texts: the page escapes them, and can then distinguish real line ends.
  private func shortened(_ texts: [String]) -> [PageValue] {
    let parts = limits.characters == .max ? texts : DifferingTexts.shortened(texts, to: limits.characters)
    return zip(texts, parts).map { text, part in
      var value = PageValue(.text, ChangesetValue.quoted(part))
      if part.utf8.count < text.utf8.count { value.note = "\(ByteCount(text.utf8.count))" }
      return value
    }
  }

  /// Blobs byte by byte, unless they are shown as an image.
  private func shown(blobs: [ChangesetValue], _ hasImage: Bool) -> [String] {
    let isShort = blobs.allSatisfy {
      if case .blob(let bytes) = $0 { bytes.count <= Self.shownBlobBytes } else { true }
    }
    let isWhole = isShort || limits.characters == .max && !hasImage
    return ChangesetValue.shown(blobs, limit: isWhole ? .max : PageLimits.standard.characters)
  }

  /// The image that a blob is; nil if it is none.
  private mutating func image(in value: ChangesetValue, whole: LongValue?) -> PageValue.Image? {
    guard case .blob(let bytes) = value, whole?.shownFrom ?? 0 == 0, let image = EmbeddedImage(bytes) else {
      return nil
    }
    let byteCount = whole?.byteCount ?? bytes.count
    let description = "\(image.format.rawValue) image, \(image.width) × \(image.height), \(ByteCount(byteCount))"
    guard whole == nil, byteCount <= limits.imageBytes, byteCount <= limits.allImageBytes - imageBytes else {
      return (description, nil)
    }
    imageBytes += byteCount
    return (description, image)
  }
}

extension ChangesetValue {
  fileprivate var text: String? { if case .text(let text) = self { text } else { nil } }

  fileprivate var isBlob: Bool { if case .blob = self { true } else { false } }

  fileprivate var pageKind: PageValue.Kind {
    switch self {
    case .null: .null
    case .integer, .real: .number
    case .text: .text
    case .blob: .blob
    }
  }
}

/// A value as a page shows it.
struct PageValue: Sendable {
  /// What kind of value it is, which decides how it looks.
  enum Kind: String, Sendable {
    case null, number, text, blob
    /// There is no value: the row is absent, or the change does not contain the column.
    case absent
  }

  /// An image: a description as alternative text, and the image itself; nil if it would make the page too large.
  typealias Image = (description: String, shown: EmbeddedImage?)

  /// The kind.
  let kind: Kind
  /// The value for people. Of a text its lines are shown as lines.
  let text: String
  /// The whole size of a shortened value.
  var note: String?
  /// The image that its bytes are.
  var image: Image?

  /// - Parameters:
  ///   - kind: The kind.
  ///   - text: The value for people.
  init(_ kind: Kind, _ text: String) {
    self.kind = kind
    self.text = text
  }
}

/// An image whose bytes are in the page: one of the formats that browsers decode only as pixels.
///
/// Its bytes identify the format. SVG is none of these formats: it is a document that can have scripts and links. A few
/// bytes can decode to more pixels than a browser has memory for, which is why the size of an image is checked before
/// it is put into a page.
struct EmbeddedImage: Equatable, Sendable {
  /// A format.
  enum Format: String, CaseIterable, Sendable {
    case png = "PNG"
    case jpeg = "JPEG"
    case gif = "GIF"
    case webp = "WebP"

    /// Its media type.
    var mediaType: String { "image/\(rawValue.lowercased())" }
  }

  /// The format.
  let format: Format
  /// The width in pixels.
  let width: Int
  /// The height in pixels.
  let height: Int
  /// The file.
  let bytes: [UInt8]

  /// The maximum number of pixels of an image, some hundred decoded megabytes.
  private static let pixelLimit = 40_000_000

  /// Recognises an image by its bytes.
  ///
  /// - Returns: nil if the bytes are no image, do not state its size, or it has too many pixels.
  init?(_ bytes: [UInt8]) {
    guard let (format, size) = Self.header(of: bytes), let size else { return nil }
    guard size.width > 0, size.height > 0, size.width <= Self.pixelLimit / size.height else { return nil }
    self.format = format
    (width, height) = size
    self.bytes = bytes
  }

  private typealias Size = (width: Int, height: Int)

  private static func header(of header: [UInt8]) -> (Format, Size?)? {
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
  private static func pngSize(_ header: [UInt8]) -> Size? {
    guard header.has(Array("IHDR".utf8), at: 12) else { return nil }
    return size(header.big(4, at: 16), header.big(4, at: 20))
  }

  /// The frame header of a JPEG, after any number of other segments.
  private static func jpegSize(_ header: [UInt8]) -> Size? {
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
  private static func webpSize(_ header: [UInt8]) -> Size? {
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

/// The numbers in the first bytes of a file; nil if it ends before them.
extension [UInt8] {
  fileprivate func has(_ expected: [UInt8], at place: Int) -> Bool {
    place + expected.count <= count && self[place..<place + expected.count].elementsEqual(expected)
  }

  fileprivate func big(_ length: Int, at place: Int) -> Int? {
    guard place + length <= count else { return nil }
    return self[place..<place + length].reduce(0) { $0 << 8 | Int($1) }
  }

  fileprivate func little(_ length: Int, at place: Int) -> Int? {
    guard place + length <= count else { return nil }
    return self[place..<place + length].reversed().reduce(0) { $0 << 8 | Int($1) }
  }
}
