import BuckiaBenchmarks
import Foundation
import Testing

@testable import BuckiaBenchmarkSuite

#if canImport(FoundationXML)
  import FoundationXML
#endif

@Suite("The report")
struct ReportTests {
  private static func record(
    _ id: String = "inserts-text-key", rows: Int = Record.fullRows, seconds: Double = 2
  ) throws -> Record {
    let comparison = Comparison(
      id: id, title: "1,000 inserts, <TEXT> & key",
      figures: [Figure(.speed, against: .stock, target: 3), Figure(.speed, against: "nobody", target: 1)]
    ) { _ in
      Workload(
        size: "1,000 rows", notes: ["nobody is not here."],
        implementations: [
          Implementation(.stock) { _ in ClosureRun { 8 } },
          Implementation(.buckia, isSubject: true) { _ in ClosureRun { seconds } },
        ])
    }
    let run = try ComparisonRun(comparison)
    for _ in 0..<3 { try run.round() }
    return Record(part: .apply, number: 0, rows: rows, comparison: run.result)
  }

  private static func run(_ records: [Record]) throws -> RunDescription {
    RunDescription(
      records: records, swift: "Swift 6", commit: "abc", load: 0.1,
      date: Date(timeIntervalSince1970: 1_700_000_000))
  }

  @Test("A target is met or not, and is not judged without a measurement", arguments: [(2.0, true), (4.0, false)])
  func targets(seconds: Double, isMet: Bool) throws {
    let table = TargetTable([try Self.record(seconds: seconds)])
    #expect(table.rows.map(\.isMet) == [isMet])
    #expect(table.rows[0].measured == (isMet ? "4.00x" : "2.00x"))
    #expect(table.rows[0].target == "3x")
    #expect(table.markdown.last?.hasSuffix(isMet ? "| yes |" : "| no |") == true)
  }

