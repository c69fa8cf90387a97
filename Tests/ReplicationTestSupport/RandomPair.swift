import BuckiaApply
import SQLiteConnections
import SQLiteSchemas
import TestSupport

/// An older and a newer database, made from a seed.
package struct RandomPair {
  package let folder: TemporaryFolder
  package let older: String
  package let newer: String
  /// True if there are different values that SQLite treats as equal.
  package let isLoose: Bool
  /// The tables of the newer database with the same definition as in the older one.
  package let unaltered: [String]
  /// Dropped tables, and dropped columns as `table.column`.
  package let dropped: [String]

  package init(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    folder = try TemporaryFolder()
    var values = RandomTable.Values()
    values.areLoose = random.oneIn(2)
    values.areInUTF16 = random.oneIn(4)
    values.hasNullKeys = random.oneIn(2)
    isLoose = values.areLoose
    let fast = "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;"
    let encoding = values.areInUTF16 ? random.pick(["UTF-16le", "UTF-16be"]) : "UTF-8"
    let page = random.pick(["512", "1024", "4096", "65536"])
    var tables = (0..<Int.random(in: 1...4, using: &random)).map { index in
      RandomTable(name: "t \(index)", random: &random).constrained(&random).varied(values, &random)
    }

    older = folder.file("older")
    do {
      let connection = try SQLiteConnection(opening: older, as: .create)
      try connection.execute("PRAGMA page_size = \(page); PRAGMA encoding = '\(encoding)'; \(fast) BEGIN")
      for table in tables {
        try connection.execute(table.creation())
        for _ in 0..<Int.random(in: 0...25, using: &random) { try connection.execute(table.statement(&random)) }
      }
      try connection.execute("COMMIT")
    }

    newer = try folder.copy("older", to: "newer")
    let connection = try SQLiteConnection(opening: newer, as: .readWrite)
    try connection.execute("\(fast) BEGIN")
    var altered: Set<String> = []
    var dropped: [String] = []
    for (index, table) in tables.enumerated() {
      if random.oneIn(5) { continue }
      if random.oneIn(8) {
        try connection.execute("DROP TABLE \(table.quoted(table.name))")
        dropped.append(table.name)
        continue
      }
      for _ in 0..<Int.random(in: 0...10, using: &random) { try connection.execute(table.statement(&random)) }
      if random.oneIn(4) {
        altered.insert(table.name)
        let column = Self.newColumn(&random, isStrict: table.isStrict)
        try connection.execute("ALTER TABLE \(table.quoted(table.name)) ADD COLUMN \(column.sql)")
        tables[index].columns.append(RandomTable.Column(name: column.name, type: column.type))
      }
      let droppable = table.columns.indices.dropFirst().filter {
        !table.key.contains($0) && !table.columns[$0].isUnique && !table.columns[$0].isNotNull
          && table.columns[$0].check.isEmpty
      }
      if random.oneIn(8), let column = droppable.randomElement(using: &random), table.columns.count > 2 {
        altered.insert(table.name)
        let name = table.columns[column].name
        try connection.execute("ALTER TABLE \(table.quoted(table.name)) DROP COLUMN \(table.quoted(name))")
        dropped.append("\(table.name).\(name)")
        continue
      }
      // The new column may get values, too.
      for _ in 0..<Int.random(in: 0...4, using: &random) { try connection.execute(tables[index].statement(&random)) }
    }
    if random.oneIn(3) {
      let table = RandomTable(name: "new", random: &random).constrained(&random).varied(values, &random)
      altered.insert(table.name)
      try connection.execute(table.creation())
      for _ in 0..<6 { try connection.execute(table.statement(&random)) }
    }
    try connection.execute("COMMIT")
    self.dropped = dropped
    unaltered = tables.map(\.name).filter { !altered.contains($0) && !dropped.contains($0) }
  }

  private static func newColumn(
    _ random: inout SeededGenerator, isStrict: Bool
  ) -> (name: String, type: String, sql: String) {
    let choices: [(type: String, defaults: [String])] = [
      ("INT", ["5", "-9223372036854775808", "0x10"]), ("TEXT", ["''", "'it''s'", "'5'"]),
      ("REAL", ["1.5", "-0.5", "1e300"]), ("BLOB", ["x''", "x'0001'"]),
    ]
    let loose: [(type: String, defaults: [String])] = [
      ("", ["5", "5.0", "'5'", "x'35'", "-0.0", "9e999", "TRUE", "0xffffffffffffffff", "- 3", "word", "\"word\""]),
      ("INTEGER", ["'5'", "5.0", "'a'", "'0x10'"]), ("TEXT", ["5", "5.5", "x'61'"]), ("REAL", ["5", "'5'", "'x'"]),
      ("NUMERIC", ["'1e3'", "'abc'", "1.0"]), ("TEXT COLLATE NOCASE", ["'A'"]),
    ]
    let all = isStrict ? choices : choices + loose + loose
    let choice = all[Int.random(in: 0..<all.count, using: &random)]
    let name = random.pick(["added", "Ad ded", "ё"])
    var sql = "\"\(name)\" \(choice.type)"
    if !random.oneIn(3) {
      sql += (random.oneIn(2) ? " NOT NULL" : "") + " DEFAULT \(random.pick(choice.defaults))"
    }
    return (name, choice.type.hasPrefix("TEXT") ? "TEXT" : choice.type, sql)
  }

  /// The rows of a table in one database, in the columns of another's, including the rowid if there is no key.
  package func rows(of table: String, in path: String, asIn model: String) throws -> [String] {
    let connection = try SQLiteConnection(opening: path, as: .readOnly)
    var columns = try TestDatabases.texts(
      "SELECT name FROM pragma_table_info(?1)", binding: [table],
      on: SQLiteConnection(opening: model, as: .readOnly))
    let key = "SELECT count(*) FROM pragma_table_info(?1) WHERE pk > 0"
    if try connection.integer(key, binding: [table]) == 0 { columns.append("rowid") }
    return try Rows.lines(of: table, columns: columns, on: connection)
  }
}
