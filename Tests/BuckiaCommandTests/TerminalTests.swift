import Buckia
import Testing

@testable import BuckiaCommand

@Suite("Terminal output")
struct TerminalTests {
  @Test("Columns are aligned, numbers to the right, in any script")
  func table() {
    var table = TextTable(["name", .number("rows"), "why"])
    table.add(["notes", .count(1_234_567), "x"])
    table.add(["日本", .count(0)])
    table.add(["e\u{301}t", .count(7), "a longer reason"])
    #expect(
      table.lines(style: Style(isColored: false)) == [
        "  name        rows  why",
        "  notes  1,234,567  x",
        "  日本           –",
        "  e\u{301}t             7  a longer reason",
      ])
  }

  @Test("A table without rows prints nothing, and one without headings no heading")
  func emptyTable() {
    #expect(TextTable(["a"]).lines(style: Style(isColored: false)).isEmpty)
    var bare = TextTable(["", ""])
    bare.add(["a", "b"])
    #expect(bare.lines(style: Style(isColored: false), indent: 0) == ["a  b"])
  }

  @Test("Colour does not shift a column")
  func coloredTable() {
    var table = TextTable(["a", "b"])
    table.add([.init("x", .good), "y"])
    table.add(["xx", "y"])
    #expect(table.lines(style: Style(isColored: true), indent: 0)[1] == "\u{1B}[32mx\u{1B}[0m   y")
  }

  @Test("Thousands are separated", arguments: [(0, "0"), (999, "999"), (1000, "1,000"), (-1_234_567, "-1,234,567")])
  func grouping(number: Int, text: String) {
    #expect(number.grouped == text)
  }

  @Test("The greatest numbers are printed exactly")
  func extremes() {
    #expect(Int64.min.grouped == "-9,223,372,036,854,775,808")
    #expect(1.counted("row") == "1 row")
    #expect(1200.counted("row") == "1,200 rows")
  }

  @Test(
    "Sizes are short",
    arguments: [
      (1, "1 byte"), (9_999, "9,999 bytes"), (10_000, "10.0 kB"), (999_499, "999 kB"), (999_500, "1.00 MB"),
      (123_456_789, "123 MB"), (5_000_000_000, "5.00 GB"),
    ])
  func sizes(bytes: Int, text: String) {
    #expect("\(ByteCount(bytes))" == text)
  }

  @Test(
    "Times are short",
    arguments: [
      (0.0, "under 1 ms"), (0.0126, "13 ms"), (0.9996, "1.00 s"), (12.345, "12.35 s"), (59.996, "1 min 0 s"),
      (125.4, "2 min 5 s"),
    ])
  func times(seconds: Double, text: String) {
    #expect("\(Elapsed(seconds))" == text)
  }

  @Test(
    "Dates are right on leap days, before 1970 and at the end of ids",
    arguments: [
      (Int64(0), "1970-01-01T00:00:00Z"), (951_782_400, "2000-02-29T00:00:00Z"),
      (1_709_164_799, "2024-02-28T23:59:59Z"), (1_709_251_199, "2024-02-29T23:59:59Z"),
      (4_107_542_399, "2100-02-28T23:59:59Z"), (4_107_542_400, "2100-03-01T00:00:00Z"),
      (-1, "1969-12-31T23:59:59Z"), (-11_644_473_600, "1601-01-01T00:00:00Z"),
      (5_694_967_295, "2150-06-19T23:21:35Z"),
    ])
  func moments(unixSeconds: Int64, text: String) {
    #expect(UTCTime(unixSeconds: unixSeconds).rfc3339 == text)
  }

  @Test("Milliseconds are rounded down, before 1970 too")
  func milliseconds() {
    #expect(UTCTime(unixMilliseconds: 1999).description == "1970-01-01 00:00:01 UTC")
    #expect(UTCTime(unixMilliseconds: -1).description == "1969-12-31 23:59:59 UTC")
  }

  @Test(
    "Suggested commands are quoted for the shell",
    arguments: [
      ("notes.sqlite", "notes.sqlite"), ("my notes.db", "'my notes.db'"), ("it's", #"'it'\''s'"#), ("", "''"),
      ("$(rm)", "'$(rm)'"), ("naïve", "naïve"),
    ])
  func quoting(text: String, quoted: String) {
    #expect(text.shellQuoted == quoted)
  }

  @Test("There is no colour in files, on dumb terminals, and with NO_COLOR")
  func noColor() {
    #expect(!Style(descriptor: -1, environment: ["TERM": "xterm"]).isColored)
    #expect(Style(isColored: false)("x", .bad) == "x")
    #expect(Style(isColored: true)("x", .bad) == "\u{1B}[31mx\u{1B}[0m")
  }
}
