/// The colours of a page, of which there are two sets: for a light and for a dark screen.
///
/// Every colour of text has a contrast of at least 4.5 to 1 against every background that it stands on, as level AA of
/// [WCAG 2.2](https://www.w3.org/TR/WCAG22/#contrast-minimum) wants it; a test computes it.
package struct PagePalette: Sendable {
  /// A colour, as a number of six hexadecimal digits.
  package typealias Color = UInt32

  /// The colours of text, by name.
  package let texts: [(name: String, color: Color)]
  /// What text stands on, by name.
  package let backgrounds: [(name: String, color: Color)]
  /// Of lines and of the mark around what has the keyboard's focus.
  package let lines: [(name: String, color: Color)]

  /// For a light screen, and for paper.
  package static let light = PagePalette(
    texts: [
      ("text", 0x1B1F24), ("faint", 0x515963), ("link", 0x0A4FA3), ("inserted", 0x0F5B26), ("updated", 0x724700),
      ("deleted", 0x9B1226),
    ],
    backgrounds: [("back", 0xFFFFFF), ("raised", 0xF3F5F8), ("mark", 0xFFEFB0)],
    lines: [("line", 0x858E99), ("focus", 0x0A4FA3)])

  /// For a dark screen.
  package static let dark = PagePalette(
    texts: [
      ("text", 0xE8EDF2), ("faint", 0xAEB7C1), ("link", 0x8CC4FF), ("inserted", 0x66D97F), ("updated", 0xE8BC57),
      ("deleted", 0xFF9C94),
    ],
    backgrounds: [("back", 0x0F1318), ("raised", 0x181E25), ("mark", 0x4A3A08)],
    lines: [("line", 0x7B8591), ("focus", 0x8CC4FF)])

  /// The colours as properties of a style sheet.
  var css: String {
    (texts + backgrounds + lines).map { "--\($0.name): #\(Self.hexadecimal($0.color));" }.joined(separator: " ")
  }

  private static func hexadecimal(_ color: Color) -> String {
    let digits = String(color, radix: 16)
    return String(repeating: "0", count: 6 - digits.count) + digits
  }
}
