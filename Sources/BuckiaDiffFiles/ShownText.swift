/// A stranger's text, made safe to show on a terminal or in a log.
public enum ShownText {
  /// How many characters of a line are shown.
  private static let lineLimit = 1024
  /// How many characters of a name are shown.
  private static let nameLimit = 100

  /// The text with control, formatting and bidirectional characters escaped, cut after 1,024 characters.
  ///
  /// It could otherwise move the cursor, colour the screen, or read differently from what it is.
  public static func line(_ text: String) -> String { escaped(text, limit: lineLimit) }

  /// A name in quotes, escaped in the same way and cut after 100 characters.
  public static func quoted(_ name: String) -> String { "\"\(escaped(name, limit: nameLimit))\"" }

  private static func escaped(_ text: String, limit: Int) -> String {
    var shown = String.UnicodeScalarView()
    for (index, scalar) in text.unicodeScalars.enumerated() {
      if index == limit {
        shown.append("…")
        break
      }
      if isSafe(scalar) {
        shown.append(scalar)
      } else {
        shown.append(contentsOf: "\\u{\(String(scalar.value, radix: 16))}".unicodeScalars)
      }
    }
    return String(shown)
  }

  /// Whether a character neither controls a terminal nor changes how its neighbours are read.
  static func isSafe(_ scalar: Unicode.Scalar) -> Bool {
    if (0x20..<0x7f).contains(scalar.value) { return true }
    return switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse: false
    default: true
    }
  }
}
