import Foundation
import TestSupport
import Testing

@testable import BuckiaBenchmarkSuite

@Suite("The benchmark suite")
struct BenchmarkSuiteTests {
  @Test("Every part has comparisons, and each comparison a unique id that is valid in file names")
  func ids() {
    let entries = BenchmarkSuite.entries(rows: Record.fullRows)
    #expect(Set(entries.map(\.part)) == Set(Part.allCases))
    #expect(entries.map(\.number) == Array(entries.indices))
    let ids = entries.map(\.comparison.id)
    #expect(Set(ids).count == ids.count)
    #expect(ids.allSatisfy { $0.wholeMatch(of: /[a-z0-9-]+/) != nil })
  }

  @Test("Measuring writes a record and no failure")
  func measure() throws {
    let folder = try TemporaryFolder()
    try Self.measure("inserts-integer-key", into: folder.path)
    let record = try #require(try Record.all(in: folder.path).first)
    #expect(record.part == .apply)
    #expect(record.rows == 2_000)
    #expect(record.comparison.series.allSatisfy { $0.values.count == 2 })
    #expect(try Failure.all(beside: folder.path).isEmpty)
  }

  @Test("A comparison that cannot be measured writes the reason")
  func failure() throws {
    let folder = try TemporaryFolder()
    // No disk has room for this many rows.
    try Self.measure("memory-difference", into: folder.file("records"), rows: 1 << 40)
    #expect(try Record.all(in: folder.file("records")).isEmpty)
    let failures = try Failure.all(beside: folder.file("records"))
    #expect(failures.map(\.part) == [.memory])
    #expect(failures.allSatisfy { $0.reason.contains("are needed") })
  }

  @Test(
    "Wrong arguments are refused",
    arguments: [["nothing"], ["inserts-text-key", "--rows", "1999"], ["inserts-text-key", "--rounds", "0"]])
  func refusals(arguments: [String]) throws {
    let folder = try TemporaryFolder()
    #expect(throws: (any Error).self) {
      let command = try MeasureCommand.parse(arguments + ["--records", folder.path])
      try command.run()
    }
    #expect(try Failure.all(beside: folder.path).isEmpty)
  }

  private static func measure(_ id: String, into folder: String, rows: Int = 2_000) throws {
    let command = try MeasureCommand.parse([id, "--records", folder, "--rows", "\(rows)", "--rounds", "2"])
    try command.run()
  }
}
