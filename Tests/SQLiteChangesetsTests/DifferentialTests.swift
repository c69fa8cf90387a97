import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import Testing
import TestSupport

/// Compares random changes of random databases with SQLite's results.
@Suite("Compared with SQLite's own functions")
struct DifferentialTests {
  /// Each test case runs this many seeds: few large cases print less than many small ones.
  private static let block: UInt64 = 25

  @Test("a changeset is read to the end and counted as SQLite wrote it", arguments: 0..<4 as Range<UInt64>)
  func reading(block: UInt64) throws {
    for seed in (block * Self.block)..<((block + 1) * Self.block) {
      let database = try RandomDatabase(seed: seed, hasLooseKeys: true)
      try database.addTrigger()
      let (changeset, patchset) = try database.changes(20)
      let summary = try ChangesetSummary.of(changeset)
      let patchSummary = try ChangesetSummary.of(patchset)
      #expect(summary.changeCount == patchSummary.changeCount, "seed \(seed)")
      #expect(summary.changeCount == (try wholeChanges(changeset).count), "seed \(seed)")
      #expect(summary.byteCount == changeset.count)
      #expect(summary.tables.map(\.inserted) == patchSummary.tables.map(\.inserted), "seed \(seed)")
      #expect(summary.tables.map(\.table.name) == patchSummary.tables.map(\.table.name), "seed \(seed)")
    }
  }

  @Test(
    "the inverse has the same changes as SQLite's, in sorted order, with the tables reversed",
    arguments: 0..<6 as Range<UInt64>)
  func inverting(block: UInt64) throws {
    for seed in (block * Self.block)..<((block + 1) * Self.block) {
      let database = try RandomDatabase(seed: seed)
      try database.addTrigger()
      let before = try database.content()
      let changeset = try database.changes(20).changeset
      let inverse = try Changesets.inverted(changeset)
      #expect(inverse == (try sectionsReversed(Changesets.sorted(StockChangesets.invert(changeset)))), "seed \(seed)")
      #expect(try Spilled.inverted(changeset) == inverse, "seed \(seed)")
      #expect(try Changesets.inverted(inverse) == Changesets.sorted(changeset), "seed \(seed)")
      try database.connection.execute("DROP TRIGGER echo")
      try StockChangesets.apply(inverse, to: database.connection) { _, _ in .abort }
      #expect(try database.content() == before, "seed \(seed)")
    }
  }

  @Test(
    "concatenated recordings are inverted as a sequence", arguments: 0..<6 as Range<UInt64>)
  func invertingSequences(block: UInt64) throws {
    for seed in (block * Self.block)..<((block + 1) * Self.block) {
      let database = try RandomDatabase(seed: seed)
      try database.addTrigger()
      let before = try database.content()
      let changeset = try (0..<3).flatMap { _ in try database.changes(12).changeset }
      let inverse = try Changesets.inverted(changeset)
      let stock = try StockChangesets.invert(changeset)
      #expect(try Set(wholeChanges(inverse)) == Set(wholeChanges(stock)), "seed \(seed)")
      #expect(try wholeChanges(inverse).count == wholeChanges(stock).count, "seed \(seed)")
      #expect(try Spilled.inverted(changeset) == inverse, "seed \(seed)")
      try database.connection.execute("DROP TRIGGER echo")
      try StockChangesets.apply(inverse, to: database.connection) { _, _ in .abort }
      #expect(try database.content() == before, "seed \(seed)")
    }
  }

  @Test(
    "changesets with keys that are equal but not the same have SQLite's inverse, in another order",
    arguments: 0..<4 as Range<UInt64>)
  func invertingLooseKeys(block: UInt64) throws {
    for seed in (block * Self.block)..<((block + 1) * Self.block) {
      let changeset = try RandomDatabase(seed: seed, hasLooseKeys: true).changes(20).changeset
      let inverse = try Changesets.inverted(changeset)
      try expectSameChanges(inverse, StockChangesets.invert(changeset), seed)
      #expect(try Spilled.inverted(changeset) == inverse, "seed \(seed)")
    }
  }

