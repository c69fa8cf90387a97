import Buckia
import TestSupport
import Testing

/// Recorded conflicts, of which there can be millions, are read one at a time.
@Suite("Many conflicts")
struct ManyConflictsTests {
  private struct Stop: Error {}

  private static let schema = """
    CREATE TABLE person(id INTEGER PRIMARY KEY, code); CREATE TABLE Phone(id INTEGER PRIMARY KEY, person REFERENCES person, n);
    INSERT INTO person VALUES (1, 1), (2, 2)
    """

  /// An exchange of two files. Three people and their phones are left out of the first one. The second one changes two
  /// rows that were edited here.
  private func exchange() throws -> Exchange {
    let exchange = try Exchange(Self.schema)
    try TestDatabases.run(
      "INSERT INTO person VALUES (4, 41), (5, 51), (6, 61); UPDATE person SET code = code + 10 WHERE id < 3",
      on: exchange.mine)
    try exchange.send(
      """
      INSERT INTO person VALUES (4, 42), (5, 52), (6, 62);
      INSERT INTO phone VALUES (1, 4, 1), (2, 5, 2), (3, 6, 3), (4, 5, 4)
      """)
    try exchange.apply()
    try exchange.send("UPDATE person SET code = code + 20 WHERE id < 3")
    try exchange.apply()
    return exchange
  }

  private func ids(_ exchange: Exchange, _ filter: ConflictFilter, newest count: Int? = nil) throws -> [Int64] {
    var ids: [Int64] = []
    try exchange.database.forEachConflict(matching: filter, newest: count) { ids.append($0.id) }
    return ids
  }

  @Test("A filter with a limit gives the newest matching conflicts, oldest first")
  func filtered() throws {
    let exchange = try exchange()
    let all = try exchange.database.conflicts()
    #expect(all.map(\.kind).count { $0 == .foreignKey } == 4)
    #expect(all.count == 9)
    #expect(try Set(ids(exchange, ConflictFilter())).count == 9)
    for table in [nil, "PERSON", "phone", "none"] {
      for kind in [nil] + ConflictKind.allCases.map(Optional.some) {
        for diff in [nil, all[0].diff, all[8].diff] {
          var filter = ConflictFilter()
          filter.table = table
          filter.kind = kind
          filter.diff = diff
          let expected = all.filter { record in
            (table == nil || table?.lowercased() == record.table.lowercased()) && (kind == nil || kind == record.kind)
              && (diff == nil || diff == record.diff)
          }
          #expect(try exchange.database.conflicts(matching: filter).map(\.id) == expected.map(\.id))
          for count in [0, 1, 3, 100] {
            #expect(try ids(exchange, filter, newest: count) == expected.suffix(count).map(\.id))
          }
          let counts = try exchange.database.conflictCounts(matching: filter)
          #expect(counts.reduce(0) { $0 + $1.count } == expected.count)
          for entry in counts {
            #expect(
              entry.count
                == expected.count {
                  $0.table == entry.table && $0.kind == entry.kind && $0.outcome == entry.outcome
                })
          }
        }
      }
    }
  }

  @Test("A conflict names the one that left out its parent row, even if the filter excludes that one")
  func causes() throws {
    let exchange = try exchange()
    let all = try exchange.database.conflicts()
    var filter = ConflictFilter()
    filter.kind = .foreignKey
    for count in [1, 2, 4] {
      var seen = 0
      try exchange.database.forEachConflict(matching: filter, newest: count) { record in
        let parent = try #require(record.parent)
        #expect(parent.table == "person" && parent.key.map(\.column) == ["id"])
        let cause = try #require(all.first { $0.id == parent.conflict })
        #expect(cause.table == "person" && cause.key.map(\.value) == parent.key.map(\.value))
        #expect(record.incoming?.first { $0.column == "person" }?.value == parent.key[0].value)
        seen += 1
      }
      #expect(seen == count)
    }
  }

  @Test("Throwing stops the enumeration, and a database without a ledger has no conflicts")
  func stops() throws {
    let exchange = try exchange()
    var seen = 0
    #expect(throws: Stop.self) {
      try exchange.database.forEachConflict { _ in
        seen += 1
        if seen == 2 { throw Stop() }
      }
    }
    #expect(seen == 2)
    let bare = try Exchange("CREATE TABLE t(id INTEGER PRIMARY KEY)")
    #expect(try bare.database.conflicts().isEmpty && bare.database.conflictCounts().isEmpty)
  }

  @Test("A dry run reports the first 10,000 conflicts, and the number of all")
  func dryRun() throws {
    let exchange = try Exchange("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
    let rows = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10050) INSERT INTO t SELECT i,"
    try TestDatabases.run("\(rows) 'mine' FROM n", on: exchange.mine)
    try exchange.send("\(rows) 'theirs' FROM n")
    var options = ApplyOptions()
    options.isDryRun = true
    let report = try exchange.apply(options)
    #expect(report.dryRunConflicts.count == 10_000)
    #expect(report.dryRunConflicts.first?.key.map(\.value) == [.integer(1)])
    #expect(report.dryRunConflictCounts.map(\.count) == [10_050])
    #expect(report.dryRunConflictCounts.map(\.kind) == [.conflict])
    #expect(try exchange.database.conflicts().isEmpty)
  }

  @Test("A dry run succeeds next to a conflict record with the greatest number")
  func greatestNumber() throws {
    let exchange = try exchange()
    try TestDatabases.run(
      "UPDATE buckia_conflict SET conflict = 9223372036854775807 WHERE conflict = (SELECT max(conflict) FROM buckia_conflict)",
      on: exchange.mine)
    try exchange.send("UPDATE person SET code = code + 30 WHERE id < 3")
    var options = ApplyOptions()
    options.isDryRun = true
    #expect(try exchange.apply(options).diffs.map(\.conflicts) == [2])
    #expect(try exchange.database.conflicts().last?.id == .max)
  }

  @Test("All conflicts that a filter selects are counted, and up to 1,000 refused ones are listed")
  func told() throws {
    let exchange = try Exchange("CREATE TABLE note(id INTEGER PRIMARY KEY, n)")
    let rows =
      "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 1200) INSERT INTO note SELECT i, "
    try TestDatabases.run(rows + "'mine' FROM r", on: exchange.mine)
    try exchange.send(rows + "'theirs' FROM r")
    try exchange.apply()
    try TestDatabases.run("UPDATE note SET n = 'later' WHERE id <= 1100", on: exchange.mine)
    let report = try exchange.database.resolve(matching: ConflictFilter(), taking: .incoming)
    #expect(report.counts.resolved == 100)
    #expect(report.counts.changed == 100)
    #expect(report.counts.refused == 1_100)
    #expect(report.counts.changedSince == 1_100)
    #expect(report.conflicts.map(\.id) == Array(1...1_000) + Array(1_101...1_200))
    #expect(report.refused.count == 1_000)
    // Conflicts that are selected by number are all listed.
    let named = try exchange.database.resolve(
      Array(1...1_200), taking: .incoming, options: ResolveOptions(isForced: true))
    #expect(named.conflicts.count == 1_200)
    #expect(named.counts.resolved == 1_200)
    #expect(named.counts.changed == 1_100)
  }
}
