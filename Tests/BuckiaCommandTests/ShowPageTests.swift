import Buckia
@testable import BuckiaCommand
import Foundation
import TestSupport
import Testing

@testable import BuckiaCommand

@Suite("buckia show --html")
struct ShowPageTests {
  private static func page(_ bench: Workbench, _ name: String = "page.html") throws -> ParsedPage {
    let page = try ParsedPage(fileBytes(bench.path(name)))
    #expect(page.faults == [])
    return page
  }

  /// A bench with a raw changeset of the changes that statements make to a database.
  private static func changes(_ schema: String, _ statements: String) throws -> Workbench {
    let bench = try Workbench()
    try bench.sql("new.db", schema)
    try bench.record("new.db", statements, to: "c.changeset")
    return bench
  }

  @Test("The page shows the values before and after each change, by table")
  func page() throws {
    let bench = try DiffCommandTests.pair()
    try Transcript(
      """
      $ buckia diff old.db new.db -o changes.bdiff --quiet
      $ buckia show changes.bdiff --html page.html
      page.html  4 changes, … kB
      $ buckia show changes.bdiff --html page.html
      ? 1
      2> buckia: page.html: a file of that name is there already; --force replaces it
      $ buckia show changes.bdiff --html page.html --force --quiet
      """
    ).play(on: bench)
    let root = try Self.page(bench).root
    #expect(root.all("title").first?.text == "Changes in changes.bdiff")
    #expect(root.all("h2").map(\.text) == ["Tables", "notes", "tags", "The author’s schema"])
    let numbers = root.all(class: "contents")[0].all("td").map(\.text)
    #expect(numbers == ["1", "1", "1", "1", "–", "–"])
    let entries = root.all(class: "entry")
    #expect(
      entries.map { $0.all(class: "heading")[0].text } == [
        "#1 − deleted id 3 (c)", "#2 ~ updated id 2 (B)", "#3 + inserted id 4 (d)", "#4 + inserted name 'x'",
      ])
    #expect(
      entries.map { $0.all("td").map(\.text) } == [
        ["3", "–", "'c'", "–", "NULL", "–"], ["'b'", "'B'"], ["–", "4", "–", "'d'", "–", "NULL"], ["–", "'x'"],
      ])
    #expect(root.all("dd").contains { $0.text == "unsigned" })
    #expect(root.all("pre").contains { $0.text.contains("CREATE TABLE tags") })
  }

  @Test("- is standard output, and messages go to standard error")
  func standardOutput() throws {
    let bench = try DiffCommandTests.pair()
    try bench.buckia(["diff", "old.db", "new.db", "-o", "changes.bdiff"])
    let outcome = try bench.buckia(["show", "changes.bdiff", "--html", "-"])
    #expect(outcome.status == 0)
    #expect(try ParsedPage(Array(outcome.output.utf8)).faults == [])
    #expect(outcome.diagnostics.hasPrefix("standard output  4 changes, "))
    let both = try bench.buckia(["show", "changes.bdiff", "--html", "-", "--json"])
    #expect(both.status == 64 && both.diagnostics.contains("--json and --html -"))
  }

  @Test("--json describes the page")
  func json() throws {
    let bench = try DiffCommandTests.pair()
    try bench.buckia(["diff", "old.db", "new.db", "-o", "changes.bdiff"])
    let document = try bench.buckia(["show", "changes.bdiff", "--html", "page.html", "--limit", "1", "--json"]).json
    #expect(document["path"] as? String == "page.html")
    let byteCount = try fileBytes(bench.path("page.html")).count
    #expect(document["bytes"] as? Int == byteCount)
    #expect(document["shown"] as? Int == 2 && document["left"] as? Int == 2)
  }

  @Test("Values are shown exactly, including their storage class")
  func values() throws {
    let bench = try Self.changes(
      "CREATE TABLE t(k INTEGER PRIMARY KEY, v)",
      """
      INSERT INTO t VALUES (1, NULL), (2, ''), (3, x''), (4, 9223372036854775807), (5, 7.0), (6, 9e999), (7, 'NULL'),
        (8, x'00ff'), (9, 'it''s'), (10, 'two' || char(10) || 'lines'), (11, 1e-7), (12, zeroblob(65)), (13, '7')
      """)
    #expect(try bench.buckia(["show", "c.changeset", "--html", "page.html"]).status == 0)
    var shown: [String: (text: String, kind: String)] = [:]
    for entry in try Self.page(bench).root.all(class: "entry") {
      let cells = entry.all("td")
      shown[cells[1].text] = (cells[3].text, cells[3].children.first?.attributes["class"] ?? "")
    }
    let expected = [
      "1": ("NULL", "null"), "2": ("''", "text"), "3": ("x''", "blob"), "4": ("9223372036854775807", "number"),
      "5": ("7.0", "number"), "6": ("Infinity", "number"), "7": ("'NULL'", "text"), "8": ("x'00ff'", "blob"),
      "9": ("'it''s'", "text"), "10": (#"'two\nlines'"#, "text"), "11": ("1e-07", "number"),
      "12": ("x'0000000000000000…' (65 bytes)", "blob"), "13": ("'7'", "text"),
    ]
    for (key, (text, kind)) in expected {
      #expect(shown[key]?.text == text && shown[key]?.kind == kind, "\(key): \(String(describing: shown[key]))")
    }
    #expect(shown.count == expected.count)
  }

  @Test("Images are shown, documents are not, and large images are only named")
  func images() throws {
    // One pixel; a document that would run a script; an image behind too many bytes.
    let gif = "4749463839610100010080000000000000ffffff21f90401000000002c00000000010001000002024401003b"
    let svg = "CAST('<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>' AS BLOB)"
    let bench = try Self.changes(
      "CREATE TABLE t(k INTEGER PRIMARY KEY, v)",
      """
      INSERT INTO t VALUES (1, x'\(gif)'), (2, \(svg)), (3, '<img src="x" onerror="alert(1)">'),
        (4, CAST(x'\(gif)' || zeroblob(1100000) AS BLOB))
      """)
    #expect(try bench.buckia(["show", "c.changeset", "--html", "page.html"]).status == 0)
    let root = try Self.page(bench).root
    // The cell describes the image already.
    #expect(root.all("img").map { $0.attributes["alt"] } == [""])
    #expect(root.all("td").contains { $0.text == "GIF image, 1 × 1, 44 bytes" })
    #expect(root.all("td").contains { $0.text.contains("GIF image, 1 × 1, 1.10 MB, too large for this page") })
    #expect(root.all("td").contains { $0.text == #"'<img src="x" onerror="alert(1)">'"# })
    #expect(try bench.buckia(["show", "c.changeset", "--html", "full.html", "--full"]).status == 0)
    #expect(try Self.page(bench, "full.html").root.all("img").count == 2)
    // An image is not repeated as hexadecimal digits.
    #expect(try fileBytes(bench.path("full.html")).count < 1_600_000)
  }

  @Test("Hostile names and values stay text")
  func hostile() throws {
    let name = "</title><script>alert(1)</script>\u{202E}'\"&"
    let quoted = "\"\(name.replacing("\"", with: "\"\""))\""
    let bench = try Workbench()
    for database in ["old.db", "new.db"] {
      try TestDatabases.run("CREATE TABLE \(quoted)(\(quoted) TEXT PRIMARY KEY, v)", on: bench.path(database))
    }
    try TestDatabases.run(
      "INSERT INTO \(quoted) VALUES ('</td></table>]]>' || char(0), '<!--' || char(27) || '[31m')",
      on: bench.path("new.db"))
    #expect(try bench.buckia(["diff", "old.db", "new.db", "-o", "<b>.bdiff"]).status == 0)
    #expect(try bench.buckia(["show", "<b>.bdiff", "--html", "page.html"]).status == 0)
    let root = try Self.page(bench).root
    let shown = name.replacing("\u{202E}", with: #"\u{202E}"#)
    #expect(root.all("h1").first?.text == "Changes in <b>.bdiff")
    #expect(root.all("h2").contains { $0.text == shown })
    #expect(root.all("th").contains { $0.text == shown && $0.attributes["scope"] == "row" })
    let cells = root.all(class: "entry")[0].all("td").map(\.text)
    #expect(cells == ["–", #"'</td></table>]]>\u{0}'"#, "–", #"'<!--\u{1B}[31m'"#])
  }

  @Test("Long tables are cut, with the number of hidden rows, unless --full or --limit is given")
  func limits() throws {
    let bench = try Self.changes(
      "CREATE TABLE t(k INTEGER PRIMARY KEY, v); CREATE TABLE u(k INTEGER PRIMARY KEY)",
      """
      WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1234) INSERT INTO t SELECT i, hex(zeroblob(400)) FROM n;
      INSERT INTO u VALUES (1)
      """)
    let outcome = try bench.buckia(["show", "c.changeset", "--html", "page.html"])
    #expect(outcome.output.contains("page.html  501 changes, "))
    #expect(outcome.output.contains("734 more are not on the page (--full draws all)."))
    let root = try Self.page(bench).root
    #expect(root.all(class: "entry").count == 501)
    #expect(
      root.all(class: "rest").map(\.text) == ["734 more changes of this table not on this page (--full draws all)"])
    let text = "'\(String(repeating: "0", count: 399))…' (800 bytes)"
    #expect(root.all(class: "entry")[0].all("td").last?.text == text)
    #expect(
      try bench.buckia(["show", "c.changeset", "--html", "full.html", "--full"]).output.contains("1,235 changes"))
    let full = try Self.page(bench, "full.html").root
    #expect(full.all(class: "entry").count == 1235 && full.all(class: "rest").isEmpty)
    #expect(full.all(class: "entry")[0].all("td").last?.text == "'\(String(repeating: "0", count: 800))'")
    #expect(try bench.buckia(["show", "c.changeset", "--html", "few.html", "--limit", "0"]).status == 0)
    let few = try Self.page(bench, "few.html").root
    #expect(few.all(class: "entry").isEmpty && few.all("h2").map(\.text) == ["Tables", "t", "u"])
  }

  @Test("A full page says for each table what is missing, and images have a separate limit")
  func size() throws {
    let bench = try Self.changes(
      "CREATE TABLE t(k INTEGER PRIMARY KEY, v); CREATE TABLE u(k INTEGER PRIMARY KEY); CREATE TABLE w(k INTEGER PRIMARY KEY)",
      """
      WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400) INSERT INTO t
        SELECT i, CAST(x'47494638396101000100' || zeroblob(90) AS BLOB) FROM n;
      INSERT INTO u VALUES (1), (2); INSERT INTO w VALUES (1)
      """)
    var limits = PageLimits.standard
    (limits.pageBytes, limits.allImageBytes) = (60_000, 250)
    let file = try DiffInspection.open(bench.path("c.changeset"), home: BuckiaHome(path: bench.path(".home")))
    var bytes: [UInt8] = []
    var counts = PageCounts(noun: "")
    let byteCount = try PageTarget.stream { bytes.append(contentsOf: $0) }.write {
      counts = try ChangesPage(of: file, name: "c", limits: limits, on: $0).write()
    }
    // The end of the page follows the limit: the notes about each table, and the script.
    #expect(byteCount == Int64(bytes.count) && (60_000..<70_000).contains(bytes.count))
    #expect((20..<380).contains(counts.shown) && counts.shown + counts.left == 403)
    let page = try ParsedPage(bytes)
    #expect(page.faults == [])
    let sections = page.root.all(class: "list")
    #expect(sections.map { $0.all("h2")[0].text }.sorted() == ["t", "u", "w"])
    #expect(sections.reduce(0) { $0 + $1.all(class: "entry").count } == counts.shown)
    #expect(page.root.all(class: "rest").count == 3)
    #expect(page.root.all("img").count == 2)
  }

  @Test("Values too long to be held in memory are shown in part")
  func longValues() throws {
    let bench = try Self.changes(
      "CREATE TABLE t(k INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, zeroblob(9000000))",
      "UPDATE t SET v = CAST(zeroblob(8999999) || x'01' AS BLOB)")
    for options in [[], ["--full"]] {
      #expect(try bench.buckia(["show", "c.changeset", "--html", "page.html", "--force"] + options).status == 0)
      #expect(try fileBytes(bench.path("page.html")).count < 30_000)
      let cells = try Self.page(bench).root.all(class: "entry")[0].all("td").map(\.text)
      #expect(cells == ["x'…0000000000000000' (9.00 MB)", "x'…0000000000000001' (9.00 MB)"])
    }
  }

  #if os(Linux)
    @Test("A page of many rows is written while they are read, and is never in memory as a whole")
    func memory() throws {
      let bench = try Self.changes(
        "CREATE TABLE t(k INTEGER PRIMARY KEY, v)",
        """
        WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 15000)
        INSERT INTO t SELECT i, hex(zeroblob(2000)) FROM n
        """)
      // The process's peak memory in kB when most of the page has been read.
      let outcome = try bench.shell(
        """
        mkfifo pipe; "$BUCKIA" show c.changeset --html - --full > pipe 2> said & page=$!
        { head -c 50000000 > /dev/null; awk '/VmHWM/ { print $2 }' /proc/$page/status; wc -c; } < pipe; wait $page
        """)
      let numbers = outcome.output.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
      #expect(outcome.status == 0 && numbers.count == 2, "\(outcome)")
      #expect((numbers.first ?? .max) < 64_000 && (numbers.last ?? 0) > 5_000_000, "\(numbers)")
      let said = try String(contentsOfFile: bench.path("said"), encoding: .utf8)
      #expect(said.contains("A browser takes long to open a page of this size; fewer changes make a smaller one."))
    }
  #endif
}
