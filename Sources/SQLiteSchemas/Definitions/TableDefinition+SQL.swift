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

  /// True if the key is a column constraint, which AUTOINCREMENT requires.
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

  /// True if the collating sequence is built in.
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

  /// Why a diff may not create this column; nil when it may.
  package var creationRefusal: String? {
    if name.isEmpty { return "the name is empty" }
    if name.utf8.contains(0) { return "the name contains a NUL" }
    if ["rowid", "oid", "_rowid_"].contains(ASCIIName.folded(name)) {
      return "the name would hide SQLite's own rowid"
    }
    if !hasKnownCollation { return "only its author's program knows the collating sequence \(collation)" }
    return nil
  }

  /// The keywords that cannot be part of a type name. SQLite allows the other ones as names.
  /// See <https://sqlite.org/lang_keywords.html>.
  private static let reservedWords: Set<String> = [
    "ADD", "ALL", "ALTER", "ALWAYS", "AND", "AS", "AUTOINCREMENT", "BETWEEN", "CASE", "CHECK", "COLLATE", "COMMIT",
    "CONSTRAINT", "CREATE", "CROSS", "DEFAULT", "DEFERRABLE", "DELETE", "DISTINCT", "DROP", "ELSE", "ESCAPE", "EXCEPT",
    "EXISTS",
    "FOREIGN", "FROM", "FULL", "GENERATED", "GROUP", "HAVING", "IN", "INDEX", "INDEXED", "INITIALLY", "INNER", "INSERT",
    "INTERSECT", "INTO", "IS", "ISNULL", "JOIN", "LEFT", "LIMIT", "NATURAL", "NOT", "NOTHING", "NOTNULL", "NULL", "ON",
    "OR", "ORDER", "OUTER", "PRIMARY", "REFERENCES", "RETURNING", "RIGHT", "SELECT", "SET", "TABLE", "THEN", "TO",
    "TRANSACTION", "UNION", "UNIQUE", "UPDATE", "USING", "VALUES", "WHEN", "WHERE",
  ]

  /// The longest declared type that is kept, in bytes.
  private static let typeByteLimit = 256

  /// The declared type if it is a plain type name, else the name of its affinity. Safe to insert into SQL.
  ///
  /// A plain type name has words of letters, digits and `_`, and up to two numbers in parentheses
  /// (<https://sqlite.org/syntax/type-name.html>). Anything else could add a constraint to a definition.
  package var safeType: String {
    Self.isPlainTypeName(declaredType) ? declaredType : affinity.rawValue.uppercased()
  }

  private static func isPlainTypeName(_ type: String) -> Bool {
    guard type.utf8.count <= typeByteLimit else { return false }
    var words = type[...]
    if type.last == ")" {
      guard let open = type.firstIndex(of: "(") else { return false }
      let numbers = type[type.index(after: open)...].dropLast().split(separator: ",", omittingEmptySubsequences: false)
      guard (1...2).contains(numbers.count), numbers.allSatisfy(isNumber) else { return false }
      words = type[..<open]
    }
    let names = words.split(whereSeparator: { $0 == " " })
    // Numbers need a name before them. An empty type is valid.
    guard !names.isEmpty || type.isEmpty else { return false }
    return names.allSatisfy { word in
      guard let first = word.utf8.first, !(0x30...0x39).contains(first) else { return false }
      return word.utf8.allSatisfy(isWordByte) && !reservedWords.contains(ASCIIName.uppercased(String(word)))
    }
  }

  private static func isNumber(_ text: Substring) -> Bool {
    let digits = text.utf8.filter { $0 != 0x20 }
    return !digits.isEmpty && digits.count <= 18 && digits.allSatisfy { (0x30...0x39).contains($0) }
  }

  private static func isWordByte(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte) || byte == 0x5f
      || byte >= 0x80
  }
}

/// The rules for tables that a diff creates. Author and receiver check the same rules, so the author learns about a table
/// that the receiver would refuse.
extension TableDefinition {
  /// The most tables that one diff creates.
  package static let newTableLimit = 64
  /// The most columns that one diff adds to a table.
  package static let newColumnLimit = 64
  /// The most columns of a table, the default limit of SQLite (<https://sqlite.org/limits.html#max_column>).
  package static let columnLimit = 2000
  /// The longest name or declared type in a diff, in bytes.
  package static let nameByteLimit = 1024

  /// Why a diff may not create this table; nil when it may.
  package var creationRefusal: String? {
    if let refusal = TableName(name).refusal { return refusal }
    if columns.isEmpty { return "it has no columns" }
    if columns.count > Self.columnLimit { return "it has more than \(Self.columnLimit) columns" }
    // Bytes, because Swift's strings treat composed and decomposed letters as equal and SQLite does not.
    var seen: Set<[UInt8]> = []
    for column in columns {
      if let refusal = column.creationRefusal { return "column \"\(column.name)\": \(refusal)" }
      guard seen.insert(Array(ASCIIName.folded(column.name).utf8)).inserted else {
        return "two columns are named \"\(column.name)\""
      }
    }
    if let refusal = moduleCreationRefusal { return refusal }
    if isWithoutRowID, primaryKey.isEmpty { return "a WITHOUT ROWID table needs a primary key" }
    if isStrict, let column = columns.first(where: { !Self.strictTypes.contains(ASCIIName.folded($0.declaredType)) }) {
      return "column \"\(column.name)\" has a type that STRICT tables do not allow"
    }
    return nil
  }

  private static let strictTypes: Set<String> = ["int", "integer", "real", "text", "blob", "any"]
}