  @Test("The document names the machine, the sizes, the alternatives and the results")
  func document() throws {
    let records = [try Self.record()]
    let text = ResultsDocument(run: try Self.run(records), records: records, failures: [], charts: []).text
    for part in [
      "2023-11-14", "commit abc", "Swift 6, release build", "1,000 rows. 3 rounds.", "nobody is not here.",
      "| sqlite3changeset_apply_v2 | 8.00 s | 8.00 s | 8.00 s |", "| **Buckia** | 2.00 s |",
      "4.00x as fast as sqlite3changeset_apply_v2",
    ] {
      #expect(text.contains(part), "\(part)")
    }
    #expect(!text.contains("scaled to"))
    let scaled = [try Self.record(rows: 100_000)]
    #expect(
      ResultsDocument(run: try Self.run(scaled), records: scaled, failures: [], charts: []).text.contains(
        "scaled to 100,000 rows"))
  }

  @Test("A failure is named with its reason")
  func failures() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("records-\(UUID().uuidString)").path
    #expect(try Failure.all(beside: folder).isEmpty)
    try Failure(part: .peer, title: "a comparison", reason: "a program is missing").write("x", beside: folder)
    let failures = try Failure.all(beside: folder)
    #expect(try Record.all(in: folder).isEmpty)
    try FileManager.default.removeItem(atPath: folder)
    let records = [try Self.record()]
    let text = ResultsDocument(run: try Self.run(records), records: records, failures: failures, charts: []).text
    #expect(text.contains("- a comparison: a program is missing"))
  }

  @Test("The README keeps everything outside the marks")
  func readme() throws {
    let records = [try Self.record()]
    let section = ReadmeSection(run: try Self.run(records), records: records)
    let marked = { (old: String) in "# Title\n\n\(ReadmeSection.begin)\n\(old)\n\(ReadmeSection.end)\n\nThe rest.\n" }
    let text = try section.inserted(into: marked("old"))
    #expect(text.hasPrefix("# Title\n\n\(ReadmeSection.begin)\n| work |"))
    #expect(text.hasSuffix("\(ReadmeSection.end)\n\nThe rest.\n"))
    #expect(!text.contains("old\n"))
    #expect(try section.inserted(into: text) == text)
    for broken in [
      "nothing", marked("").replacingOccurrences(of: ReadmeSection.end, with: ""), marked("") + marked(""),
    ] {
      #expect(throws: ReportError.self) { try section.inserted(into: broken) }
    }
  }

  @Test("Calls from other languages are listed beside those in Swift, in the document and the README")
  func hosts() throws {
    let full = try #require(
      BenchmarkSuite.entries(rows: Record.fullRows).first { $0.comparison.id == "host-large-apply" }?.comparison)
    let comparison = Comparison(id: full.id, title: full.title, figures: full.figures) { _ in
      let seconds: [(ImplementationName, Double)] = [
        (.fromSwift, 4), (.fromC, 4.2), (.extensionFromC, 3.8), (.pythonPackage, 4.6), (.geodiffApply, 23),
      ]
      return Workload(
        size: "1,000,000 rows",
        implementations: seconds.map { name, seconds in Implementation(name) { _ in ClosureRun { seconds } } })
    }
    let run = try ComparisonRun(comparison)
    try run.round()
    let records = [Record(part: .hosts, number: 0, rows: Record.fullRows, comparison: run.result)]
    let charts = ChartGroup.all.compactMap { $0.chart(of: records) }
    #expect(charts.map(\.name) == ["host-large.svg"])
    #expect(charts.allSatisfy { $0.chart.svg.contains("how much longer than Buckia, from Swift") })
    let text = ResultsDocument(run: try Self.run(records), records: records, failures: [], charts: charts).text
    for part in [
      "## Called from other languages", "5.0% more than Buckia, from Swift", "5.0% less than Buckia, from Swift",
      "| Buckia's Python package | 4.60 s | 4.60 s | 4.60 s | 15.0% more than Buckia, from Swift; 5.00x as fast as pyg",
      "| \(full.title) | Buckia, from C | Buckia, from Swift | **5.0%** | under 10% | yes |",
      "| \(full.title) | Buckia's Python package | Buckia, from Swift | **15.0%** | under 10% | no |",
    ] {
      #expect(text.contains(part), "\(part)")
    }
    let section = ReadmeSection(run: try Self.run(records), records: records)
    #expect(
      section.lines.contains(
        "| \(full.title) | Buckia's Python package | Buckia, from Swift | 15.0% | under 10% |"))
  }

  @Test("A chart is well-formed, has every label and no text beyond its edge")
  func chart() throws {
    let records = [try Self.record()]
    let (name, chart) = try #require(ChartGroup.all[0].chart(of: records))
    #expect(name == "inserts.svg")
    let svg = chart.svg
    #expect(XMLParser(data: Data(svg.utf8)).parse())
    for text in ["1,000 inserts, &lt;TEXT&gt; &amp; key", "sqlite3changeset_apply_v2", "8.00 s", "2.00 s (4.00x)"] {
      #expect(svg.contains(text), "\(text)")
    }
    #expect(svg.contains("prefers-color-scheme: dark"))
    let width = try #require(svg.firstMatch(of: /width="([0-9.]+)" height/).flatMap { Double($0.1) })
    for match in svg.matches(of: /class="(\w+)" x="([0-9.]+)" y="[0-9.]+">([^<]+)</) {
      let x = try #require(Double(match.2))
      // The narrowest letters of usual fonts are half as wide as their size.
      let length = Double(match.3.count) * 6
      if match.1 == "label" { #expect(x - length > 0, "\(match.3)") } else { #expect(x + length < width, "\(match.3)") }
    }
    #expect(ChartGroup.all[1].chart(of: records) == nil)
  }

  @Test("Records are read back in the order of the suite")
  func order() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("records-\(UUID().uuidString)").path
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(atPath: folder) } }
    for (part, number) in [(Part.peer, 12), (.apply, 2), (.diff, 9)] {
      let comparison = try Self.record("\(part)-\(number)").comparison
      try Record(part: part, number: number, rows: 1, comparison: comparison).write(into: folder)
    }
    #expect(try Record.all(in: folder).map(\.part) == [.apply, .diff, .peer])
  }
}
