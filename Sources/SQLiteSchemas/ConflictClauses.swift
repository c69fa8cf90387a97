/// The ON CONFLICT clauses of the constraints in a CREATE TABLE statement. See <https://sqlite.org/lang_conflict.html>.
package enum ConflictClauses {
  /// Whether a constraint has an ON CONFLICT clause.
  ///
  /// - Parameter sql: The CREATE TABLE statement from `sqlite_schema`. Any other text gives some answer.
  package static func occur(in sql: String) -> Bool {
    let tokens = SQLTokens(sql)
    return tokens.tokens.indices.contains { tokens.isWord("on", at: $0) && tokens.isWord("conflict", at: $0 + 1) }
  }
}
