import BuckiaBytes

/// The SQL that creates a table or a column from its definition.
///
/// Names are quoted, defaults are literals and types are plain type names, so nothing in a diff runs as SQL. See <https://sqlite.org/lang_createtable.html> and <https://sqlite.org/lang_altertable.html>.
extension TableDefinition {
  /// The columns of the table's changeset as SQL, in order: the rowid first if it is the key.
  package var changesetColumnsSQL: [String] {
    (isKeyedByRowID ? [rowIDName ?? "rowid"] : []) + columns.map { SQLText.identifier($0.name) }
  }

  /// The columns of the key as SQL, in key order: the rowid if it is the key.
  package var keySQL: [String] {
    let columns = changesetColumnsSQL
    return keyIndexes.map { columns[$0] }
  }

  /// A condition that selects the rows with NULL in their key; nil when the table cannot have such rows.
  package var hasNullKeySQL: String? {
    let terms = nullableKeyColumns.map { "\(SQLText.identifier($0.name)) IS NULL" }
    return terms.isEmpty ? nil : terms.joined(separator: " OR ")
  }

  /// The CREATE TABLE or CREATE VIRTUAL TABLE statement of a table that has no ``creationRefusal``.
  ///
  /// - Parameter siblings: The tables that the same diff creates. Foreign keys to other tables are left out.
  package func createStatement(siblings: Set<TableName>) -> String {
    if let module { return module.createStatement(for: self) }
    var parts = columns.indices.map { columnClause(at: $0) }
    if !hasInlineKey, !primaryKey.isEmpty {
      parts.append("PRIMARY KEY (\(names(primaryKey)))")
    }
    for constraint in unique { parts.append("UNIQUE (\(names(constraint)))") }
    for key in foreignKeys where siblings.contains(TableName(key.parent)) {
      let own = key.columns.map(SQLText.identifier).joined(separator: ", ")
      let theirs = key.parentColumns.map(SQLText.identifier).joined(separator: ", ")
      parts.append(
        "FOREIGN KEY (\(own)) REFERENCES \(SQLText.identifier(key.parent))\(theirs.isEmpty ? "" : " (\(theirs))")"
          + " ON UPDATE \(key.onUpdate.rawValue) ON DELETE \(key.onDelete.rawValue)")
    }
    let options = [isWithoutRowID ? "WITHOUT ROWID" : nil, isStrict ? "STRICT" : nil].compactMap { $0 }
    return "CREATE TABLE main.\(SQLText.identifier(name)) (\(parts.joined(separator: ", "))) "
      + options.joined(separator: ", ")
  }

  /// Whether the key is a column constraint, which AUTOINCREMENT requires.
  private var hasInlineKey: Bool { primaryKey.count == 1 && isAutoIncrement }

  private func names(_ indexes: [Int]) -> String {
    indexes.map { SQLText.identifier(columns[$0].name) }.joined(separator: ", ")
  }

  private func columnClause(at index: Int) -> String {
    let column = columns[index]
    var clause = "\(SQLText.identifier(column.name)) \(column.safeType)"
    if hasInlineKey, primaryKey[0] == index { clause += " PRIMARY KEY AUTOINCREMENT" }
    if column.isNotNull { clause += " NOT NULL" }
    if let value = column.defaultValue { clause += " DEFAULT \(value.sql)" }
    return clause + column.collationClause
  }
}

extension ColumnDefinition {
  /// The built-in collating sequences of SQLite (<https://sqlite.org/datatype3.html#collation>).
  package static let knownCollations: Set<String> = ["BINARY", "NOCASE", "RTRIM"]

  /// Whether the collating sequence is built in.
  package var hasKnownCollation: Bool { Self.knownCollations.contains(ASCIIName.uppercased(collation)) }

  fileprivate var collationClause: String {
    let name = ASCIIName.uppercased(collation)
    return name == "BINARY" || !hasKnownCollation ? "" : " COLLATE \(name)"
  }

  /// The value that existing rows get when the column is added; nil for NULL.
  ///
  /// ALTER TABLE cannot add a column whose default depends on the time, so such a default is left out.
  package var addedValue: LiteralDefault? {
    guard let value = defaultValue, !value.isTimeDependent, !value.isNull else { return nil }
    return value
  }

  /// The column definition for ALTER TABLE … ADD COLUMN.
  ///
  /// NOT NULL is kept only with a default other than NULL, because SQLite cannot add the column otherwise.
  package var addClause: String {
    var clause = "\(SQLText.identifier(name)) \(safeType)"
    if let value = addedValue { clause += (isNotNull ? " NOT NULL" : "") + " DEFAULT \(value.sql)" }
    return clause + collationClause
  }

  /// The column as its table has it once ``addClause`` has added it.
  package var added: ColumnDefinition {
    ColumnDefinition(
      name: name, declaredType: declaredType, isNotNull: isNotNull && addedValue != nil, defaultValue: addedValue,
      collation: collation)
  }
}
