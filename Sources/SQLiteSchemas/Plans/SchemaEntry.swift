/// One entry of a database's schema.
package struct SchemaEntry: Sendable {
  /// The name as it was created; that of another table for one that stands in for it.
  package let name: TableName
  /// The name under which its rows are.
  package let storedName: String
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

  init(
    name: TableName, storedName: String? = nil, kind: TableKind, isWithoutRowID: Bool, isStrict: Bool, sql: String,
    isNameRepaired: Bool
  ) {
    self.name = name
    self.storedName = storedName ?? name.text
    self.kind = kind
    self.isWithoutRowID = isWithoutRowID
    self.isStrict = isStrict
    self.sql = sql
    self.isNameRepaired = isNameRepaired
  }

  /// The same rows under the name of another table.
  func standing(in name: TableName) -> SchemaEntry {
    SchemaEntry(
      name: name, storedName: storedName, kind: kind, isWithoutRowID: isWithoutRowID, isStrict: isStrict, sql: sql,
      isNameRepaired: isNameRepaired)
  }

  /// Whether another database has the very same definition under this name.
  package func isDefined(like other: SchemaEntry) -> Bool {
    kind == other.kind && !sql.isEmpty && sql.utf8.elementsEqual(other.sql.utf8)
      && name.text.utf8.elementsEqual(other.name.text.utf8)
  }
}
