@testable import BuckiaCommand
import SQLiteSchemas
import TestSupport
import Testing

@Suite("Text in a page stays text")
struct MarkupTests {
  private func string(_ markup: Markup) -> String { String(decoding: markup.utf8, as: UTF8.self) }

  @Test("Literals are kept unchanged, and interpolated text is escaped")
  func interpolation() {
    let name = "</td><script>\"'&"
    #expect(
      string("<td title=\"\(name)\">\(7)</td>") == "<td title=\"&lt;/td&gt;&lt;script&gt;&quot;&#39;&amp;\">7</td>")
    let cell: Markup = "<b>\(name.prefix(1))</b>"
    #expect(string("<td>\(cell)</td>") == "<td><b>&lt;</b></td>")
  }

  @Test("Characters that a terminal would not show are shown by number, as on a terminal")
  func controls() {
    #expect(string(Markup(text: "a\0\u{202E}b\n")) == #"a\u{0}\u{202E}b\n"#)
  }

  @Test("Each line break is shown, and breaks the line")
  func lines() {
    #expect(string(Markup(lines: "a\r\n<b>\n")) == #"a\r\n<br />&lt;b&gt;\n<br />"#)
    #expect(string(Markup(preformatted: "CREATE\nTABLE <x>")) == "CREATE\nTABLE &lt;x&gt;")
  }

  @Test("Any text anywhere in a page is read back unchanged", arguments: Seeds.shards)
  func roundTrip(shard: Int) throws {
    try Seeds.tryEach(400, shard: shard) { seed in
      var generator = SeededGenerator(seed: seed)
      func any() -> String { HostileText.any(using: &generator) }
      let (title, fact, value, table, warning) = ("t\(any())", any(), any(), "n\(any())", any())
      let (label, key, note, column, rest) = (any(), any(), any(), any(), any())
      let values = [PageValue(.text, any()), PageValue(.text, any())]
      let entry = PageEntry(
        number: 1, state: .updated, label: label, key: key, notes: [note], rows: [(column, values)])
      let bytes = try SamplePage.bytes(
        title: title, facts: [(fact, value)], table: table, note: warning, rest: rest, entries: [entry])
      let page = try ParsedPage(bytes)
      #expect(page.faults == [], "\(seed)")
      func expect(_ found: String?, _ text: String, _ what: String) {
        #expect(found.map { Array($0.utf8) } == Array(text.escaped.utf8), "\(what) of seed \(seed)")
      }
      let root = page.root
      expect(root.all("title").first?.text, title, "the title")
      expect(root.all("h1").first?.text, title, "the heading")
      expect(root.all("dt").first?.text, fact, "the name of a fact")
      expect(root.all("dd").first?.text, value, "the value of a fact")
      expect(root.all("caption").last?.text, table, "the table")
      expect(root.all(class: "faint").first?.text, warning, "the warning")
      expect(root.all(class: "rest").last?.text, rest, "the rest")
      expect(root.all("th").last?.text, column, "the column")
      // Marks are set between characters, but shortened text is escaped in pieces.
      let cells = root.all("td").suffix(2).map(\.text)
      for (cell, value) in zip(cells, values) where !value.text.contains(where: { $0.unicodeScalars.count > 16 }) {
        expect(cell, value.text, "a value")
      }
    }
  }
}
