import BuckiaBenchmarks
import Foundation
import SQLiteConnections
import TestSupport
import Testing

@Suite("Workloads")
struct WorkloadTests {
  static let rows = 240

  static let comparisons: [(name: String, make: @Sendable (TableShape) -> Comparison)] = [
    ("inserts", { .inserts($0, rows: rows) }),
    ("updates and deletes", { .alterations($0, rows: rows) }),
    ("updates", { .alterations($0, rows: rows, only: .updates) }),
    ("deletes", { .alterations($0, rows: rows, only: .deletes) }),
    ("inserts under indexes", { .indexed(.inserts, $0, rows: rows) }),
    ("inserts beside rows under indexes", { .indexed(.additions, $0, rows: rows) }),
    ("updates under indexes", { .indexed(.updates, $0, rows: rows) }),
    ("inserts where the later diff wins", { .converging(.inserts, $0, rows: rows) }),
    ("updates and deletes where the later diff wins", { .converging(.alterations, $0, rows: rows) }),
    ("conflicts", { .conflicts($0, rows: rows) }),
    ("opening", { .opening($0, rows: rows) }),
    ("difference", { .difference($0, rows: rows, changed: .onePercent) }),
    ("small difference", { .difference($0, rows: rows, changed: .exactly(40)) }),
    ("sharing", { .sharing($0, rows: rows, changed: .exactly(40)) }),
    ("receiving a share", { .receivingShare($0, rows: rows) }),
    ("opening what is sealed", { .openingSealed($0, rows: rows) }),
    ("difference by rows", { .difference($0, rows: rows, changed: .onePercent) { ([$0.rowDiff], []) } }),
  ]

  @Test("Files that do not fit into memory are written to the temporary folder")
  func noRoomInMemory() throws {
    let folder = try ScratchFolder.inMemory(roomFor: .max)
    #expect(folder.path.hasPrefix(FileManager.default.temporaryDirectory.path))
  }

  @Test(
    "Every implementation gets the same rows, for every shape of table", arguments: TableShape.allCases,
    comparisons.map(\.name))
  func agreement(shape: TableShape, name: String) throws {
    let make = try #require(Self.comparisons.first { $0.name == name }?.make)
    let run = try ComparisonRun(make(shape))
    // Throws if two implementations differ.
    try run.round()
    #expect(run.result.series.count >= 2)
    #expect(run.result.series.allSatisfy { $0.values.count == 1 && $0.values[0] > 0 })
    #expect(run.result.series.contains { $0.isSubject })
    #expect(run.result.series.contains { !$0.isSubject })
    #expect(!run.result.numbers.isEmpty)
  }

  @Test("Small files give the rows that they contain, one by one and together")
  func smallFiles() throws {
    let run = try ComparisonRun(.smallFiles(5, rowsPerFile: 3))
    try run.round()
    #expect(run.result.series.count == 3)
    #expect(run.result.numbers.count == 2)
  }

  @Test("The cost of sealing is measured, in time and in bytes")
  func sealing() throws {
    for (comparison, count) in [
      (Comparison.sealing(rows: 3, count: 2), 2), (.sealing(rows: 300, count: 1), 2),
      (.envelope(rows: 20, columns: 3), 1),
    ] {
      let run = try ComparisonRun(comparison)
      try run.round()
      #expect(run.result.series.count == count)
      #expect(run.result.series.allSatisfy { $0.values.count == 1 && $0.values[0] > 0 })
    }
  }

  @Test("Large databases have the stated size and number of different rows")
  func largePair() throws {
    let folder = try ScratchFolder()
    let equal = try LargePair(rows: 1_000, changed: nil, in: folder)
    #expect(equal.changed == 0)
    let bytes = try fileBytes(equal.older)
    #expect(try fileBytes(equal.newer) == bytes)
    #expect((2_140_000...2_170_000).contains(bytes.count))
    try equal.warm()
    let changed = try LargePair(rows: 1_000, changed: .onePercent, in: folder)
    #expect(changed.changed == 10)
    let query = "SELECT id, n FROM large"
    let older = try TestDatabases.rows(query, on: changed.older)
    let newer = try TestDatabases.rows(query, on: changed.newer)
    #expect(zip(older, newer).count { $0 != $1 } == 10)
    #expect(try TestDatabases.rows(query, on: equal.older) == older)
  }

  @Test("Comparisons have unique names that are valid in file names")
  func names() {
    let ids = ShortSuite.comparisons(rows: 100).map(\.id)
    #expect(Set(ids).count == ids.count)
    #expect(ids.allSatisfy { $0.wholeMatch(of: /[a-z0-9-]+/) != nil })
  }

  @Test("A hash distinguishes tables by their values and storage classes, not by the order of rows")
  func hash() throws {
    let folder = try TemporaryFolder()
    func hash(_ rows: String) throws -> UInt64 {
      let path = folder.file(UUID().uuidString)
      try TestDatabases.run("CREATE TABLE t(a, b); INSERT INTO t VALUES \(rows)", on: path)
      return try ContentHash.of("t", in: path)
    }
    let plain = try hash("(1, 'one'), (2, x'00')")
    #expect(try hash("(2, x'00'), (1, 'one')") == plain)
    for other in [
      "(1, 'one')", "(1, 'one'), (2, '0')", "(1.0, 'one'), (2, x'00')", "(1, 'two'), (2, x'00')",
      "(1, 'one'), (2, NULL)", "(1, 'one'), (2, x'0000')", "(2, 'one'), (1, x'00')",
      "(1, 'one'), (2, x'00'), (2, x'00')", "('one', 1), (2, x'00')",
    ] {
      #expect(try hash(other) != plain, "\(other)")
    }
  }

  @Test("Seeded numbers are the same in every run, different from each other and in range")
  func seeds() {
    var first = BuckiaBenchmarks.SeededGenerator(seed: 7)
    var second = BuckiaBenchmarks.SeededGenerator(seed: 7)
    let numbers = first.distinct(50, from: 1...100)
    #expect(numbers == second.distinct(50, from: 1...100))
    #expect(Set(numbers).count == 50)
    #expect(numbers.allSatisfy { (1...100).contains($0) })
    #expect(first.distinct(9, from: 1...3) == [1, 2, 3])
  }
}
