import BuckiaBytes

extension ColumnDefinition {
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
