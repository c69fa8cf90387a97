import Foundation
import SQLiteChangesets
import Testing

@testable import BuckiaCommand

@Suite("Output in eighty columns")
struct LayoutTests {
  private let narrow = Style(isColored: false)

  @Test("Words are kept whole, and a path longer than a line is not broken")
  func wrapping() {
    let path = String(repeating: "folder/", count: 20)
    let lines = Style(isColored: false, width: 20).wrapped("one two three four \(path) five", indent: 2, hanging: 4)
    #expect(lines == ["  one two three four", "    \(path)", "    five"])
    #expect(narrow.wrapped("") == [""])
    #expect(
      Style(isColored: true, width: 12).wrapped("\u{1B}[31mred words\u{1B}[0m here") == [
        "\u{1B}[31mred words\u{1B}[0m", "here",
      ])
  }

  @Test("A table shortens names and wraps sentences, but never numbers and ids")
  func tables() {
    var table = TextTable([.text("table"), "id", .number("rows"), .prose("why")])
    let id = "3MOszSZz3uTLnb7JQCqVqYrLuuY"
    table.add([
      .init(String(repeating: "long_", count: 12)), .init(id), .count(1_234_567),
      "because it is so and not otherwise, as anybody can see",
    ])
    let lines = table.lines(style: narrow)
    #expect(lines.allSatisfy { $0.displayWidth <= 80 }, "\(lines)")
    #expect(lines[1].contains(id) && lines[1].contains("1,234,567") && lines[1].contains("…"))
    #expect(lines.count > 2)
  }

  @Test("A row that does not fit is printed over several lines, without its zeros")
  func stacked() {
    var table = TextTable([
      "state", "file", .text("sender"), .number("inserted"), .number("deleted"), .number("conflicts"),
    ])
    let name = String(repeating: "3MOszSZz3uTLnb7JQCqVqYrLuuY", count: 2)
    table.add(["applied", .init(name), "unsigned", .count(1_200), .count(0), .count(3)])
    #expect(
      table.lines(style: narrow, indent: 0) == ["applied  \(name)  unsigned", "  inserted 1,200, conflicts 3"])
  }

  @Test("Equal reasons are grouped; many that differ only in a quoted name are, too")
  func grouping() {
    var few = GroupedList()
    for name in ["a", "b", "c", "d", "e"] { few.add(name, "it is \"\(name == "e" ? "x" : "y")\"") }
    #expect(
      few.lines("item", style: narrow) == ["  a, b, c and 1 more  it is \"y\"", "  e                   it is \"x\""])
    var many = GroupedList()
    for number in 1...50 { many.add("i\(number)", "an index on \"t\(number)\": left out") }
    #expect(many.lines("item", style: narrow) == ["  i1, i2, i3 and 47 more  an index on \"…\": left out"])
  }

  @Test(
    "Versions of a text are shortened around their differences",
    arguments: [
      (["same", "same"], ["same", "same"]),
      (
        [String(repeating: "a", count: 50) + "X", String(repeating: "a", count: 50) + "Y"],
        ["…aaaaaaaaaaaaX", "…aaaaaaaaaaaaY"]
      ),
      (["b" + String(repeating: "a", count: 50), "c"], ["b" + String(repeating: "a", count: 18) + "…", "c"]),
      (
        [String(repeating: "é", count: 40) + "è", String(repeating: "é", count: 40) + "ê"],
        ["…" + String(repeating: "é", count: 12) + "è", "…" + String(repeating: "é", count: 12) + "ê"]
      ),
    ])
  func differences(texts: [String], shown: [String]) {
    #expect(DifferingTexts.shortened(texts, to: 20) == shown)
  }

  @Test("Each of three versions shows its own difference")
  func threeVersions() {
    let base = String(repeating: "a", count: 30) + "B" + String(repeating: "a", count: 30)
    let shown = DifferingTexts.shortened([base, base + "!", base.replacing("B", with: "C")], to: 20)
    #expect(shown == ["…aaaaaaaaaaaaBaaaaa…", "…aaaaaaaaaaaa!", "…aaaaaaaaaaaaCaaaaa…"])
    #expect(DifferingTexts.shortened([base, base, base + "!"], to: 20)[0] == "…aaaaaaaaaaaa")
  }

  @Test("Blobs show the bytes that differ")
  func blobs() {
    let one = [UInt8](repeating: 0xaa, count: 100) + [1] + [UInt8](repeating: 0xbb, count: 100)
    var other = one
    other[100] = 2
    let shown = ChangesetValue.shown([.blob(one), .blob(other)], limit: 40)
    #expect(shown[0].hasPrefix("x'…aaaa01bb") && shown[1].hasPrefix("x'…aaaa02bb"), "\(shown)")
  }

  /// A database with a hundred tables, each of which `doctor` reports on.
  private static func large() throws -> Workbench {
    let bench = try Workbench()
    var sql = ""
    for number in 1...100 {
      sql += """
        CREATE TABLE a_table_with_a_long_name_\(number)(id INTEGER PRIMARY KEY, n INT CHECK (n > 0), made TEXT DEFAULT (date('now')),
          twice INT AS (n * 2), other INT UNIQUE ON CONFLICT IGNORE);
        CREATE INDEX i\(number) ON a_table_with_a_long_name_\(number)(n);
        CREATE VIEW v\(number) AS SELECT 1;
        """
    }
    try bench.sql("large.db", sql)
    return bench
  }

  @Test("doctor on a hundred tables is short, groups equal reasons and fits; --full lists everything")
  func doctor() throws {
    let bench = try Self.large()
    let outcome = try bench.buckia(["doctor", "large.db"])
    let lines = outcome.output.split(separator: "\n")
    #expect(lines.count < 40, "\(outcome.output)")
    #expect(lines.allSatisfy { $0.displayWidth <= 80 }, "\(outcome.output)")
    #expect(outcome.output.contains("100 columns of 100 tables"))
    #expect(outcome.output.contains("and 97 more"))
    let full = try bench.buckia(["doctor", "large.db", "--full"])
    for number in 1...100 {
      #expect(full.output.contains("a_table_with_a_long_name_\(number)") && full.output.contains("i\(number)"))
    }
  }

  @Test("Long lists end with the number of hidden items, and no line is wider than eighty columns")
  func wideLists() throws {
    let bench = try Self.large()
    try bench.sql("new.db", "CREATE TABLE t(id INTEGER PRIMARY KEY, text TEXT)")
    try FileManager.default.copyItem(atPath: bench.path("new.db"), toPath: bench.path("ben.db"))
    let long = String(repeating: "many words that say the same ", count: 20)
    try bench.sql(
      "new.db",
      "INSERT INTO t SELECT value, '\(long)' || value || ' and more' FROM json_each('[\((1...60).map(String.init).joined(separator: ","))]')"
    )
    try bench.sql(
      "ben.db",
      "INSERT INTO t SELECT id, text || '!' FROM (SELECT value AS id, '\(long)' || value AS text FROM json_each('[\((1...60).map(String.init).joined(separator: ","))]'))"
    )
    try bench.sql("empty.db", "CREATE TABLE t(id INTEGER PRIMARY KEY, text TEXT)")
    let all = try bench.buckia(["diff", "empty.db", "large.db", "--force", "-o", "tables.bdiff"])
    // The left-out parts differ.
    #expect(all.status == 2)
    let sent = try bench.buckia(["diff", "empty.db", "new.db", "-o", "inbound"])
    let applied = try bench.buckia(["apply", "ben.db", "inbound"])
    let conflicts = try bench.buckia(["conflicts", "ben.db"])
    #expect(conflicts.output.contains("40 older conflicts not shown"))
    #expect(conflicts.output.contains("60 conflicts in all:"))
    for outcome in [
      all, sent, applied, conflicts, try bench.buckia(["log", "ben.db"]), try bench.buckia(["show", "tables.bdiff"]),
      try bench.buckia(["apply", "empty.db", "tables.bdiff", "--dry-run"]),
    ] {
      for line in outcome.output.split(separator: "\n") { #expect(line.displayWidth <= 80, "\(line)") }
    }
    #expect(try bench.buckia(["conflicts", "ben.db", "--full"]).output.contains("\(long)7 and more"))
  }

  @Test("Conflicts are chosen by table, diff and kind")
  func filters() throws {
    let bench = try Workbench()
    let schema = "CREATE TABLE a(id INTEGER PRIMARY KEY, t); CREATE TABLE b(id INTEGER PRIMARY KEY, t); "
    try bench.sql("old.db", schema + "INSERT INTO a VALUES (1, 'x'), (2, 'x'); INSERT INTO b VALUES (1, 'x')")
    for name in ["new.db", "ben.db"] {
      try FileManager.default.copyItem(atPath: bench.path("old.db"), toPath: bench.path(name))
    }
    try bench.sql("new.db", "UPDATE a SET t = 'new'; UPDATE b SET t = 'new'")
    try bench.sql("ben.db", "UPDATE a SET t = 'mine' WHERE id = 1; DELETE FROM a WHERE id = 2; UPDATE b SET t = 'mine'")
    let id = try #require(try bench.buckia(["diff", "old.db", "new.db", "-o", "in", "--json"]).json["id"] as? String)
    #expect(try bench.buckia(["apply", "ben.db", "in"]).status == 0)
    func count(_ options: String...) throws -> Int? {
      (try bench.buckia(["conflicts", "ben.db", "--json"] + options).json["conflicts"] as? [Any])?.count
    }
    #expect(try count() == 3)
    #expect(try count("--table", "A") == 2)
    #expect(try count("--table", "a", "--kind", "not-found") == 1)
    #expect(try count("--kind", "data") == 2)
    #expect(try count("--diff", id) == 3)
    #expect(try count("--diff", "0ujtsYcgvSTl8PAuAdqWYSMnLOv") == 0)
    try Transcript(
      """
      $ buckia conflicts ben.db --summary
      3 conflicts in all:
        table  kind       conflicts
        a      data               1  the local row was kept
        a      not-found          1  …
        b      data               1  the local row was kept
      $ buckia conflicts ben.db --kind constraint
      There are no such conflicts.
      """
    ).play(on: bench)
    #expect(try bench.buckia(["conflicts", "ben.db", "--kind", "odd"]).status == 64)
  }
}
