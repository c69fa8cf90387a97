/// A CREATE INDEX statement of `sqlite_schema`, from which an index can be created again with the very same text.
///
/// SQLite keeps the text from the name on and writes `CREATE INDEX` and a space in front of it
/// (<https://sqlite.org/schematab.html>). Where it stands otherwise, something else wrote it.
package struct IndexCreation: Sendable {
  private static let prefix = "CREATE INDEX "

  /// The text behind `CREATE INDEX`, which begins with the name.
  private let rest: String
  /// The text behind the name.
  private let body: String
  /// The names that the statement refers to.
  package let references: SQLReferences

  /// Takes the statement of an index that is not unique.
  ///
  /// - Parameters:
  ///   - sql: The statement.
  ///   - name: The name of the index.
  /// - Returns: nil when SQLite would keep another text for the index, created from this one.
  package init?(_ sql: String, of name: String) {
    let tokens = SQLTokens(sql)
    guard sql.utf8.starts(with: Self.prefix.utf8), tokens.count > 3,
      tokens.tokens[2].range.lowerBound == Self.prefix.utf8.count, tokens.isWord("on", at: 3),
      tokens.name(at: 2).map({ $0.utf8.elementsEqual(name.utf8) }) == true,
      !tokens.tokens.contains(where: { $0.kind == .broken || $0.kind == .parameter }), !tokens.contain(";")
    else { return nil }
    rest = String(decoding: tokens.bytes[Self.prefix.utf8.count...], as: UTF8.self)
    body = String(decoding: tokens.bytes[tokens.tokens[3].range.lowerBound...], as: UTF8.self)
    references = SQLReferences(of: sql)
  }

  /// The statement that creates the index again, in `main` whatever TEMP tables there are.
  package var statement: String { "\(Self.prefix)main.\(rest)" }

  /// The statement with another name: prepared, it tells whether the index can be created while it is still there.
  package func statement(named name: String) -> String {
    "\(Self.prefix)main.\(SQLText.identifier(name)) \(body)"
  }
}

extension SQLTokens {
  fileprivate func contain(_ mark: Unicode.Scalar) -> Bool { tokens.indices.contains { isMark(mark, at: $0) } }
}
