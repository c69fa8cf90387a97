import TestSupport

/// A table whose definition follows from a seed, with matching values and statements.
///
/// Keys come from a small set, so that the changes of two people collide.
package struct RandomTable {
  package struct Column {
    package let name: String
    package let type: String
    package var collation = ""
    package var isUnique = false
    package var isNotNull = false
    package var check = ""
    /// The conflict clause of a UNIQUE or NOT NULL: `REPLACE`, `IGNORE`.
    package var onConflict = ""
    /// The values of a column that refers to another table.
    package var pool: [String] = []

    package init(name: String, type: String, collation: String = "", isUnique: Bool = false, pool: [String] = []) {
      self.name = name
      self.type = type
      self.collation = collation
      self.isUnique = isUnique
      self.pool = pool
    }
  }

  package let name: String
  package var columns: [Column] = []
  /// Indexes into `columns`, in key order.
  package var key: [Int] = []
  package var isWithoutRowID = false
  package var isStrict = false
  package var isKeyDescending = false
  package var variant = Variant.plain
  package var values = Values()
  /// Generated columns as SQL, written among the others.
  package var generated: [String] = []
  /// Columns that only the receiver has, as SQL, after the others.
  package var locals: [String] = []
  /// Foreign keys, as SQL.
  package var foreignKeys: [String] = []
  /// Additional indexes as SQL, beside those of constraints.
  package var indexes: [String] = []

  /// The kind of key.
  package enum Variant {
    case plain
    /// No PRIMARY KEY at all.
    case withoutKey
    case autoIncrement
    /// `INTEGER PRIMARY KEY DESC`, which is no rowid: <https://sqlite.org/lang_createtable.html#rowid>.
    case rowIDInName
  }

  /// Choices of values.
  package struct Values {
    /// Different values that SQLite treats as equal: 1 and 1.0, 0.0 and -0.0, a and A under NOCASE.
    package var areLoose = true
    package var areInUTF16 = false
    package var hasNullKeys = false

    package init() {}
  }

  package init(name: String, random: inout SeededGenerator) {
    self.name = name
    isStrict = random.oneIn(5)
    let keyTypes =
      isStrict ? ["INTEGER", "TEXT", "REAL", "BLOB"] : ["INTEGER", "TEXT", "NOCASE", "REAL", "BLOB", "", "INT"]
    let keyCount = random.oneIn(3) ? 2 : 1
    for index in 0..<keyCount {
      let type = random.pick(keyTypes)
      columns.append(
        Column(name: "k\(index)", type: type == "NOCASE" ? "TEXT" : type, collation: type == "NOCASE" ? "NOCASE" : ""))
    }
    let types =
      isStrict ? ["INT", "TEXT", "REAL", "BLOB", "ANY"] : ["", "INTEGER", "TEXT", "REAL", "BLOB", "NUMERIC", "NOCASE"]
    for index in 0..<Int.random(in: 1...4, using: &random) {
      let type = random.pick(types)
      columns.append(
        Column(name: "v \(index)", type: type == "NOCASE" ? "TEXT" : type, collation: type == "NOCASE" ? "NOCASE" : ""))
    }
    columns.shuffle(using: &random)
    key = columns.indices.filter { columns[$0].name.hasPrefix("k") }.shuffled(using: &random)
    isWithoutRowID = random.oneIn(3)
    isKeyDescending = keyCount == 2 && random.oneIn(4)
  }

  /// The same table with constraints that refuse some rows.
  package func constrained(_ random: inout SeededGenerator) -> RandomTable {
    var table = self
    for index in columns.indices where !key.contains(index) {
      if random.oneIn(3) { table.columns[index].isUnique = true }
      if random.oneIn(6) { table.columns[index].isNotNull = true }
      let column = quoted(columns[index].name)
      if random.oneIn(6) { table.columns[index].check = "\(column) IS NULL OR \(column) IS NOT 3" }
    }
    return table
  }

  /// The same table with another kind of key, and other features for comparisons only.
  package func varied(_ values: Values, _ random: inout SeededGenerator) -> RandomTable {
    var table = self
    table.values = values
    if !values.areLoose { for index in columns.indices { table.columns[index].collation = "" } }
    if random.oneIn(4) { table.variant = .withoutKey }
    if key.count == 1, columns[key[0]].type == "INTEGER", random.oneIn(2) {
      table.variant = random.oneIn(2) ? .autoIncrement : .rowIDInName
    }
    if table.variant != .plain { table.isWithoutRowID = false }
    let isRowID = key.count == 1 && columns[key[0]].type == "INTEGER" && table.variant != .rowIDInName
    table.values.hasNullKeys = values.hasNullKeys && !table.isWithoutRowID && !isRowID
    if random.oneIn(4) {
      let type = isStrict ? "TEXT" : ""
      table.generated.append("g \(type) AS (\(quoted(columns[key[0]].name)) || 'x')\(random.oneIn(2) ? " STORED" : "")")
    }
    return table
  }

  /// The names of the columns that only the receiver has, and of its generated ones.
  package var localNames: [String] {
    locals.map { $0.hasPrefix("\"l 2\"") ? "l 2" : "l" } + (generated.isEmpty ? [] : ["g"])
  }

  package var hasUnique: Bool { columns.contains(where: \.isUnique) }
  /// True if the key treats both cases of a letter as equal.
  package var isNoCase: Bool { key.contains { columns[$0].collation == "NOCASE" } }

  package func quoted(_ name: String) -> String { "\"\(name)\"" }

  /// The statement that creates the table, with its columns in a given order.
  ///
  /// - Parameter isTwin: True if a table without a key gets one: its rowid, as column `rid`.
  package func creation(order: [Int]? = nil, isTwin: Bool = false) -> String {
    var parts = (order ?? Array(columns.indices)).map { index -> String in
      let column = columns[index]
      var clause = "\(quoted(column.name)) \(column.type)"
      let onConflict = column.onConflict.isEmpty ? "" : " ON CONFLICT \(column.onConflict)"
      if column.isNotNull { clause += " NOT NULL\(onConflict)" }
      if column.isUnique { clause += " UNIQUE\(onConflict)" }
      if !column.check.isEmpty { clause += " CHECK (\(column.check))" }
      if !column.collation.isEmpty { clause += " COLLATE \(column.collation)" }
      return clause
    }
    parts += locals + generated
    let members = key.map { quoted(columns[$0].name) + (isKeyDescending ? " DESC" : "") }
    switch variant {
    case .plain: parts.append("PRIMARY KEY (\(members.joined(separator: ", ")))")
    case .withoutKey: if isTwin { parts.insert("rid INTEGER PRIMARY KEY", at: 0) }
    case .autoIncrement, .rowIDInName:
      let place = (order ?? Array(columns.indices)).firstIndex(of: key[0]) ?? 0
      parts[place] =
        "\(quoted(columns[key[0]].name)) INTEGER PRIMARY KEY \(variant == .autoIncrement ? "AUTOINCREMENT" : "DESC")"
    }
    parts += foreignKeys
    let options = (isWithoutRowID ? ["WITHOUT ROWID"] : []) + (isStrict ? ["STRICT"] : [])
    return "CREATE TABLE \(quoted(name)) (\(parts.joined(separator: ", "))) \(options.joined(separator: ", "))"
  }

  // MARK: Values

  package func literal(for index: Int, _ random: inout SeededGenerator) -> String {
    let column = columns[index]
    if !column.pool.isEmpty { return !key.contains(index) && random.oneIn(6) ? "NULL" : random.pick(column.pool) }
    if key.contains(index) { return keyLiteral(column, &random) }
    if !random.oneIn(3), column.type.hasPrefix("INT") || column.type.isEmpty || column.type == "NUMERIC" {
      return "\(Int.random(in: 0...5, using: &random))"
    }
    let numbers = ["1", "2", "3", "9223372036854775807", "-9223372036854775808"]
    let reals = ["2.5", "1e300", "9e999", "-9e999"] + (values.areLoose ? ["1.0", "-0.0", "3.0"] : [])
    let texts =
      ["''", "'a'", "'A'", "'b'", "'1'", "'3'", "'ё'", "'a' || char(0) || 'b'", "char(120171)"]
      + (values.areInUTF16 ? [] : ["CAST(x'ff61' AS TEXT)"])
    let blobs = ["x''", "x'00'", "x'31'", "zeroblob(200)"]
    if random.oneIn(6) { return "NULL" }
    guard isStrict else { return random.pick(numbers + reals + texts + blobs) }
    switch column.type {
    case "INT": return random.pick(numbers)
    case "TEXT": return random.pick(texts)
    case "REAL": return random.pick(reals)
    case "BLOB": return random.pick(blobs)
    default: return random.pick(numbers + reals + texts + blobs)
    }
  }

  private func keyLiteral(_ column: Column, _ random: inout SeededGenerator) -> String {
    if values.hasNullKeys, random.oneIn(6) { return "NULL" }
    return random.pick(Self.keyPool(of: column.type))
  }

  /// The values of keys with a type.
  package static func keyPool(of type: String) -> [String] {
    switch type {
    case "INTEGER", "INT": ["1", "2", "3", "4", "-1", "9007199254740993", "-9223372036854775808"]
    case "TEXT": ["'a'", "'A'", "'b'", "''", "'ab'", "'é'"]
    case "REAL": ["1.0", "2.5", "-1.5", "1e300"]
    case "BLOB": ["x''", "x'00'", "x'0000'", "x'61'"]
    default: ["1", "2", "2.5", "'1'", "'a'", "x'31'", "''"]
    }
  }

  // MARK: Statements

  /// One or several statements that change rows; they are never refused, and at worst have no effect.
  package func statement(_ random: inout SeededGenerator) -> String {
    switch Int.random(in: 0..<10, using: &random) {
    case 0...3:
      let names = columns.map { quoted($0.name) }.joined(separator: ", ")
      let values = columns.indices.map { literal(for: $0, &random) }.joined(separator: ", ")
      return "INSERT OR IGNORE INTO \(quoted(name)) (\(names)) VALUES (\(values))"
    case 4...6:
      let others = columns.indices.filter { !key.contains($0) }.shuffled(using: &random)
      let set = others.prefix(Int.random(in: 1...others.count, using: &random)).map {
        "\(quoted(columns[$0].name)) = \(literal(for: $0, &random))"
      }
      return "UPDATE OR IGNORE \(quoted(name)) SET \(set.joined(separator: ", ")) WHERE \(condition(&random))"
    case 7: return "DELETE FROM \(quoted(name)) WHERE \(condition(&random))"
    case 8:
      guard let index = columns.indices.first(where: { !key.contains($0) && columns[$0].type.hasPrefix("INT") }) else {
        return "DELETE FROM \(quoted(name)) WHERE \(condition(&random))"
      }
      // Every number is increased by one, by way of negative ones, so that no two are equal in between.
      let column = quoted(columns[index].name)
      let small = "typeof(\(column)) = 'integer' AND abs(\(column) / 4) < 1000"
      return """
        UPDATE OR IGNORE \(quoted(name)) SET \(column) = -2000 - \(column) WHERE \(small);
        UPDATE OR IGNORE \(quoted(name)) SET \(column) = -1999 - \(column) WHERE \(small)
        """
    default:
      let index = key[Int.random(in: 0..<key.count, using: &random)]
      let value = literal(for: index, &random)
      return
        "UPDATE OR IGNORE \(quoted(name)) SET \(quoted(columns[index].name)) = \(value) WHERE \(condition(&random))"
    }
  }

  private func condition(_ random: inout SeededGenerator) -> String {
    let index = key[Int.random(in: 0..<key.count, using: &random)]
    return "\(quoted(columns[index].name)) \(random.pick(["=", "=", "=", ">"])) \(literal(for: index, &random))"
  }
}
