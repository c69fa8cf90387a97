import BuckiaDiff
import BuckiaSchemaPlans
import SQLiteConnections
import SQLiteSchemas

/// Which tables of a database can be measured: the largest with a primary key, which SQLite's calls need.
struct TableChoice {
  /// A table that can.
  struct Candidate {
    let definition: TableDefinition
    /// How many rows it has.
    let rows: Int
    /// Whether others refer to its rows: these must not vanish.
    let isReferenced: Bool
  }

  /// The largest tables, the largest first.
  private(set) var candidates: [Candidate] = []
  /// The others, and why.
  private(set) var leftOut: [SkippedItem] = []

  /// Looks at a database.
  ///
  /// - Throws: `SQLiteError` when it cannot be read.
  init(of database: String) throws {
    let connection = try SQLiteConnection(opening: database, as: .readOnly)
    let schema = try SchemaReader(connection)
    var tables: [TableDefinition] = []
    for entry in schema.entries where entry.kind != .view && !Replicability.isOwn(entry.name) && !schema.isInside(entry)
    {
      if let reason = Replicability.refusal(of: entry) {
        leftOut.append(SkippedItem(name: entry.name.text, reason: reason))
      } else {
        tables.append(try schema.definition(of: entry, on: connection))
      }
    }
    let parents = Set(tables.flatMap { $0.foreignKeys.map { TableName($0.parent) } })
    for table in tables {
      if let reason = try Self.reason(against: table) {
        leftOut.append(SkippedItem(name: table.name, reason: reason))
        continue
      }
      let rows = Int(try connection.integer("SELECT count(*) FROM \(SQLText.identifier(table.name))") ?? 0)
      guard rows > 0 else {
        leftOut.append(SkippedItem(name: table.name, reason: "it is empty"))
        continue
      }
      candidates.append(
        Candidate(definition: table, rows: rows, isReferenced: parents.contains(TableName(table.name))))
    }
    candidates.sort { ($1.rows, $0.definition.name) < ($0.rows, $1.definition.name) }
    for small in candidates.dropFirst(OwnDatabase.tableLimit) {
      leftOut.append(
        SkippedItem(name: small.definition.name, reason: "\(OwnDatabase.tableLimit) others have more rows"))
    }
    candidates = Array(candidates.prefix(OwnDatabase.tableLimit))
  }

  private static func reason(against table: TableDefinition) throws -> String? {
    if let refusal = Replicability.refusal(of: table) { return refusal }
    if table.module != nil { return "it is a virtual table, which SQLite's own calls do not know" }
    if !table.generated.isEmpty { return "it has generated columns, which SQLite's own calls do not know" }
    return table.goesByRowID ? "it has no primary key, without which SQLite's own calls cannot be compared" : nil
  }
}
