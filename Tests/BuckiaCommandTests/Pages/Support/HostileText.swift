import TestSupport

/// Texts that imitate markup and control characters.
enum HostileText {
  /// The pieces of such a text.
  private static let pieces = [
    "<script>alert(1)</script>", "</script>", "</style>", "</title>", "<!--", "-->", "]]>", "<![CDATA[", "\"", "'", "`",
    "&", "&amp;", "&#0;", "&lt;", "<", ">", "<b", "\" onclick=\"alert(1)", "javascript:alert(1)", "//example.org/x.js",
    "\0", "\u{1B}[31m", "\n", "\r\n", "\r", "\t", "\u{85}", "\u{202E}", "\u{2066}", "\u{200B}", "\u{FEFF}", "\u{FFFE}",
    "\u{FFFF}", "\u{FFFD}", "\u{2028}", "\u{E000}", "\u{10FFFF}", "\u{301}", "<\u{338}", ">\u{338}", "&\u{301}", "é",
    "e\u{301}", "👩‍👩‍👧", "中", "\\n", "\\", " ", "plain", "x\(String(repeating: "\u{301}", count: 40))",
  ]

  /// A text of up to a dozen pieces and other characters.
  static func any(using generator: inout SeededGenerator) -> String {
    var text = ""
    for _ in 0..<Int.random(in: 0...12, using: &generator) {
      if generator.oneIn(4) {
        text.unicodeScalars.append(
          Unicode.Scalar(UInt32.random(in: 0...0x10FFFF, using: &generator)) ?? Unicode.Scalar(0x20))
      } else {
        text += generator.pick(pieces)
      }
    }
    return text
  }
}
