import Buckia

/// Versions of one value, each shortened so that it shows where they differ.
enum DifferingTexts {
  /// How much of what the versions have in common is shown before the difference.
  private static let context = 12

  /// Shortens texts to so many characters: each around the place where it begins to differ from the first, and the first
  /// around the place where any of the others does.
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
    // What stands before the difference is cut only where the difference would not be seen otherwise.
    let isFar = isLonger(text[..<difference], than: limit - context)
    let before = isFar ? text.index(difference, offsetBy: -context, limitedBy: text.startIndex) : nil
    let start = before ?? text.startIndex
    let head = start == text.startIndex ? "" : "…"
    let room = limit - head.count
    let rest = text[start...]
    return isLonger(rest, than: room) ? "\(head)\(rest.prefix(room - 1))…" : head + rest
  }

  /// Whether a text has more characters than that: without counting those of a very long one.
  private static func isLonger(_ text: some StringProtocol, than limit: Int) -> Bool {
    text.index(text.startIndex, offsetBy: limit, limitedBy: text.endIndex).map { $0 < text.endIndex } ?? false
  }

  /// How many bytes two texts have in common at their beginning, up to the beginning of a character of the first.
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
