import Buckia

/// Makes values ready for a page, as far as it has room.
struct PageValues {
  /// A value of a row; nil where there is none. Of one that is too long to be held, `whole` is where all of it is.
  typealias Version = (value: ChangesetValue?, whole: LongValue?)

  let limits: PageLimits
  /// How many bytes of images are on the page.
  private var imageBytes = 0

  /// Blobs up to this size are shown byte by byte.
  private static let shownBlobBytes = 64

  init(limits: PageLimits) { self.limits = limits }

  /// A value of its own.
  mutating func value(_ value: ChangesetValue, whole: LongValue? = nil) -> PageValue {
    shown([(value, whole)])[0]
  }

  /// Versions of one value. Long ones are shown around what differs.
  ///
  /// - Parameters:
  ///   - versions: The versions.
  ///   - absence: What to say where there is none.
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
        // What is seen need not be told by its digits, too.
        var value = PageValue(.blob, picture.flatMap { $0.shown == nil ? nil : $0.description } ?? digits)
        value.image = picture
        return value
      default: return PageValue(version.value.pageKind, version.value.shown())
      }
    }
  }

  /// Texts, in which nothing is escaped yet: the page does that, and knows which line ends are real then.
  private func shortened(_ texts: [String]) -> [PageValue] {
    let parts = limits.characters == .max ? texts : DifferingTexts.shortened(texts, to: limits.characters)
    return zip(texts, parts).map { text, part in
      var value = PageValue(.text, ChangesetValue.quoted(part))
      if part.utf8.count < text.utf8.count { value.note = "\(ByteCount(text.utf8.count))" }
      return value
    }
  }

  /// Blobs byte by byte. What can be seen as an image need not be read.
  private func shown(blobs: [ChangesetValue], _ hasImage: Bool) -> [String] {
    let isShort = blobs.allSatisfy {
      if case .blob(let bytes) = $0 { bytes.count <= Self.shownBlobBytes } else { true }
    }
    let isWhole = isShort || limits.characters == .max && !hasImage
    return ChangesetValue.shown(blobs, limit: isWhole ? .max : PageLimits.standard.characters)
  }

  /// The image that a blob is; nil where it is none.
  private mutating func image(in value: ChangesetValue, whole: LongValue?) -> PageImage? {
    guard case .blob(let bytes) = value, whole?.shownFrom ?? 0 == 0, let image = EmbeddedImage(bytes) else {
      return nil
    }
    let byteCount = whole?.byteCount ?? bytes.count
    let description = "\(image.format.rawValue) image, \(image.width) × \(image.height), \(ByteCount(byteCount))"
    guard whole == nil, byteCount <= limits.imageBytes, byteCount <= limits.allImageBytes - imageBytes else {
      return PageImage(description, nil)
    }
    imageBytes += byteCount
    return PageImage(description, image)
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