  @Test("joining successive changesets gives the same changes, with the same effect", arguments: 0..<6 as Range<UInt64>)
  func joining(block: UInt64) throws {
    for seed in (block * Self.block)..<((block + 1) * Self.block) {
      let database = try RandomDatabase(seed: seed)
      try database.addTrigger()
      let parts = try [database.changes(12), database.changes(12), database.changes(12)]
      let after = try database.content()

      let joined = try Changesets.concatenated(parts[0].changeset, parts[1].changeset, parts[2].changeset)
      #expect(try Spilled.concatenated(parts.map(\.changeset)) == joined, "seed \(seed)")
      try expectSameChanges(joined, try stockConcatenated(parts.map(\.changeset)), seed)
      let patch = try Changesets.concatenated(parts[0].patchset, parts[1].patchset, parts[2].patchset)
      try expectSameChanges(patch, try stockConcatenated(parts.map(\.patchset)), seed)

      for bytes in [joined, patch, try Changesets.sorted(joined), try Changesets.sorted(patch)] {
        let copy = try RandomDatabase(seed: seed)
        try StockChangesets.apply(bytes, to: copy.connection) { _, _ in .abort }
        #expect(try copy.content() == after, "seed \(seed)")
      }
    }
  }

  @Test("joining unrelated changesets drops what SQLite drops", arguments: 0..<6 as Range<UInt64>)
  func joiningTheImpossible(block: UInt64) throws {
    for seed in (block * Self.block)..<((block + 1) * Self.block) {
      let database = try RandomDatabase(seed: seed)
      try database.addTrigger()
      let (first, second) = try (database.changes(15), database.changes(15))
      let other = try RandomDatabase(seed: seed &+ 1_000_000)
      let third = try other.changes(15)
      for parts in [[second, first], [first, first], [first, third, second], [third, third, first, second, third]] {
        let changesets = parts.map(\.changeset)
        let joined = try Changesets.concatenated(changesets)
        try expectSameChanges(joined, try stockConcatenated(changesets), seed)
        let patchsets = parts.map(\.patchset)
        let joinedPatch = try Changesets.concatenated(patchsets)
        #expect(try Spilled.concatenated(changesets) == joined, "seed \(seed)")
        #expect(try Spilled.concatenated(patchsets) == joinedPatch, "seed \(seed)")
        try expectSameChanges(joinedPatch, try stockConcatenated(patchsets), seed)
      }
    }
  }

  @Test("sorting keeps changes and effect, concatenated or not", arguments: 0..<6 as Range<UInt64>)
  func sorting(block: UInt64) throws {
    for seed in (block * Self.block)..<((block + 1) * Self.block) {
      let database = try RandomDatabase(seed: seed)
      try database.addTrigger()
      let first = try database.changes(20)
      let middle = try database.content()
      let second = try database.changes(8)
      let after = try database.content()
      for (bytes, content) in [
        (first.changeset, middle), (first.patchset, middle), (first.changeset + second.changeset, after),
        (first.patchset + second.patchset, after),
      ] {
        let sorted = try Changesets.sorted(bytes)
        let (were, are) = (try wholeChanges(bytes), try wholeChanges(sorted))
        #expect(were.sorted { $0.lexicographicallyPrecedes($1) } == are.sorted { $0.lexicographicallyPrecedes($1) })
        #expect(try Spilled.sorted(bytes) == sorted, "seed \(seed)")
        #expect(try Changesets.sorted(sorted) == sorted, "seed \(seed)")
        let copy = try RandomDatabase(seed: seed)
        try StockChangesets.apply(sorted, to: copy.connection) { _, _ in .abort }
        #expect(try copy.content() == content, "seed \(seed)")
      }
    }
  }

