import BuckiaApply
import BuckiaDiff
import SQLiteConnections
import Testing
import ReplicationTestSupport
import TestSupport

/// Random R-trees and full-text tables, mirrored by every method.
@Suite struct VirtualMirrorTests {
  private static func answers(of tables: [RandomVirtualPair.Table], in path: String) throws -> [[String]] {
    let connection = try SQLiteConnection(opening: path, as: .readWrite)
    return try tables.map { try RandomVirtualPair.answers(of: $0, on: connection) }
  }

  private static func edit(
    _ path: String, _ tables: [RandomVirtualPair.Table], _ random: inout SeededGenerator
  ) throws {
    let connection = try SQLiteConnection(opening: path, as: .readWrite)
    for table in tables where !table.name.hasPrefix("new") {
      for _ in 0..<Int.random(in: 0...15, using: &random) {
        try RandomVirtualPair.edit(table, on: connection, &random)
      }
    }
  }

  @Test("After mirroring by any method, both sides have the same contents and answers", arguments: Seeds.shards)
  func mirrored(shard: Int) throws {
    try Seeds.tryEach(60, shard: shard) { seed in
      let pair = try RandomVirtualPair(seed: seed)
      let wanted = try Self.answers(of: pair.tables, in: pair.newer)
      for method in DiffMethod.allCases {
        let target = try pair.folder.copy("older", to: "by \(method.rawValue)")
        let difference = try DatabaseComparison.run(
          older: pair.older, newer: pair.newer, options: DiffOptions(method: method))
        #expect(difference.skipped == [], "\(Seeds.replay(seed))")
        #expect(!difference.fallbacks.contains { $0.name != "plain" }, "\(Seeds.replay(seed))")
        let result = try Shipping.apply(difference, to: target)
        #expect(result.counts.conflicts == 0, "\(Seeds.replay(seed))")
        #expect(try Self.answers(of: pair.tables, in: target) == wanted, "\(Seeds.replay(seed)), \(method)")
        #expect(try DatabaseComparison.run(older: target, newer: pair.newer).tables.isEmpty, "\(Seeds.replay(seed))")
      }
      // The text of a blob depends on the encoding, and a database only has one once it has had a table.
      let empty = try TestDatabases.run(
        "PRAGMA encoding = '\(pair.encoding)'; CREATE TABLE t(a); DROP TABLE t", on: pair.folder.file("empty"))
      try Shipping.ship(from: empty, to: pair.newer, onto: empty)
      #expect(try Self.answers(of: pair.tables, in: empty) == wanted, "\(Seeds.replay(seed)), all new")
    }
  }

  @Test(
    "Whatever a receiver has changed, its tables stay intact, and repeating changes nothing", arguments: Seeds.shards
  )
  func conflicting(shard: Int) throws {
    try Seeds.tryEach(60, shard: shard) { seed in
      let pair = try RandomVirtualPair(seed: seed)
      var random = SeededGenerator(seed: ~seed)
      let target = try pair.folder.copy("older", to: "target")
      try Self.edit(target, pair.tables, &random)
      let difference = try DatabaseComparison.run(older: pair.older, newer: pair.newer)
      let settings = ApplySettings(policies: .takeIncoming, time: 2_000_000_000_000)
      let first = try Shipping.apply(difference, to: target, settings: settings)
      let after = try Self.answers(of: pair.tables, in: target)
      // Taken changes are in the table: each change is now as its author left it, or was there already.
      let second = try Shipping.apply(difference, to: target, settings: settings)
      #expect(try Self.answers(of: pair.tables, in: target) == after, "\(Seeds.replay(seed))")
      #expect(second.counts.inserted == 0, "\(Seeds.replay(seed))")
      #expect(first.warnings.isEmpty && second.warnings.isEmpty, "\(Seeds.replay(seed))")
    }
  }
}
