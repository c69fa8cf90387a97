@testable import BuckiaDiff
import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas
import Testing
import ReplicationTestSupport
import TestSupport

/// Compares random pairs of databases: page sizes and encodings of all kinds, all kinds of keys and none, extreme
/// values, columns and tables that are added and dropped.
@Suite struct DifferentialDiffTests {
  @Test("The difference applied to the older database turns it into the newer")
  func forward() throws {
    for seed in Seeds.range(90) {
      let pair = try RandomPair(seed: seed)
      let difference = try DatabaseComparison.run(older: pair.older, newer: pair.newer)
      let target = try pair.folder.copy("older", to: "target")
      let result = try Shipping.apply(difference, to: target)
      #expect(result.counts.conflicts == 0 && result.counts.unchanged == 0, "seed \(seed): \(result.counts)")
      let inserted = difference.tables.map(\.inserted).reduce(0, +)
      #expect(result.counts.inserted == inserted, "seed \(seed)")
      for table in try TestDatabases.tables(of: pair.newer) {
        let made = try pair.rows(of: table, in: target, asIn: pair.newer)
        let wanted = try pair.rows(of: table, in: pair.newer, asIn: pair.newer)
        #expect(made == wanted, "seed \(seed), \(table)")
      }
      let rest = try DatabaseComparison.run(older: target, newer: pair.newer)
      #expect(
        rest.tables.isEmpty,
        "seed \(seed): \(rest.tables.map { ($0.definition.name, $0.inserted, $0.updated, $0.deleted) })")
      for name in pair.dropped { #expect(difference.skipped.contains { $0.name == name }, "seed \(seed): \(name)") }
    }
  }

  @Test("The inverse restores the older rows of every table whose definition is the same")
  func inverse() throws {
    for seed in Seeds.range(80) {
      let pair = try RandomPair(seed: seed)
      let difference = try DatabaseComparison.run(older: pair.older, newer: pair.newer)
      let inverse = try Changesets.inverted(difference.changeset.allBytes())
      let target = try pair.folder.copy("newer", to: "target")
      let inverted = DatabaseDifference(
        changeset: TemporaryBuffer(inverse), tables: difference.tables, skipped: [], fallbacks: [])
      let result = try Shipping.apply(inverted, to: target)
      #expect(result.counts.conflicts == 0, "seed \(seed): \(result.counts)")
      for table in pair.unaltered {
        let made = try pair.rows(of: table, in: target, asIn: pair.older)
        let wanted = try pair.rows(of: table, in: pair.older, asIn: pair.older)
        #expect(made == wanted, "seed \(seed), \(table)")
      }
    }
  }

  @Test("Both methods find the same changes")
  func methods() throws {
    for seed in Seeds.range(80) {
      let pair = try RandomPair(seed: seed)
      guard !pair.isLoose else { continue }
      var found: [[UInt8]] = []
      for method in [DiffMethod.rows, .session] {
        let difference = try DatabaseComparison.run(
          older: pair.older, newer: pair.newer, options: DiffOptions(method: method))
        let sorted = try Changesets.sorted(difference.changeset.allBytes())
        found.append(sorted)
      }
      #expect(found[0] == found[1], "seed \(seed)")
    }
  }

  @Test("Without a change there is no difference, whichever pages contain the rows")
  func nothing() throws {
    for seed in Seeds.range(30) {
      let pair = try RandomPair(seed: seed)
      let copy = try pair.folder.copy("newer", to: "copy")
      try TestDatabases.run("PRAGMA page_size = 2048; VACUUM; PRAGMA user_version = 7", on: copy)
      let difference = try DatabaseComparison.run(older: pair.newer, newer: copy)
      let keyed = difference.tables.filter { !$0.definition.isKeyedByRowID }
      #expect(keyed.isEmpty, "seed \(seed)")
      let same = try DatabaseComparison.run(older: pair.newer, newer: pair.newer)
      #expect(same.isEmpty, "seed \(seed)")
    }
  }
}
