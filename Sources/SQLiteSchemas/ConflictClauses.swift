/// The ON CONFLICT clauses of a CREATE TABLE statement. See <https://sqlite.org/lang_conflict.html>.
public enum ConflictClauses {
  /// Whether a constraint of the table says ON CONFLICT. Quoted names and comments do not count.
  ///
  /// - Parameter sql: The statement as `sqlite_schema` keeps it. Anything else gives some answer, never a crash.
  public static func occur(in sql: String) -> Bool {
    let tokens = SQLTokens(sql)
    return tokens.tokens.indices.contains { tokens.isWord("on", at: $0) && tokens.isWord("conflict", at: $0 + 1) }
  }
}
