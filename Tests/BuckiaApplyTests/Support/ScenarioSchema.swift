import SQLiteSchemas
import ReplicationTestSupport
import TestSupport

/// The tables of an author and a receiver whose definitions differ as those of real databases do, made from a seed.
struct ScenarioSchema {
  /// The author's tables.
  private(set) var authors: [RandomTable]
  /// The receiver's tables, with additional constraints, indexes and columns.
  private(set) var receivers: [RandomTable]
  /// Statements that create the author's and the receiver's triggers. The receiver's may be TEMP triggers.
  private(set) var authorTriggers: [String] = []
  private(set) var receiverTriggers: [String] = []
  /// True if the receiver's are TEMP triggers, which fire always.
  let hasTemporaryTriggers: Bool
  /// True if tables refer to each other.
  let hasForeignKeys: Bool
  /// A table that the receiver does not have.
  let missing: String?
  /// The text encodings of the two databases.
  let authorEncoding: String
  let receiverEncoding: String

  init(_ random: inout SeededGenerator) {
    let isInUTF16 = random.oneIn(8)
    authorEncoding = isInUTF16 ? random.pick(["UTF-8", "UTF-16le", "UTF-16be"]) : "UTF-8"
    receiverEncoding = isInUTF16 ? random.pick(["UTF-16le", "UTF-16be"]) : "UTF-8"
    hasForeignKeys = random.oneIn(2)
    let count = hasForeignKeys ? Int.random(in: 1...3, using: &random) : Int.random(in: 1...2, using: &random)
    var plain = (0..<count).map { index in
      var table = RandomTable(name: "t \(index)", random: &random)
      // Tables without a key, and with keys that look like the rowid: one that is not, and one that is.
      if random.oneIn(6) { table = table.varied(RandomTable.Values(), &random) }
      table.generated = []
      table.values.areInUTF16 = isInUTF16
      return table
    }
    let isConstrained = !random.oneIn(3)
    var constrained = isConstrained ? plain.map { $0.constrained(&random) } : plain
    if hasForeignKeys {
      // Referenced columns must be unique on both sides.
      Self.addForeignKeys(to: &constrained, &random)
      plain = constrained
    }
    authors = random.oneIn(2) ? plain : constrained
    receivers = constrained.map { Self.localised($0, &random) }
    missing = !hasForeignKeys && count > 1 && random.oneIn(6) ? plain[1].name : nil
    if random.oneIn(3) { authorTriggers = Self.triggers(on: authors, isTemporary: false, &random) }
    hasTemporaryTriggers = random.oneIn(6)
    if missing == nil, hasTemporaryTriggers || random.oneIn(2) {
      receiverTriggers = Self.triggers(on: receivers, isTemporary: hasTemporaryTriggers, &random)
    }
  }

  // MARK: Foreign keys

  private static func addForeignKeys(to tables: inout [RandomTable], _ random: inout SeededGenerator) {
    for child in tables.indices {
      for number in 0..<Int.random(in: child == 0 ? 0...1 : 1...2, using: &random) {
        let parent = Int.random(in: 0...child, using: &random)
        let target = tables[parent]
        let uniques = target.columns.indices.filter { target.columns[$0].isUnique && target.columns[$0].pool.isEmpty }
        var columns: [Int]
        if random.oneIn(4), let unique = uniques.randomElement(using: &random) {
          columns = [unique]
        } else if target.variant != .withoutKey {
          columns = target.key
        } else {
          continue
        }
        if columns.count > 1, random.oneIn(3) { columns.shuffle(using: &random) }
        var names: [String] = []
        for index in columns {
          let referred = target.columns[index]
          let name = "f\(number)\(names.count)"
          var pool =
            referred.isUnique ? ["0", "1", "2", "3", "4", "5", "'a'", "2.5"] : RandomTable.keyPool(of: referred.type)
          if tables[child].isStrict, referred.isUnique { pool = strictPool(of: referred.type) }
          // Mostly of the parent's type; SQLite converts other types.
          let type = random.oneIn(6) && !tables[child].isStrict ? "" : strictType(referred.type, in: tables[child])
          tables[child].columns.append(
            RandomTable.Column(
              name: name, type: type, collation: random.oneIn(4) ? "NOCASE" : "", isUnique: random.oneIn(8), pool: pool)
          )
          names.append(name)
        }
        let isWholeKey = columns == target.key && target.variant != .withoutKey && random.oneIn(2)
        let referred =
          isWholeKey ? "" : "(\(columns.map { target.quoted(target.columns[$0].name) }.joined(separator: ", ")))"
        var clause = "FOREIGN KEY (\(names.map { target.quoted($0) }.joined(separator: ", "))) REFERENCES "
        clause += "\(target.quoted(target.name))\(referred)"
        let actions = ["NO ACTION", "RESTRICT", "SET NULL", "SET DEFAULT", "CASCADE"]
        if !random.oneIn(5) { clause += " ON DELETE \(random.pick(actions))" }
        if !random.oneIn(5) { clause += " ON UPDATE \(random.pick(actions))" }
        if random.oneIn(3) { clause += " DEFERRABLE INITIALLY DEFERRED" }
        tables[child].foreignKeys.append(clause)
      }
    }
  }

  private static func strictType(_ type: String, in table: RandomTable) -> String {
    table.isStrict && (type.isEmpty || type == "NUMERIC") ? "ANY" : type
  }

