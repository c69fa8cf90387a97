import SQLiteConnections
import TestSupport

/// An older and a newer database with tables of many pages, made from a seed. Their histories and file layouts differ
/// as much as SQLite allows.
struct RandomFiles {
  let folder: TemporaryFolder
  let older: String
  let newer: String
  /// A connection prevents each log from being checkpointed.
  private let keepers: [Keeper]
  /// The steps taken, for the report of a failure.
  let story: String

  private final class Keeper {
    let connection: SQLiteConnection
    init(_ connection: consuming SQLiteConnection) { self.connection = connection }
  }

  private struct Table {
    let name: String
    let sql: String
    /// SQL for the values of row `n`.
    let values: String
    /// A column to change.
    let column: String
    let key: String
  }

  private static let shapes: [(sql: String, values: String, column: String, key: String)] = [
    ("(id INTEGER PRIMARY KEY, a, b TEXT, c REAL, d BLOB)", "n, n % 7, $text, n / 4.0, $blob", "b", "id"),
    ("(id TEXT PRIMARY KEY, a INT, b REAL)", "'k' || n, n, CASE n % 3 WHEN 0 THEN n ELSE n + 0.5 END", "b", "id"),
    ("(id TEXT PRIMARY KEY COLLATE NOCASE, a)", "CASE n % 2 WHEN 0 THEN 'k' ELSE 'K' END || n, $text", "a", "id"),
    ("(a, b, PRIMARY KEY (a, b))", "CASE WHEN n % 11 = 0 THEN NULL ELSE n END, $text", "b", "a"),
    ("(a INT, b TEXT, c)", "n, $text, $blob", "b", "a"),
    ("(id TEXT PRIMARY KEY, a, b BLOB) WITHOUT ROWID", "'k' || n, n, $blob", "a", "id"),
    ("(a INTEGER, b TEXT, c, PRIMARY KEY (b, a)) WITHOUT ROWID", "n, 'k' || (n % 9), $text", "c", "a"),
    ("(a INTEGER, b TEXT COLLATE NOCASE, c, PRIMARY KEY (b DESC, a)) WITHOUT ROWID", "n, 'kA' || (n % 5), n", "c", "a"),
    ("(a REAL PRIMARY KEY, b TEXT COLLATE RTRIM, c) WITHOUT ROWID", "n * 1.0, $text, n", "c", "a"),
    ("(a TEXT COLLATE RTRIM, b, PRIMARY KEY (a)) WITHOUT ROWID", "n || '  ', $blob", "b", "a"),
    (
      "(id INTEGER PRIMARY KEY, a, v AS (a + 1), b TEXT, s AS (a * 2) STORED, c)", "n, n % 5, $text, n", "c", "id"
    ),
    ("(id INTEGER PRIMARY KEY, a TEXT, b REAL, c ANY) STRICT", "n, $text, n, $blob", "b", "id"),
    ("(id INTEGER PRIMARY KEY DESC, a)", "n, $text", "a", "id"),
    ("(id INTEGER PRIMARY KEY AUTOINCREMENT, a UNIQUE)", "n, n", "a", "id"),
  ]

  init(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    folder = try TemporaryFolder()
    older = folder.file("older")
    newer = folder.file("newer")
    var story: [String] = []
    let page = random.pick(["512", "1024", "4096", "4096", "8192", "65536"])
    let vacuum = random.pick(["0", "0", "1", "2"])
    let usesLog = random.oneIn(3)
    let encoding = random.oneIn(12) ? "UTF-16" : "UTF-8"
    let mode = "PRAGMA journal_mode = \(usesLog ? "WAL" : "DELETE"); PRAGMA synchronous = OFF;"
    let scale = page == "65536" ? 8 : 1
    let tables = (0..<Int.random(in: 1...3, using: &random)).map { index in
      let shape = Self.shapes[Int.random(in: 0..<Self.shapes.count, using: &random)]
      return Table(name: "t\(index)", sql: shape.sql, values: shape.values, column: shape.column, key: shape.key)
    }
    do {
      let connection = try SQLiteConnection(opening: older, as: .create)
      try connection.execute(
        "PRAGMA page_size = \(page); PRAGMA auto_vacuum = \(vacuum); PRAGMA encoding = '\(encoding)'; \(mode)")
      for table in tables {
        try connection.execute("CREATE TABLE \(table.name)\(table.sql)")
        let rows = random.oneIn(6) ? 0 : Int.random(in: 1...600, using: &random) * scale
        try Self.insert(rows, from: 1, into: table, &random, on: connection)
        if random.oneIn(3) { try connection.execute("CREATE INDEX i\(table.name) ON \(table.name)(\(table.column))") }
      }
    }
    _ = try folder.copy("older", to: "newer")
    var keepers: [Keeper] = []
    for path in [newer, older] {
      let connection = try SQLiteConnection(opening: path, as: .readWrite)
      try connection.execute("\(mode) PRAGMA wal_autocheckpoint = \(random.oneIn(2) ? 0 : 4)")
      // Sometimes the older database is changed, too, so that both have separate histories.
      if path == newer || random.oneIn(4) {
        for _ in 0..<Int.random(in: 0...6, using: &random) {
          let step = Self.step(tables, &random)
          // A step that a constraint refuses has no effect.
          do { try connection.execute(step) } catch {}
          story.append("\(path == newer ? "newer" : "older"): \(step)")
        }
      }
      if usesLog { keepers.append(Keeper(connection)) }
    }
    self.keepers = keepers
    self.story =
      "pages of \(page), auto-vacuum \(vacuum), log \(usesLog), \(encoding)\n"
      + tables.map { "CREATE TABLE \($0.name)\($0.sql)" }.joined(separator: "\n") + "\n" + story.joined(separator: "\n")
  }

