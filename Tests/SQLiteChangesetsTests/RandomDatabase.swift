import SQLiteConnections
import TestSupport

/// A small database in memory whose content and changes follow from a seed.
///
/// Few keys, so that changes collide; keys of all kinds, composite ones out of column order, WITHOUT ROWID, a table
/// with more columns than fit into one byte of length, names with quotes and other scripts.
final class RandomDatabase {
  let connection: SQLiteConnection
  private var random: SeededGenerator
  /// True if 1 and 1.0 appear as keys. SQLite's sessions then write an UPDATE of the key and an INSERT for one row,
  /// which cannot be applied.
  private let hasLooseKeys: Bool

  static let tables: [(name: String, columns: [String], key: [String])] = [
    ("ints", ["id", "a", "b", "c"], ["id"]),
    ("words", ["a", "word", "b"], ["word"]),
    ("pairs", ["x", "v", "y"], ["y", "x"]),
    ("any", ["k", "v"], ["k"]),
    ("blanks \"и\" quotes", ["k", "v"], ["k"]),
    ("wide", (0..<130).map { "c\($0)" }, ["c7"]),
  ]

  /// Creates the database with the content of the seed.
  init(seed: UInt64, hasLooseKeys: Bool = false) throws {
    self.hasLooseKeys = hasLooseKeys
    connection = try SQLiteConnection(opening: ":memory:", as: .create)
    random = SeededGenerator(seed: seed)
    try connection.execute(
      """
      CREATE TABLE ints(id INTEGER PRIMARY KEY, a, b TEXT, c REAL);
      CREATE TABLE words(a, word TEXT PRIMARY KEY, b);
      CREATE TABLE pairs(x INTEGER, v, y TEXT, PRIMARY KEY(y, x)) WITHOUT ROWID;
      CREATE TABLE any(k PRIMARY KEY, v);
      CREATE TABLE "blanks ""и"" quotes"(k BLOB PRIMARY KEY, v);
      CREATE TABLE wide(\((0..<130).map { "c\($0)" + ($0 == 7 ? " INTEGER PRIMARY KEY" : "") }.joined(separator: ",")));
      """)
    for _ in 0..<30 { try insertRow() }
  }

  /// Makes further changes follow from another seed, so that copies of one database diverge.
  func diverge(seed: UInt64) { random = SeededGenerator(seed: seed) }

  /// All rows by table and key, values as text with their types.
  func rows() throws -> [String: [String: [String]]] {
    var found: [String: [String: [String]]] = [:]
    for table in Self.tables {
      let columns = table.columns.map { "typeof(\($0)) || quote(\($0))" }
      let statement = try connection.prepare("SELECT \(columns.joined(separator: ",")) FROM \(quoted(table.name))")
      while try statement.step() {
        let row = table.columns.indices.map { statement.text(at: $0) ?? "" }
        let key = table.columns.indices.filter { table.key.contains(table.columns[$0]) }.map { row[$0] }
        found[table.name, default: [:]][key.joined(separator: "|")] = row
      }
    }
    return found
  }

  /// Adds a trigger that further changes fire occasionally; its changes are indirect.
  func addTrigger() throws {
    try connection.execute(
      """
      CREATE TRIGGER echo AFTER UPDATE OF a ON ints BEGIN
        UPDATE words SET b = new.a WHERE word = 'a';
        INSERT OR IGNORE INTO pairs VALUES(new.id, new.a, 'echo');
      END
      """)
  }

  /// Makes some random changes and returns them as changeset and patchset.
  func changes(_ count: Int) throws -> (changeset: [UInt8], patchset: [UInt8]) {
    let session = try SQLiteSession(on: connection)
    try session.attach()
    for _ in 0..<count {
      switch Int.random(in: 0..<8, using: &random) {
      case 0...2: try insertRow()
      case 3...5: try updateRows()
      case 6: try deleteRows()
      default: try changeKeys()
      }
    }
    return (try session.changeset(), try session.patchset())
  }

  /// All tables as text.
  func content() throws -> String {
    var content = ""
    for table in Self.tables {
      let columns = table.columns.map { "typeof(\($0)) || quote(\($0))" }.joined(separator: " || ',' || ")
      let sql = "SELECT \(columns) FROM \(quoted(table.name)) ORDER BY \(table.key.joined(separator: ","))"
      for line in try [table.name] + TestDatabases.texts(sql, on: connection) { content += line + "\n" }
    }
    return content
  }

  private func quoted(_ name: String) -> String {
    "\"" + name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
  }

  private func insertRow() throws {
    let table = randomTable()
    let values = table.columns.map { table.key.contains($0) ? key(of: table.name, $0) : value() }
    let keyword = Bool.random(using: &random) ? "INSERT OR IGNORE" : "INSERT OR REPLACE"
    try connection.execute("\(keyword) INTO \(quoted(table.name)) VALUES(\(values.joined(separator: ",")))")
  }

  private func updateRows() throws {
    let table = randomTable()
    let columns = table.columns.filter { !table.key.contains($0) }.shuffled(using: &random)
    let sets = columns.prefix(Int.random(in: 1...3, using: &random)).map { "\($0) = \(value())" }
    try connection.execute(
      "UPDATE \(quoted(table.name)) SET \(sets.joined(separator: ",")) WHERE \(condition(table.name, table.key))")
  }

  private func deleteRows() throws {
    let table = randomTable()
    try connection.execute("DELETE FROM \(quoted(table.name)) WHERE \(condition(table.name, table.key))")
  }

  private func changeKeys() throws {
    let table = randomTable()
    let column = table.key[0]
    let new = key(of: table.name, column)
    try connection.execute(
      "UPDATE OR REPLACE \(quoted(table.name)) SET \(column) = \(new) WHERE \(condition(table.name, table.key))")
  }

  private func condition(_ table: String, _ key: [String]) -> String {
    key.map { column in
      let comparison = ["=", "=", "=", "<"][Int.random(in: 0..<4, using: &random)]
      return "\(column) \(comparison) \(self.key(of: table, column))"
    }.joined(separator: " AND ")
  }

  private func randomTable() -> (name: String, columns: [String], key: [String]) {
    // The wide table is slow and shows little, so it is rarely chosen.
    Self.tables[min(Int.random(in: 0..<31, using: &random) / 6, 5)]
  }

  private func key(of table: String, _ column: String) -> String {
    switch (table, column) {
    case ("ints", _), ("wide", _), ("pairs", "x"): "\(Int.random(in: -4...4, using: &random))"
    case ("words", _), ("pairs", "y"):
      ["'a'", "'b'", "'A'", "''", "'ab'", "'é'", "'a common beginning 1'", "'a common beginning 2'"].randomElement(
        using: &random) ?? "'a'"
    default:
      [
        "1", hasLooseKeys ? "1.0" : "3.0", "2", "2.5", "-1", "'1'", "''", "x''", "x'31'", "x'00'", "1e300",
        "9007199254740993",
      ].randomElement(using: &random) ?? "1"
    }
  }

  private func value() -> String {
    [
      "NULL", "0", "1", "1.0", "-7", "0.5", "9223372036854775807", "-9223372036854775808", "1e300", "''", "'text'",
      "'Ω'", "x''", "x'0001ff'", "zeroblob(\(Int.random(in: 0..<300, using: &random)))",
      "hex(zeroblob(\(Int.random(in: 0..<80, using: &random))))",
    ].randomElement(using: &random) ?? "NULL"
  }
}
