import BuckiaDiff
import SQLiteSchemas
import SQLiteConnections

/// The tables of a database to measure: the largest ones that have a primary key, which SQLite's session extension needs.
struct TableSelection {
  /// How many tables are measured at most.
  private static let limit = 5

  /// A table to measure.
  struct Candidate {
    let definition: TableDefinition
    /// How many rows it has.
    let rows: Int
    /// True if other tables refer to its rows, which must not be deleted then.
    let isReferenced: Bool
  }

  /// The tables to measure, the largest first.
  private(set) var candidates: [Candidate] = []
  /// The others, each with the reason.
  private(set) var leftOut: [SkippedItem] = []

  /// Reads the schema and the sizes of the tables.
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
        tables.append(try schema.definition(of: entry))
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
    for small in candidates.dropFirst(Self.limit) {
      leftOut.append(
        SkippedItem(name: small.definition.name, reason: "\(Self.limit) others have more rows"))
    }
    candidates = Array(candidates.prefix(Self.limit))
  }

  private static func reason(against table: TableDefinition) throws -> String? {
    if let refusal = Replicability.refusal(of: table) { return refusal }
    if table.module != nil { return "it is a virtual table, which SQLite's own calls do not know" }
    if !table.generated.isEmpty { return "it has generated columns, which SQLite's own calls do not know" }
    return table.isKeyedByRowID ? "it has no primary key, without which SQLite's own calls cannot be compared" : nil
  }
}
