/// One statement of a schema, as `sqlite_schema` holds it: what made a table, an index, a view or a trigger.
/// See <https://sqlite.org/schematab.html>.
package struct SchemaStatement: Hashable, Sendable {
  /// What a statement makes.
  package enum Kind: String, Sendable, CaseIterable {
    case table, index, view, trigger
  }

  /// What it makes.
  package let kind: Kind
  /// The name of what it makes.
  package let name: TableName
  /// The table or view that an index or a trigger belongs to; for others the same as `name`.
  package let table: TableName
  /// The statement, byte for byte.
  package let sql: String

  /// Makes a statement out of the columns of `sqlite_schema`, unchecked: see ``refusal``.
  package init(_ kind: Kind, name: String, table: String, sql: String) {
    self.kind = kind
    self.name = TableName(name)
    self.table = TableName(table)
    self.sql = sql
  }

  /// What tells the objects of a schema apart, whatever made them.
  package struct Identity: Hashable, Sendable {
    let kind: Kind
    let name: TableName
  }

  /// What it makes, whatever the statement.
  package var identity: Identity { Identity(kind: kind, name: name) }

  /// Whether both make the same: their tokens are equal, whatever the white space and the comments between them.
  package func makesTheSame(as other: SchemaStatement) -> Bool {
    guard kind == other.kind, name == other.name, table == other.table else { return false }
    if sql.utf8.elementsEqual(other.sql.utf8) { return true }
    let (tokens, others) = (SQLTokens(sql), SQLTokens(other.sql))
    return tokens.count == others.count && tokens.tokens.indices.allSatisfy { tokens.equals(others, at: $0) }
  }

  /// Whether both differ in white space at most.
  package func equalsIgnoringWhiteSpace(_ other: SchemaStatement) -> Bool {
    guard kind == other.kind, name == other.name, table == other.table else { return false }
    if sql.utf8.elementsEqual(other.sql.utf8) { return true }
    let (tokens, others) = (SQLTokens(sql), SQLTokens(other.sql))
    return tokens.count == others.count && tokens.tokens.indices.allSatisfy { tokens.equals(others, at: $0) }
      && (0...tokens.count).allSatisfy { tokens.comments(before: $0).elementsEqual(others.comments(before: $0)) }
  }

  /// What it makes, for people: `table notes`.
  package var subject: String { "\(kind.rawValue) \(name)" }

  /// Compares the bytes, as SQLite does: to Swift's strings composed and decomposed letters are equal.
  package static func == (first: SchemaStatement, second: SchemaStatement) -> Bool {
    first.kind == second.kind && first.sql.utf8.elementsEqual(second.sql.utf8)
      && first.name.text.utf8.elementsEqual(second.name.text.utf8)
      && first.table.text.utf8.elementsEqual(second.table.text.utf8)
  }

  /// Hashes what `==` compares.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(kind)
    hasher.combine(name)
    hasher.combine(Array(sql.utf8))
  }
}

extension SQLTokens {
  /// Whether two token lists have the same bytes at an index, which must be one of both.
  fileprivate func equals(_ other: SQLTokens, at index: Int) -> Bool {
    bytes[tokens[index].range] == other.bytes[other.tokens[index].range]
  }

  /// The comments between a token and the one before it, without white space; those at the end for the count of tokens.
  fileprivate func comments(before index: Int) -> some Sequence<UInt8> {
    let start = index == 0 ? 0 : tokens[index - 1].range.upperBound
    let end = index == count ? bytes.count : tokens[index].range.lowerBound
    return bytes[start..<end].lazy.filter { !Self.whiteSpace.contains($0) }
  }

  private static var whiteSpace: [UInt8] { [0x20, 0x09, 0x0a, 0x0c, 0x0d] }
}