  @Test("keys sort as SQLite sorts values", arguments: 0..<10 as Range<UInt64>)
  func keyOrder(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("CREATE TABLE keys(k PRIMARY KEY, v)")
    let session = try SQLiteSession(on: connection)
    try session.attach()
    let insert = try connection.prepare("INSERT OR IGNORE INTO keys VALUES(?, 1)")
    let near: [Double] = [0, 1, -1, 0x1p51, 0x1p53, -0x1p53, 0x1p62, 0x1p63, -0x1p63, 1e300, -1e300, .infinity]
    for _ in 0..<300 {
      let base = near.randomElement(using: &random) ?? 0
      switch Int.random(in: 0..<5, using: &random) {
      case 0: try insert.bind(base + Double.random(in: -2...2, using: &random), at: 0)
      case 1:
        let whole = Int64(exactly: max(-0x1p63, min(base, 0x1p62)).rounded()) ?? 0
        try insert.bind(whole &+ Int64.random(in: -3...3, using: &random), at: 0)
      case 2: try insert.bind(Int64(bitPattern: random.next()), at: 0)
      case 3:
        let letters = ["a", "b", "\u{1}", "é", "same beginning "]
        try insert.bind(
          (0..<Int.random(in: 0..<6, using: &random)).map { _ in letters.randomElement(using: &random) ?? "" }.joined(),
          at: 0)
      default:
        let count = Int.random(in: 0..<12, using: &random)
        try insert.bind((0..<count).map { _ in [0, 1, 255].randomElement(using: &random) ?? 0 } as [UInt8], at: 0)
      }
      try insert.run()
    }
    let sorted = try Changesets.sorted(try session.changeset())
    var expected: [ChangesetValue] = []
    let select = try connection.prepare("SELECT k FROM keys ORDER BY k")
    while try select.step() {
      switch select.storageClass(at: 0) {
      case .integer: expected.append(.integer(select.integer(at: 0)))
      case .real: expected.append(.real(select.real(at: 0)))
      case .text: expected.append(.text(select.text(at: 0) ?? ""))
      case .blob: expected.append(.blob(select.blob(at: 0)))
      case .null: expected.append(.null)
      }
    }
    try sorted.withRawSpan { span in
      var reader = ChangesetReader()
      var found: [ChangesetValue] = []
      while try reader.next(in: span) != nil {
        if let value = ChangesetValue(reader.new[0], in: span) { found.append(value) }
      }
      #expect(found == expected, "seed \(seed)")
    }
  }

  @Test("tables that do not fit are refused as by SQLite")
  func incompatible() throws {
    let notes = changeset("notes", key: [1, 0], .insert([1, 2]))
    for other in [
      changeset("NOTES", key: [1, 0, 0], .insert([1, 2, 3])),
      changeset("notes", key: [0, 1], .insert([1, 2])),
      changeset("notes", key: [1, 0], format: .patchset, .insert([3, 2])),
      changeset("other", key: [1, 0], format: .patchset, .insert([3, 2])),
    ] {
      #expect(throws: SQLiteError.self) { try StockChangesets.concat(notes, other) }
      #expect(throws: ChangesetError.self) { try Changesets.concatenated(notes, other) }
    }
    #expect(throws: SQLiteError.self) {
      try StockChangesets.invert(changeset(format: .patchset, .insert([1, 2])))
    }
  }

  private func stockConcatenated(_ parts: [[UInt8]]) throws -> [UInt8] {
    try parts.dropFirst().reduce(parts[0]) { try StockChangesets.concat($0, $1) }
  }

  /// Compares as sets: SQLite emits rows in hash order.
  private func expectSameChanges(_ ours: [UInt8], _ stock: [UInt8], _ seed: UInt64) throws {
    let (mine, theirs) = (try wholeChanges(ours), try wholeChanges(stock))
    #expect(mine.count == theirs.count, "seed \(seed)")
    #expect(Set(mine) == Set(theirs), "seed \(seed)")
  }
}
