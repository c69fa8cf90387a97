import SQLiteSchemas

/// How much more the documents of one diff file can hold. Its manifest and its `schema.json` are of limited size, and thousands
/// of tables can change at once (`Schemas/diff-file.md`). What does not fit has to wait for the next diff.
struct DocumentSizeBudget {
  private var manifestBytes = 1 << 20 - 16 << 10
  private var schemaBytes = 16 << 20 - 16 << 10
  private var tables = 10_000

  /// Reserves what a table takes.
  ///
  /// - Returns: false where that is too much.
  mutating func reserve(_ table: TableDefinition) -> Bool {
    // Besides the name there are three numbers and the names of fields.
    let inManifest = 150 + Self.length(table.name)
    let inSchema = Self.schemaLength(table)
    guard tables > 0, inManifest <= manifestBytes, inSchema <= schemaBytes else { return false }
    tables -= 1
    manifestBytes -= inManifest
    schemaBytes -= inSchema
    return true
  }

  /// Reserves what the author's statements take.
  ///
  /// - Returns: false where that is too much.
  mutating func reserve(_ author: AuthorSchema) -> Bool {
    let all = author.statements + author.replaced.map(\.statement)
    let length = all.reduce(40) { count, statement in
      count + 120 + Self.length(statement.name.text) + Self.length(statement.table.text) + Self.length(statement.sql)
    }
    guard length <= schemaBytes, author.statements.count <= AuthorSchema.statementLimit,
      author.replaced.count <= AuthorSchema.statementLimit
    else { return false }
    schemaBytes -= length
    return true
  }

  /// How long a definition is at most.
  private static func schemaLength(_ table: TableDefinition) -> Int {
    var count = 200 + length(table.name) + 6 * table.primaryKey.count
    for column in table.columns {
      count += 80 + length(column.name) + length(column.declaredType) + length(column.collation)
      count += length(column.defaultValue?.sql ?? "")
    }
    for column in table.generated { count += 60 + length(column.name) + length(column.declaredType) }
    for constraint in table.unique { count += 6 + 6 * constraint.count }
    for key in table.foreignKeys {
      count += 130 + length(key.parent)
      for name in key.columns + key.parentColumns { count += 4 + length(name) }
    }
    return count
  }

  /// How long a text is in JSON.
  private static func length(_ text: String) -> Int {
    text.utf8.reduce(0) { $0 + ($1 < 0x20 ? 6 : $1 == 0x22 || $1 == 0x5c ? 2 : 1) }
  }
}
