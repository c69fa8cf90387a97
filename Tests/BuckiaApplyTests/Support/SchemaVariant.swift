import Testing

/// One form of the table `t` in the matrix of schemas: as SQL, and as the facts from which the test derives its
/// expectations.
struct SchemaVariant: Sendable, CustomTestStringConvertible {
  enum Kind { case table, missing, other }

  struct Column: Sendable {
    let name: String
    var type = ""
    /// The default as SQL; nil for none.
    var value: Int?
    var isNotNull = false
    var isGenerated = false
    var isReference = false
    var isUnique = false
    var clause = ""

    var sql: String {
      var parts = [name, type]
      if isNotNull { parts.append("NOT NULL") }
      if let value { parts.append("DEFAULT \(value)") }
      if isGenerated { parts.append("AS (\(clause))") }
      if isReference { parts.append("REFERENCES parent(id)") }
      if isUnique { parts.append("UNIQUE") }
      if !isGenerated { parts.append(clause) }
      return parts.filter { !$0.isEmpty }.joined(separator: " ")
    }
  }

  let name: String
  var kind = Kind.table
  var columns: [Column] = [id, a, b]
  var key = ["id"]
  var isStrict = false
  var isWithoutRowID = false
  var isAutoIncrement = false
  /// Additional objects: indexes, or another object with the table's name.
  var more = ""
  var constraint = ""
  var testDescription: String { name }

  static let id = Column(name: "id", type: "INTEGER")
  static let a = Column(name: "a", type: "TEXT")
  static let b = Column(name: "b", type: "INTEGER")

  /// The columns whose values are replicated.
  var stored: [Column] { columns.filter { !$0.isGenerated } }

  func column(_ name: String) -> Column? { columns.first { $0.name.lowercased() == name.lowercased() } }

  /// The SQL that creates it.
  var sql: String {
    guard kind == .table else { return more }
    var parts = columns.map(\.sql)
    if isAutoIncrement {
      parts[0] += " PRIMARY KEY AUTOINCREMENT"
    } else if !key.isEmpty {
      parts.append("PRIMARY KEY (\(key.joined(separator: ", ")))")
    }
    if !constraint.isEmpty { parts.append(constraint) }
    let options = [isWithoutRowID ? "WITHOUT ROWID" : "", isStrict ? "STRICT" : ""].filter { !$0.isEmpty }
    let table = column("id")?.name == "ID" ? "T" : "t"
    return "CREATE TABLE \(table)(\(parts.joined(separator: ", "))) \(options.joined(separator: ", ")); \(more)"
  }

  private static func with(_ name: String, _ columns: Column...) -> SchemaVariant {
    SchemaVariant(name: name, columns: [id, a, b] + columns)
  }

  private static func b(as type: String) -> SchemaVariant {
    SchemaVariant(name: "b is \(type.isEmpty ? "of no type" : type)", columns: [id, a, Column(name: "b", type: type)])
  }

