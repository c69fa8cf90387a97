import SQLiteSchemas

/// One entry of a database's schema.
package struct SchemaEntry: Sendable {
  /// The name as it was created.
  package let name: TableName
  /// What it is.
  package let kind: TableKind
  /// Whether it is a WITHOUT ROWID table.
  let isWithoutRowID: Bool
  /// Whether it is a STRICT table.
  let isStrict: Bool
  /// The statement that it was created with.
  package let sql: String
  /// Whether `name` is not the name itself, because that is no valid UTF-8.
  let isNameRepaired: Bool

  /// Whether another database has the very same definition under this name.
  package func isDefined(like other: SchemaEntry) -> Bool {
    kind == other.kind && !sql.isEmpty && sql.utf8.elementsEqual(other.sql.utf8)
      && name.text.utf8.elementsEqual(other.name.text.utf8)
  }
}
