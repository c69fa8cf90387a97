import Buckia
import Foundation
import SQLiteConnections
import TestSupport
import Testing

@Suite("Random merges") struct MergePropertyTests {
  /// The tables of a case, and statements that change them.
  private struct Case {
    var random: SeededGenerator
    /// The definitions of the tables. Rows of `r` have no key.
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

    /// A statement about a row whose id divided by 3 leaves `rest`, so that two sides never change the same row.
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

  @Test("If two sides change different rows, the merge has the changes of both, whichever side is ours")
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

  /// Statements of one side: edits with values that the other side does not write, around a change of the schema.
  private struct Migration {
    var random: SeededGenerator
    let side: String
    private var names = ["a": "a", "b": "b", "c": "c"]
    private var hasNumbers = true
    private var hasTable = true
    private var count = 0
    private(set) var statements: [String] = []

    static let base =
      [
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT UNIQUE, b TEXT, c)", "CREATE TABLE u(x TEXT, y TEXT)",
        "CREATE TABLE w(id INTEGER PRIMARY KEY, t INTEGER REFERENCES t(id), note TEXT)",
      ]
      + (1...6).flatMap {
        [
          "INSERT INTO t VALUES (\($0), 'a\($0)', '0\($0)', 'c\($0)')", "INSERT INTO u VALUES ('x\($0)', 'y\($0)')",
          "INSERT INTO w VALUES (\($0), \($0), 'n\($0)')",
        ]
      } + ["DELETE FROM u WHERE x = 'x2'"]

    init(_ side: String, _ seed: UInt64) {
      self.side = side
      random = SeededGenerator(seed: seed)
      edit()
      changeSchema()
      edit()
    }

    /// A value in quotes. Some look like numbers, and a column of another type would alter them.
    private mutating func value(_ column: String) -> String {
      count += 1
      return column == "b" ? "'0\(side == "ours" ? 7 : 8)\(count)'" : "'\(side)\(count)'"
    }

    private mutating func edit() {
      for _ in 0..<Int.random(in: 0..<4, using: &random) {
        let column = random.pick(["a", "b", "c"])
        let row = Int.random(in: 1...6, using: &random)
        switch Int.random(in: 0..<5, using: &random) {
        case 0, 1:
          guard hasTable, let name = names[column] else { continue }
          let condition = hasNumbers ? "id = \(row)" : "\(names["c"] ?? "c") = 'c\(row)'"
          statements.append("UPDATE t SET \(name) = \(value(column)) WHERE \(condition)")
        case 2:
          guard hasTable else { continue }
          let columns = names.sorted { $0.key < $1.key }
          let values = columns.map { value($0.key) }
          let id = hasNumbers ? ("id, ", "\(100 + count), ") : ("", "")
          statements.append(
            "INSERT OR IGNORE INTO t(\(id.0)\(columns.map(\.value).joined(separator: ", "))) "
              + "VALUES (\(id.1)\(values.joined(separator: ", ")))")
          if hasNumbers { statements.append("INSERT INTO w(t, note) VALUES (\(id.1)\(value("a")))") }
        case 3: statements.append("UPDATE u SET y = \(value("a")) WHERE x = 'x\(row)'")
        default: statements.append("INSERT INTO u VALUES (\(value("a")), 'new')")
        }
      }
    }

    private mutating func rebuild(_ definition: String, _ columns: String) {
      statements += [
        "CREATE TABLE made(\(definition))", "INSERT INTO made SELECT \(columns) FROM t", "DROP TABLE t",
        "ALTER TABLE made RENAME TO t",
      ]
    }

    private mutating func changeSchema() {
      switch Int.random(in: 0..<11, using: &random) {
      case 0:
        let name = random.pick(["title", "heading"])
        names["a"] = name
        statements.append("ALTER TABLE t RENAME COLUMN a TO \(name)")
      case 1:
        names["b"] = nil
        statements.append("ALTER TABLE t DROP COLUMN b")
      case 2: statements.append("ALTER TABLE t ADD COLUMN extra TEXT DEFAULT 'e'")
      case 3: rebuild("id INTEGER PRIMARY KEY, a TEXT UNIQUE, b INTEGER, c", "id, a, b, c")
      case 4: rebuild("id TEXT PRIMARY KEY, a TEXT UNIQUE, b TEXT, c", "id, a, b, c")
      case 5: rebuild("id INTEGER, a TEXT PRIMARY KEY, b TEXT, c", "id, a, b, c")
      case 6:
        hasNumbers = false
        rebuild("uuid TEXT DEFAULT (hex(randomblob(8))) PRIMARY KEY, a TEXT, b TEXT, c", "hex(randomblob(8)), a, b, c")
      case 7:
        hasTable = false
        statements.append("DROP TABLE t")
      case 8:
        names["b"] = nil
        statements += ["ALTER TABLE t DROP COLUMN b", "ALTER TABLE t ADD COLUMN d TEXT"]
      case 9: statements.append("VACUUM")
      default: break
      }
    }
  }

  /// Every value of a database's rows.
  private static func values(_ path: String) throws -> Set<String> {
    let tables = try TestDatabases.texts(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'buckia%' AND name NOT LIKE 'sqlite%'",
      on: path)
    let rows: [String] = try tables.flatMap { try TestDatabases.texts("SELECT * FROM \($0)", on: path) }
    return Set(rows.flatMap { $0.split(separator: "|").map(String.init) })
  }

  @Test("Each value that a person wrote is in a row or in a conflict")
  func migrations() throws {
    var failed = 0
    let seeds = Seeds.range(150)
    for seed in seeds {
      let folder = try TemporaryFolder()
      let sides = [Migration("ours", seed &* 2), Migration("theirs", seed &* 2 &+ 1)]
      try TestDatabases.run(Migration.base, on: folder.file("base.db"))
      for side in sides {
        _ = try folder.copy("base.db", to: "\(side.side).db")
        for statement in side.statements { try TestDatabases.run(statement, on: folder.file("\(side.side).db")) }
      }
      let before = try Self.values(folder.file("base.db"))
      let written = try sides.flatMap { try Self.values(folder.file("\($0.side).db")).subtracting(before) }
      let out = folder.file("out.db")
      let script = sides.map { "\($0.side): \($0.statements.joined(separator: "; "))" }.joined(separator: "\n")
      do {
        let report = try DatabaseManager(folder.file("ours.db")).merge(
          folder.file("theirs.db"), since: folder.file("base.db"), into: out)
        var kept = try Self.values(out)
        for record in try DatabaseManager(out).conflicts() {
          for case .text(let text) in ((record.local ?? []) + (record.incoming ?? [])).map(\.value) {
            kept.insert(text)
          }
        }
        // Integer keys may change, and ids that a side drew at random are longer. NULL is no value.
        let lost = written.filter {
          !kept.contains($0) && $0 != "NULL" && $0.utf8.count < 12 && ($0.hasPrefix("0") || Int($0) == nil)
        }
        #expect(lost.isEmpty, "\(Seeds.replay(seed)): \(lost)\n\(script)\n\(report)")
      } catch {
        // A refused merge has no result, so nothing is lost.
        #expect(!FileManager.default.fileExists(atPath: out), "\(Seeds.replay(seed)): \(error)")
        failed += 1
      }
    }
    #expect(failed * 10 < seeds.count, "\(failed) merges were refused")
  }
}