  /// All forms, the plainest first.
  static let all: [SchemaVariant] = [
    SchemaVariant(name: "plain"),
    with("c", Column(name: "c", type: "TEXT")),
    with("c with a default", Column(name: "c", type: "INTEGER", value: 5)),
    with("c NOT NULL with a default", Column(name: "c", type: "INTEGER", value: 5, isNotNull: true)),
    with("c NOT NULL", Column(name: "c", type: "INTEGER", isNotNull: true)),
    with("c that refers to another table", Column(name: "c", type: "INTEGER", isReference: true)),
    with("c generated", Column(name: "c", type: "INTEGER", isGenerated: true, clause: "b + 1")),
    with("c UNIQUE", Column(name: "c", type: "INTEGER", isUnique: true)),
    with("c NOCASE", Column(name: "c", type: "TEXT", clause: "COLLATE NOCASE")),
    with("c and d", Column(name: "c", type: "TEXT"), Column(name: "d", type: "TEXT")),
    SchemaVariant(name: "reordered", columns: [b, a, id]),
    SchemaVariant(name: "without b", columns: [id, a]),
    SchemaVariant(name: "b is called z", columns: [id, a, Column(name: "z", type: "INTEGER")]),
    b(as: "TEXT"), b(as: "REAL"), b(as: ""), b(as: "NUMERIC"), b(as: "BIGINT"),
    SchemaVariant(name: "the key is a", key: ["a"]),
    SchemaVariant(name: "the key is id and a", key: ["id", "a"]),
    SchemaVariant(name: "the key is a and id", key: ["a", "id"]),
    SchemaVariant(name: "no key", key: []),
    SchemaVariant(name: "a text key", columns: [Column(name: "id", type: "TEXT"), a, b]),
    SchemaVariant(name: "a key that is no rowid", columns: [Column(name: "id", type: "INT"), a, b]),
    SchemaVariant(name: "AUTOINCREMENT", isAutoIncrement: true),
    SchemaVariant(name: "STRICT", isStrict: true),
    SchemaVariant(name: "WITHOUT ROWID", isWithoutRowID: true),
    SchemaVariant(
      name: "upper case",
      columns: [
        Column(name: "ID", type: "integer"), Column(name: "A", type: "text"), Column(name: "B", type: "integer"),
      ],
      key: ["ID"]),
    SchemaVariant(name: "CHECK", constraint: "CHECK (b < 1000)"),
    SchemaVariant(name: "a partial index", more: "CREATE INDEX part ON t(a) WHERE b > 10"),
    SchemaVariant(name: "missing", kind: .missing),
    SchemaVariant(name: "a view", kind: .other, more: "CREATE VIEW t AS SELECT 1 AS id, 'x' AS a, 2 AS b"),
    SchemaVariant(
      name: "a virtual table", kind: .other, more: "CREATE VIRTUAL TABLE t USING fts5(id, a, b, content='')"),
  ]

  // MARK: Values

  enum Value: Equatable, CustomStringConvertible {
    case null
    case integer(Int)
    case real(Double)
    case text(String)

    var description: String {
      switch self {
      case .null: "NULL"
      case .integer(let value): "\(value)"
      case .real(let value): "\(value)"
      case .text(let value): "'\(value)'"
      }
    }

    /// The value as stored in a column of a type. Text is never a number here.
    func stored(as type: String) -> Value {
      switch (self, type.uppercased()) {
      case (.integer(let value), "REAL"): .real(Double(value))
      case (.integer(let value), "TEXT"): .text("\(value)")
      case (.real(let value), "INTEGER"), (.real(let value), "INT"), (.real(let value), "BIGINT"),
        (.real(let value), "NUMERIC"):
        .integer(Int(value))
      case (.real(let value), "TEXT"): .text("\(value)")
      default: self
      }
    }

    func isEqual(to other: Value) -> Bool {
      switch (self, other) {
      case (.integer(let one), .real(let two)), (.real(let two), .integer(let one)): Double(one) == two
      default: self == other
      }
    }
  }

  /// The value of a column in a row of both sides, or in a new row.
  func value(of column: Column, row: Int) -> Value {
    let isNew = row > 4
    let value: Value
    switch column.name.lowercased() {
    case "id": value = column.type == "TEXT" ? .text("k\(row)") : .integer(row)
    case "a": value = .text("a\(row)")
    case "b", "z": value = column.type == "TEXT" ? .text("b\(row)") : .integer(10 * row)
    case "c" where column.type == "TEXT": value = isNew ? .text("c\(row)") : .null
    case "c":
      value = isNew ? .integer(row) : column.value.map { .integer($0) } ?? (column.isNotNull ? .integer(7) : .null)
    default: value = isNew ? .text("d\(row)") : .null
    }
    return value.stored(as: column.type)
  }

  /// The column that the author changes in row 2: one outside the key.
  var changedColumn: Column? { column(key.contains("a") ? "b" : "a") }

  /// The author's value for the changed column.
  var changedValue: Value {
    guard let changedColumn, changedColumn.name.lowercased() == "b" else { return .text("changed") }
    return Value.integer(999).stored(as: changedColumn.type)
  }

  /// The SQL that inserts a row.
  func insertion(of row: Int) -> String {
    let names = stored.map(\.name).joined(separator: ", ")
    return "INSERT INTO t(\(names)) VALUES (\(stored.map { "\(value(of: $0, row: row))" }.joined(separator: ", ")))"
  }
}
