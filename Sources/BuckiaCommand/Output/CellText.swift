import Buckia

extension ChangesetValue {
  /// The value as a person reads it, much as SQL writes it, at most `limit` characters of it.
  ///
  /// - Parameter whole: The whole value, if this is only a part.
  func shown(limit: Int = 40, partOf whole: LongValue? = nil) -> String {
    if let whole { return shownPart(limit: limit, of: whole, from: 0) }
    switch self {
    case .null: return "NULL"
    case .integer(let number): return String(number)
    case .real(let number): return number.isFinite ? String(number) : number < 0 ? "-Infinity" : "Infinity"
    case .text(let text): return Self.quoted(text.escaped(limit: limit))
    case .blob(let bytes): return Self.shown(blob: bytes, from: 0, isFull: limit == .max)
    }
  }

  /// The shown bytes of a long blob, and those of them before a difference.
  private static let shownBytes = 8
  private static let bytesBefore = 2

  private static func shown(blob bytes: [UInt8], from start: Int, isFull: Bool) -> String {
    if isFull || bytes.count <= shownBytes { return "x'\(HexText.lowercase(bytes))'" }
    let start = max(0, min(start, bytes.count - shownBytes))
    let end = start + shownBytes
    let part = HexText.lowercase(Array(bytes[start..<end]))
    return "x'\(start > 0 ? "…" : "")\(part)\(end < bytes.count ? "…" : "")' (\(ByteCount(bytes.count)))"
  }

  /// The shown characters of a text that is too long to be shown whole.
  private static let longestPart = 1_000

  /// A part of a long value, from a place in it on, and the size of all.
  private func shownPart(limit: Int, of whole: LongValue, from start: Int) -> String {
    let size = "(\(ByteCount(whole.byteCount)))"
    switch self {
    case .text(let text):
      let from = text.utf8.index(text.startIndex, offsetBy: start, limitedBy: text.endIndex) ?? text.startIndex
      let head = whole.shownFrom + start > 0 ? "…" : ""
      let part = text[from...].escaped(limit: min(limit, Self.longestPart))
      let isCut = whole.shownFrom + text.utf8.count < whole.byteCount && !part.hasSuffix("…")
      return "\(Self.quoted(head + part + (isCut ? "…" : ""))) \(size)"
    case .blob(let bytes):
      let from = min(start, max(0, bytes.count - Self.shownBytes))
      let head = whole.shownFrom + from > 0 ? "…" : ""
      let part = bytes.dropFirst(from).prefix(Self.shownBytes)
      let isCut = whole.shownFrom + from + part.count < whole.byteCount
      return "x'\(head)\(HexText.lowercase(part))\(isCut ? "…" : "")' \(size)"
    default: return shown(limit: limit)
    }
  }

  /// Versions of a value for people, of which some are too long to be shown whole, around the difference.
  static func shown(
    _ versions: [(value: ChangesetValue, whole: LongValue?)], limit: Int
  ) -> [String] {
    guard versions.contains(where: { $0.whole != nil }) else { return shown(versions.map(\.value), limit: limit) }
    let parts = versions.map { $0.value.bytes ?? [] }
    let shortest = parts.map(\.count).min() ?? 0
    var difference = 0
    while difference < shortest, parts.allSatisfy({ $0[difference] == parts[0][difference] }) { difference += 1 }
    return versions.map { version in
      guard let whole = version.whole else { return version.value.shown(limit: limit) }
      guard difference > textBefore else { return version.value.shownPart(limit: limit, of: whole, from: 0) }
      var start = difference - (version.value.isText ? textBefore : bytesBefore)
      if version.value.isText { while start > 0, parts[0][start] & 0xc0 == 0x80 { start -= 1 } }
      return version.value.shownPart(limit: limit, of: whole, from: start)
    }
  }

  /// The shown bytes of a long text before a difference.
  private static let textBefore = 12

  private var isText: Bool { if case .text = self { true } else { false } }

  private var bytes: [UInt8]? {
    switch self {
    case .text(let text): Array(text.utf8)
    case .blob(let bytes): bytes
    default: nil
    }
  }

  /// Versions of one value for people. Long ones are shortened around the difference.
  ///
  /// - Parameter limit: The shown characters of a text.
  static func shown(_ versions: [ChangesetValue], limit: Int) -> [String] {
    var texts = versions.compactMap { value -> String? in if case .text(let text) = value { text } else { nil } }
    let blobs = versions.compactMap { value -> [UInt8]? in if case .blob(let bytes) = value { bytes } else { nil } }
    guard limit < .max, texts.count > 1 || blobs.count > 1 else { return versions.map { $0.shown(limit: limit) } }
    texts = DifferingTexts.shortened(texts, to: limit)
    let difference = blobs.dropFirst().map { zip(blobs[0], $0).prefix { $0 == $1 }.count }.min() ?? 0
    return versions.map { version in
      switch version {
      case .text: quoted(texts.removeFirst().escaped(limit: limit))
      case .blob(let bytes): shown(blob: bytes, from: difference - bytesBefore, isFull: false)
      default: version.shown(limit: limit)
      }
    }
  }

  /// The text as SQL writes it, in quotes.
  static func quoted(_ escaped: String) -> String {
    "'\(escaped.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''"))'"
  }
}

/// Versions of one value, shortened around their difference.
enum DifferingTexts {
  /// The shown characters of the common part before the difference.
  private static let context = 12

  /// Shortens texts to a number of characters: each around the place where it begins to differ from the first, and the
  /// first around the place where any of the others does.
  static func shortened(_ texts: [String], to limit: Int) -> [String] {
    guard let first = texts.first, texts.contains(where: { isLonger($0, than: limit) }) else { return texts }
    let prefixes = texts.dropFirst().map { commonPrefix(of: $0, and: first) }
    let least = prefixes.min() ?? 0
    return zip(texts, [least] + prefixes).map { text, prefix in
      shortened(text, around: text.utf8.elementsEqual(first.utf8) ? least : prefix, to: limit)
    }
  }

  private static func shortened(_ text: String, around offset: Int, to limit: Int) -> String {
    guard isLonger(text, than: limit) else { return text }
    let difference = text.utf8.index(text.startIndex, offsetBy: offset, limitedBy: text.endIndex) ?? text.endIndex
    // The part before the difference is cut only if the difference would not be visible otherwise.
    let isFar = isLonger(text[..<difference], than: limit - context)
    let before = isFar ? text.index(difference, offsetBy: -context, limitedBy: text.startIndex) : nil
    let start = before ?? text.startIndex
    let head = start == text.startIndex ? "" : "…"
    let room = limit - head.count
    let rest = text[start...]
    return isLonger(rest, than: room) ? "\(head)\(rest.prefix(room - 1))…" : head + rest
  }

  /// True if a text has more characters than a limit, without counting those of a very long text.
  private static func isLonger(_ text: some StringProtocol, than limit: Int) -> Bool {
    text.index(text.startIndex, offsetBy: limit, limitedBy: text.endIndex).map { $0 < text.endIndex } ?? false
  }

  /// The length of the common prefix of two texts in bytes, up to the beginning of a character of the first.
  private static func commonPrefix(of text: String, and other: String) -> Int {
    var common = 0
    var one = text.utf8.makeIterator()
    var two = other.utf8.makeIterator()
    while let byte = one.next(), byte == two.next() { common += 1 }
    // Inside a character of several bytes its beginning counts.
    while common > 0, text.utf8.index(text.startIndex, offsetBy: common).samePosition(in: text) == nil { common -= 1 }
    return common
  }
}
