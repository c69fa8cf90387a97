/// Untrusted text, made safe to show on a terminal or in a log.
///
/// Names, reasons and values come from files that anybody may have made. A control character in them could move the
/// cursor or rewrite what stands above; a bidirectional one could make a name read backwards; a line end could forge
/// a line of ours. See [Unicode's report on security](https://www.unicode.org/reports/tr36/).
package struct EscapedText: CustomStringConvertible, Equatable {
  package let description: String

  /// How many scalars of one character are shown: more than any emoji has. Combining marks have no end.
  private static let scalarLimit = 16
  /// How many characters of a line, and of a name inside one, are shown where a message must stay short.
  private static let lineLimit = 1024
  private static let nameLimit = 100

  /// Escapes what a terminal would act on instead of showing it.
  ///
  /// - Parameters:
  ///   - text: Any text.
  ///   - limit: After how many characters the rest is left out for an ellipsis.
  package init(_ text: some StringProtocol, limit: Int = .max) {
    var shown = ""
    var count = 0
    for character in text {
      if count == limit {
        shown += "…"
        break
      }
      count += 1
      for (place, scalar) in character.unicodeScalars.enumerated() {
        guard place < Self.scalarLimit else {
          shown += "…"
          break
        }
        if Self.isHarmless(scalar) {
          shown.unicodeScalars.append(scalar)
        } else {
          shown += Self.escape(scalar)
        }
      }
    }
    description = shown
  }

  /// The text, escaped and cut after 1,024 characters.
  package static func line(_ text: String) -> String { EscapedText(text, limit: lineLimit).description }

  /// A name in quotes, escaped and cut after 100 characters.
  package static func quoted(_ name: String) -> String { "\"\(EscapedText(name, limit: nameLimit))\"" }

  private static func escape(_ scalar: Unicode.Scalar) -> String {
    switch scalar {
    case "\n": "\\n"
    case "\r": "\\r"
    case "\t": "\\t"
    default: "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
    }
  }

  /// True if a character neither controls a terminal nor changes how its neighbours are read.
  package static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
    if (0x20..<0x7f).contains(scalar.value) { return true }
    return switch scalar.properties.generalCategory {
    case .control, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: false
    // Bidirectional marks, tags and invisible signs, but for the two that join letters in many scripts and in emoji.
    case .format: scalar.value == 0x200C || scalar.value == 0x200D
    default: true
    }
  }
}

extension StringProtocol {
  /// The text as it may be printed.
  package var escaped: String { EscapedText(self).description }

  /// The text as it may be printed, cut after so many characters.
  package func escaped(limit: Int) -> String { EscapedText(self, limit: limit).description }
}

extension Double {
  /// The number with so many digits behind the point, rounded: what `%.2f` prints, without Foundation.
  ///
  /// - Parameter places: From 0 to 6.
  package func decimal(places: Int) -> String {
    let scale = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000][places]
    guard let scaled = Int(exactly: (magnitude * Double(scale)).rounded()) else { return String(self) }
    var text = sign == .minus && scaled > 0 ? "-" : ""
    text += String(scaled / scale)
    guard places > 0 else { return text }
    let digits = String(scaled % scale)
    return "\(text).\(String(repeating: "0", count: places - digits.count))\(digits)"
  }

  /// The number with three digits: two behind the point below ten, one below a hundred, none above.
  package var threeDigits: String {
    let size = magnitude
    return decimal(places: size < 9.995 ? 2 : size < 99.95 ? 1 : 0)
  }
}
