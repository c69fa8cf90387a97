import Buckia
import Foundation
import SQLiteConnections
import TestSupport
import Testing

@Suite("Any merge") struct MergePropertyTests {
  /// The tables of a case, and statements that change them.
  private struct Case {
    var random: SeededGenerator
    /// Whether rows have keys, in each of the tables.
    static let tables = [
      "k": "CREATE TABLE k(id INTEGER PRIMARY KEY, a, b TEXT COLLATE NOCASE)",
      "w": "CREATE TABLE w(x TEXT, y INT, a, b, PRIMARY KEY (y, x)) WITHOUT ROWID",
      "r": "CREATE TABLE r(id INT, a, b REAL)",
    ]

    mutating func value() -> String {
      switch Int.random(in: 0..<6, using: &random) {
      case 0: "NULL"
      case 1: "\(Int.random(in: -3...3, using: &random))"
      case 2: "\(Int.random(in: -3...3, using: &random)).5"
      case 3: "x'\(String(repeating: "0f", count: Int.random(in: 0..<40, using: &random)))'"
      default: "'\(random.pick(["a", "A", "b", "", "it''s"]))'"
      }
    }

    /// A statement about one of the rows whose number leaves a rest, so that two sides never change the same row.
    mutating func statement(rest: Int, side: Int) -> String {
      let table = random.pick(["k", "w", "r"])
      let id = 3 * Int.random(in: 0..<12, using: &random) + rest
      let condition = table == "w" ? "y = \(id)" : "id = \(id)"
      switch Int.random(in: 0..<4, using: &random) {
      case 0: return "DELETE FROM \(table) WHERE \(condition)"
      case 1:
        let row = table == "w" ? "'new', \(id + 100 * side)" : "\(id + 100 * side)"
        return "INSERT OR IGNORE INTO \(table) VALUES (\(row), \(value()), \(value()))"
      default: return "UPDATE \(table) SET \(random.pick(["a", "b"])) = \(value()) WHERE \(condition)"
      }
    }

    mutating func base() -> [String] {
      var statements = Array(Self.tables.values.sorted())
      for id in 0..<36 {
        statements.append("INSERT INTO k VALUES (\(id), \(value()), \(value()))")
        statements.append("INSERT INTO w VALUES ('\(id)', \(id), \(value()), \(value()))")
        statements.append("INSERT INTO r VALUES (\(id), \(value()), \(value()))")
      }
      return statements
    }

    mutating func side(rest: Int, side: Int) -> [String] {
      let count = Int.random(in: 0..<30, using: &random)
      return (0..<count).map { _ in statement(rest: rest, side: side) }
    }
  }

  /// All rows, without the rowids of those that have no key.
  private static func rows(_ path: String) throws -> [String] {
    try ["SELECT * FROM k ORDER BY id", "SELECT * FROM w ORDER BY y, x", "SELECT * FROM r ORDER BY 1, 2, 3"]
      .flatMap { try TestDatabases.rows($0, on: path) }
  }

  @Test("Where two sides change different rows, the merge is what comes of both changes, whichever side is ours")
  func disjointChanges() throws {
    for seed in Seeds.range(60) {
      let folder = try TemporaryFolder()
      var made = Case(random: SeededGenerator(seed: seed))
      let (base, one, two) = (made.base(), made.side(rest: 0, side: 1), made.side(rest: 1, side: 2))
      let paths = try [base, base + one, base + two, base + one + two].enumerated().map { place, statements in
        try TestDatabases.run(statements, on: folder.file("\(place).db"))
        return folder.file("\(place).db")
      }
      for (ours, theirs) in [(1, 2), (2, 1)] {
        let out = folder.file("out\(ours).db")
        let report = try DatabaseManager(paths[ours]).merge(paths[theirs], since: paths[0], into: out)
        #expect(report.isClean, "\(Seeds.replay(seed)): \(report)")
        #expect(try Self.rows(out) == Self.rows(paths[3]), "\(Seeds.replay(seed)): \(one) \(two)")
        #expect(try TestDatabases.rows("PRAGMA integrity_check", on: out).count == 1)
      }
    }
  }
}
