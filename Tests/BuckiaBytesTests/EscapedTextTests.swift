import BuckiaBytes
import Testing

@testable import SQLiteSchemas

@Suite struct EscapedTextTests {
  @Test(
    "Text from a file cannot move the cursor, forge a line or reverse the reading order",
    arguments: [
      ("plain", "plain"),
      ("naïve 日本 🎻 مرحبا", "naïve 日本 🎻 مرحبا"),
      ("a\nb\tc\r", #"a\nb\tc\r"#),
      ("\u{1B}[2Jgone", #"\u{1B}[2Jgone"#),
      ("\u{9B}31m", #"\u{9B}31m"#),
      ("\u{7F}\u{0}", #"\u{7F}\u{0}"#),
      ("evil\u{202E}fdp.exe", #"evil\u{202E}fdp.exe"#),
      ("\u{2066}x\u{2069}\u{200E}\u{200F}\u{61C}", #"\u{2066}x\u{2069}\u{200E}\u{200F}\u{61C}"#),
      ("line\u{2028}line\u{2029}", #"line\u{2028}line\u{2029}"#),
      ("\u{FEFF}\u{200B}\u{E0041}", #"\u{FEFF}\u{200B}\u{E0041}"#),
      ("\u{E000}", #"\u{E000}"#),
    ])
  func hostileText(
    text: String, shown: String
  ) {
    #expect(text.escaped == shown)
  }

  @Test("A long text is cut between characters")
  func longText() {
    #expect("éééé".escaped(limit: 3) == "ééé…")
    #expect("ééé".escaped(limit: 3) == "ééé")
    #expect(EscapedText.quoted(String(repeating: "a", count: 200)).count == 103)
    #expect(EscapedText.line(String(repeating: "a", count: 2000)).count == 1025)
  }

  @Test("A character with endless combining marks is cut, but emoji are not")
  func combiningMarks() {
    let endless = "a" + String(repeating: "\u{301}", count: 100_000)
    #expect(endless.count == 1)
    #expect(endless.escaped(limit: 3).unicodeScalars.count == 17)
    #expect("👩🏽‍❤️‍💋‍👨🏿 x".escaped == "👩🏽‍❤️‍💋‍👨🏿 x")
  }
}
