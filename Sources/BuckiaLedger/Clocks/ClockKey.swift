import BuckiaBytes
import SQLiteSchemas

/// The key of a table as the tables of its clock have it: columns `k0`, `k1` … with the affinity and the collation of
/// the table's own, so that the same keys are equal.
package struct ClockKey: Sendable {
  /// The columns of the key in the layout of the table, in the order of the key.
  package let places: [Int]
  private let clauses: [(affinity: Affinity, collation: String)]
  /// Whether the key is a rowid, which its table stores without a column.
  package let isRowID: Bool

  /// The key of a table.
  package init(of table: TableDefinition) {
    places = table.keyIndexes
    guard !table.isKeyedByRowID else {
      clauses = [(.integer, "BINARY")]
      isRowID = true
      return
    }
    clauses = table.primaryKey.map { (table.affinity(at: $0), table.columns[$0].collation) }
    isRowID =
      table.primaryKey.count == 1 && !table.isWithoutRowID
      && ASCIIName.matches(table.columns[table.primaryKey[0]].declaredType, "INTEGER")
  }

  /// Whether keys sort by their bytes, if they are text or blobs.
  package var sortsByBytes: Bool { clauses.allSatisfy { ASCIIName.matches($0.collation, "BINARY") } }
  /// The affinity of each column.
  package var affinities: [Affinity] { clauses.map(\.affinity) }

  /// The definition of the columns: what tells whether a table has another key now.
  package var definition: String { isRowID ? "k0 INTEGER PRIMARY KEY" : columns("k").joined(separator: ", ") }

  /// The names of the columns, with their own first letter.
  package func names(_ letter: String = "k") -> [String] { clauses.indices.map { "\(letter)\($0)" } }

  /// Names or parameters as one value that SQLite compares in the order of the key.
  package static func row(_ names: [String]) -> String {
    names.count == 1 ? names[0] : "(\(names.joined(separator: ", ")))"
  }

  private func columns(_ letter: String) -> [String] {
    clauses.enumerated().map {
      "\(letter)\($0) \($1.affinity.rawValue) COLLATE \(SQLText.identifier($1.collation))"
    }
  }

  /// The statement that makes a table with a row for each key, or for each key and value of another column.
  package func creation(of table: String, keyed other: String? = nil, with others: String) -> String {
    if isRowID { return "CREATE TABLE \(table)(\(definition), \(others))" }
    let key = (names() + (other.map { [$0] } ?? [])).joined(separator: ", ")
    return "CREATE TABLE \(table)(\(definition), \(others), PRIMARY KEY (\(key))) WITHOUT ROWID"
  }

  func runCreation(of table: String) -> String {
    let key = names("f").joined(separator: ", ")
    return """
      CREATE TABLE \(table)(\((columns("f") + columns("l")).joined(separator: ", ")), stamps NOT NULL, PRIMARY KEY (\(key)))
      WITHOUT ROWID
      """
  }

  func pendingCreation(of table: String) -> String {
    let key = (names() + ["stamp"]).joined(separator: ", ")
    return """
      CREATE TABLE main.\(table)(\(columns("k").joined(separator: ", ")), stamp INTEGER NOT NULL,
        is_insert INTEGER NOT NULL, "values" BLOB NOT NULL, PRIMARY KEY (\(key))) WITHOUT ROWID;
      CREATE INDEX main.\(table)_insert ON \(table)(is_insert) WHERE is_insert
      """
  }
}