  private static func strictPool(of type: String) -> [String] {
    switch type {
    case "TEXT": ["'a'", "'A'", "'b'", "''"]
    case "REAL": ["1.0", "2.5"]
    case "BLOB": ["x''", "x'00'"]
    case "INT", "INTEGER": ["0", "1", "2", "3"]
    default: ["0", "1", "'a'", "2.5"]
    }
  }

  // MARK: Additions at the receiver

  private static func localised(_ original: RandomTable, _ random: inout SeededGenerator) -> RandomTable {
    var table = original
    let others = table.columns.indices.filter { !table.key.contains($0) || table.variant == .withoutKey }
    if random.oneIn(4) {
      let choices = [
        "l TEXT", "l INT DEFAULT 7", "l INT NOT NULL DEFAULT 5", "l TEXT DEFAULT 'd' COLLATE NOCASE", "l INT UNIQUE",
        "l INT NOT NULL", "l REAL CHECK (l IS NULL OR l < 5)",
      ]
      table.locals.append(random.pick(choices))
      if random.oneIn(2) { table.locals.append("\"l 2\" BLOB") }
    }
    if random.oneIn(5), let column = others.randomElement(using: &random) {
      let name = table.quoted(table.columns[column].name)
      let expression = random.pick(["(\(name) || 'x')", "(typeof(\(name)))", "(length(\(name)))", "(\(name) IS NULL)"])
      let isUnique = random.oneIn(3) && expression.contains("'x'")
      let type = table.isStrict ? "ANY" : ""
      table.generated.append(
        "g \(type) AS \(expression)\(random.oneIn(2) ? " STORED" : "")\(isUnique ? " UNIQUE" : "")")
    }
    if random.oneIn(4), let column = others.randomElement(using: &random) {
      let name = table.quoted(table.columns[column].name)
      let second = table.quoted(table.columns[random.oneIn(2) ? column : 0].name)
      let choices = [
        "CREATE UNIQUE INDEX \"u \(table.name)\" ON \(table.quoted(table.name))(\(name)) WHERE \(second) IS NOT NULL",
        // In UTF-16, SQLite 3.40 damages an index over the result of lower() on a blob.
        "CREATE UNIQUE INDEX \"u \(table.name)\" ON \(table.quoted(table.name))"
          + "(\(table.values.areInUTF16 ? "hex" : "lower")(\(name)))",
        "CREATE UNIQUE INDEX \"u \(table.name)\" ON \(table.quoted(table.name))(\(name), \(second))",
        "CREATE UNIQUE INDEX \"u \(table.name)\" ON \(table.quoted(table.name))(\(name) COLLATE NOCASE DESC)",
        "CREATE INDEX \"u \(table.name)\" ON \(table.quoted(table.name))(\(name))",
      ]
      table.indexes.append(random.pick(choices))
      // An index that is not unique, and may be dropped while rows are written.
      table.indexes.append(
        "CREATE INDEX \"n \(table.name)\" ON \(table.quoted(table.name))(\(second) DESC, \(name)) WHERE \(name) IS NOT 7"
      )
    }
    if random.oneIn(6) {
      for index in others where table.columns[index].isUnique || table.columns[index].isNotNull {
        table.columns[index].onConflict = random.pick(["REPLACE", "IGNORE", "FAIL", "ABORT", ""])
      }
    }
    return table
  }

  // MARK: Triggers

  /// The table that triggers write to.
  static let log = "CREATE TABLE log(id INTEGER PRIMARY KEY, what)"

  private static func triggers(
    on tables: [RandomTable], isTemporary: Bool, _ random: inout SeededGenerator
  ) -> [String] {
    var statements: [String] = []
    for number in 0..<Int.random(in: 1...3, using: &random) {
      let table = tables[Int.random(in: 0..<tables.count, using: &random)]
      let other = tables[Int.random(in: 0..<tables.count, using: &random)]
      let column = table.columns[Int.random(in: 0..<table.columns.count, using: &random)]
      let name = table.quoted(column.name)
      let event = random.pick(["INSERT", "UPDATE", "DELETE", "UPDATE OF \(name)"])
      let row = event == "DELETE" ? "OLD" : random.oneIn(3) && event != "INSERT" ? "OLD" : "NEW"
      let value = table.quoted(other.columns[other.columns.count - 1].name)
      let isOther = other.name != table.name
      let bodies = [
        "INSERT INTO log(what) VALUES ('\(event.first ?? "?")\(number) ' || quote(\(row).\(name)))",
        "INSERT INTO log(what) VALUES ('\(event.first ?? "?")\(number) ' || quote(\(row).\(name)))",
        "SELECT RAISE(IGNORE) WHERE \(row).\(name) IN (3, 'b')",
        "SELECT RAISE(\(random.pick(["ABORT", "ABORT", "FAIL"])), 'not this one') WHERE \(row).\(name) IN (2, 'a')",
        isOther
          ? "UPDATE OR IGNORE \(other.quoted(other.name)) SET \(value) = NULL WHERE \(value) IN (1, 'A')"
          : "DELETE FROM log WHERE id % 3 = 1",
        isOther
          ? "DELETE FROM \(other.quoted(other.name)) WHERE \(value) IN (4, 'ab')" : "DELETE FROM log WHERE id % 3 = 2",
      ]
      let time = random.pick(["BEFORE", "AFTER", "AFTER"])
      let schema = isTemporary ? "TEMP TRIGGER \"r \(number)\"" : "TRIGGER \"r \(number)\""
      let target = "\(isTemporary ? "main." : "")\(table.quoted(table.name))"
      statements.append("CREATE \(schema) \(time) \(event) ON \(target) BEGIN \(random.pick(bodies)); END")
    }
    return statements
  }
}