  private static func insert(
    _ count: Int, from first: Int, into table: Table, _ random: inout SeededGenerator,
    on connection: borrowing SQLiteConnection
  ) throws {
    guard count > 0 else { return }
    try connection.execute(insertion(count, from: first, into: table, &random))
  }

  private static func insertion(
    _ count: Int, from first: Int, into table: Table, _ random: inout SeededGenerator
  ) -> String {
    let length = random.pick(["3", "n % 50", "n % 50", "n % 700", "CASE n % 97 WHEN 0 THEN 9000 ELSE 20 END"])
    let values = table.values
      .replacing("$text", with: "substr('abcdefghij' || printf('%.*c', \(length), 'x'), 1, \(length)) || n")
      .replacing("$blob", with: "CASE n % 4 WHEN 0 THEN NULL ELSE zeroblob(\(length)) END")
    let columns =
      table.sql.contains(" AS (") ? "(id, a, b, c)" : ""
    return """
      WITH s(n) AS (SELECT \(first) UNION ALL SELECT n + 1 FROM s WHERE n < \(first + count - 1))
      INSERT OR IGNORE INTO \(table.name)\(columns) SELECT \(values) FROM s
      """
  }

  /// One change of a database.
  private static func step(_ tables: [Table], _ random: inout SeededGenerator) -> String {
    let table = tables[Int.random(in: 0..<tables.count, using: &random)]
    let (name, column, key) = (table.name, table.column, table.key)
    let few = "rowid % \(Int.random(in: 2...90, using: &random)) = 1"
    let some = table.sql.contains("WITHOUT") ? "length(\(key)) % \(Int.random(in: 2...4, using: &random)) = 1" : few
    switch Int.random(in: 0..<18, using: &random) {
    // Only the last page of a long value changes.
    case 16, 17:
      return "UPDATE \(name) SET \(column) = substr(\(column), 1, length(\(column)) - 1) || 'q' WHERE \(some)"
    case 0, 1: return "UPDATE \(name) SET \(column) = \(column) || 'y' WHERE \(some)"
    case 2: return "UPDATE \(name) SET \(column) = 5 WHERE \(some)"
    case 3: return "UPDATE \(name) SET \(column) = CAST(\(column) AS INT) WHERE \(some)"
    case 4: return "DELETE FROM \(name) WHERE \(some)"
    case 5: return insertion(Int.random(in: 1...300, using: &random), from: 1000, into: table, &random)
    case 6: return insertion(Int.random(in: 1...40, using: &random), from: 200, into: table, &random)
    case 7:
      return "UPDATE \(name) SET \(column) = zeroblob(\(Int.random(in: 1...30_000, using: &random))) WHERE \(some)"
    case 8: return "UPDATE \(name) SET \(column) = replace(\(column), 'x', 'z') WHERE \(some)"
    case 9: return "VACUUM"
    case 10: return "PRAGMA incremental_vacuum(5)"
    case 11: return "CREATE TABLE IF NOT EXISTS other AS SELECT * FROM \(name)"
    case 12: return "DROP TABLE IF EXISTS other"
    case 13:
      return "ALTER TABLE \(name) ADD COLUMN added\(Int.random(in: 0...2, using: &random)) REAL DEFAULT 3"
    case 14: return "BEGIN; DELETE FROM \(name); ROLLBACK; UPDATE \(name) SET \(key) = \(key) WHERE \(some)"
    default: return "UPDATE \(name) SET \(key) = \(key) || 'w' WHERE \(some)"
    }
  }
}
