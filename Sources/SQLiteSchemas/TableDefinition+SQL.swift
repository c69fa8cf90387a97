/// The SQL that makes a table or a column from its definition.
///
/// Every name is quoted, every default is a literal, every type a plain one: nothing that came from a stranger is run
/// as SQL. See <https://sqlite.org/lang_createtable.html> and <https://sqlite.org/lang_altertable.html>.
extension TableDefinition {
  /// The columns of the table's changeset as SQL, in order: the rowid first where the table goes by it.
  public var changesetColumnsSQL: [String] {
    (goesByRowID ? [rowIDName ?? "rowid"] : []) + columns.map { SQLText.identifier($0.name) }
  }

  /// A condition for the rows that have NULL in their key; nil for a table that cannot have any.
  public var hasNullKeySQL: String? {
    let terms = nullableKeyColumns.map { "\(SQLText.identifier($0.name)) IS NULL" }
    return terms.isEmpty ? nil : terms.joined(separator: " OR ")
  }

  /// A CREATE TABLE statement for this table, which has no ``creationRefusal``; CREATE VIRTUAL TABLE for a virtual one.
  ///
  /// - Parameter siblings: The tables created by the same diff; foreign keys to any other table are left out.
  public func createStatement(siblings: Set<TableName>) -> String {
    if let module { return module.createStatement(for: self) }
    var parts = columns.indices.map { columnClause(at: $0) }
    if !inlineKey, !primaryKey.isEmpty {
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

  /// Whether the key is written at its column: only there does INTEGER PRIMARY KEY AUTOINCREMENT exist.
  private var inlineKey: Bool { primaryKey.count == 1 && isAutoIncrement }

  private func names(_ indexes: [Int]) -> String {
    indexes.map { SQLText.identifier(columns[$0].name) }.joined(separator: ", ")
  }

  private func columnClause(at index: Int) -> String {
    let column = columns[index]
    var clause = "\(SQLText.identifier(column.name)) \(column.safeType)"
    if inlineKey, primaryKey[0] == index { clause += " PRIMARY KEY AUTOINCREMENT" }
    if column.isNotNull { clause += " NOT NULL" }
    if let value = column.defaultValue { clause += " DEFAULT \(value.sql)" }
    return clause + column.collationClause
  }
}

extension ColumnDefinition {
  /// The collating sequences every SQLite has.
  public static let knownCollations: Set<String> = ["BINARY", "NOCASE", "RTRIM"]

  /// Whether the collating sequence is one that every SQLite has.
  public var hasKnownCollation: Bool { Self.knownCollations.contains(ASCIIName.uppercased(collation)) }

  fileprivate var collationClause: String {
    let name = ASCIIName.uppercased(collation)
    return name == "BINARY" || !hasKnownCollation ? "" : " COLLATE \(name)"
  }

  /// The value that rows get which are there already when the column is added: a literal, or NULL.
  ///
  /// ALTER TABLE cannot add a column whose default depends on the time, so such a default is left out.
  public var addedValue: LiteralDefault? {
    guard let value = defaultValue, !value.isTimeDependent, !value.isNull else { return nil }
    return value
  }

  /// The clause of this column in ALTER TABLE … ADD COLUMN.
  ///
  /// NOT NULL is kept only with a default that is not NULL: SQLite cannot add such a column otherwise.
  public var addClause: String {
    var clause = "\(SQLText.identifier(name)) \(safeType)"
    if let value = addedValue { clause += (isNotNull ? " NOT NULL" : "") + " DEFAULT \(value.sql)" }
    return clause + collationClause
  }
}
