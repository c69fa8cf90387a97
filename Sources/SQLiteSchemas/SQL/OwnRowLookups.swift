import BuckiaBytes

/// Tells whether the SQL of a trigger reads some tables at the row that the trigger fires for, and nowhere else:
/// `SELECT title FROM notes WHERE id = new.id`.
///
/// Decided by the tokens, and rather no than yes: what is joined by OR, negated or computed is no such lookup.
package struct OwnRowLookups {
  /// The tables and views.
  private let tables: Set<TableName>
  /// Their keys: each a list of columns, and each column a set of names in lower case.
  private let keys: [[Set<String>]]

  /// - Parameters:
  ///   - tables: The trigger's table, and the views that show its rows.
  ///   - keys: The keys of the trigger's table: each a list of columns, and each column a set of names.
  package init(of tables: Set<TableName>, keys: [[Set<String>]]) {
    self.tables = tables
    self.keys = keys.map { key in key.map { names in Set(names.map(ASCIIName.folded)) } }
  }

  /// True if a statement or an expression reads rows of the tables besides the one that the trigger fires for.
  package func readsOthers(_ sql: String) -> Bool {
    let tokens = SQLTokens(sql)
    let reads = SQLReferences.reads(tokens, 0..<tokens.count)
    // A SELECT, by the place of its keyword, with how often it reads one of the tables.
    var readings: [Int: Int] = [:]
    var names = Set(tables.map { ASCIIName.folded($0.text) })
    for index in tokens.tokens.indices {
      guard let source = SQLReferences.source(in: tokens, at: index, mayBeListed: reads), tables.contains(source)
      else { continue }
      guard let query = Self.query(around: index, tokens) else { return true }
      readings[query, default: 0] += 1
      if let alias = Self.alias(behind: index, tokens) { names.insert(alias) }
    }
    guard !readings.isEmpty else { return false }
    guard tokens.tokens.indices.allSatisfy({ !Self.mayWiden(tokens, at: $0) }) else { return true }
    var comparisons: [Int: [Comparison]] = [:]
    for index in tokens.tokens.indices {
      guard let comparison = Comparison(tokens, at: index), comparison.qualifier.map(names.contains) != false,
        let query = Self.query(around: index, tokens)
      else { continue }
      comparisons[query, default: []].append(comparison)
    }
    return readings.contains { query, count in lookups(in: comparisons[query] ?? []) < count }
  }

  /// True if each row of a view comes from one row of the tables: it joins them with nothing of their own, and gathers none.
  package func showsSingleRows(_ view: String) -> Bool {
    let tokens = SQLTokens(view)
    let gathers = tokens.tokens.indices.contains { index in
      tokens.isAnyWord(["group", "over", "distinct", "limit", "recursive"], at: index)
        || tokens.isAnyWord(Self.aggregates, at: index) && tokens.isMark("(", at: index + 1)
    }
    let reads = SQLReferences.reads(tokens, 0..<tokens.count)
    let readings = tokens.tokens.indices.count { index in
      SQLReferences.source(in: tokens, at: index, mayBeListed: reads).map(tables.contains) == true
    }
    return !gathers && readings <= 1
  }

  private static let aggregates = ["avg", "count", "group_concat", "max", "min", "string_agg", "sum", "total"]

  /// How many lookups by a whole key some comparisons make up.
  private func lookups(in comparisons: [Comparison]) -> Int {
    keys.map { key in
      key.map { names in comparisons.count { names.contains($0.column) && names.contains($0.ownColumn) } }.min() ?? 0
    }.max() ?? 0
  }

  /// The place of the SELECT that a token belongs to; nil when it belongs to none.
  private static func query(around index: Int, _ tokens: SQLTokens) -> Int? {
    var depth = 0
    for place in stride(from: index, through: 0, by: -1) {
      if tokens.isMark(")", at: place) { depth += 1 }
      if tokens.isMark("(", at: place) { depth = max(0, depth - 1) }
      guard depth == 0 else { continue }
      if tokens.isWord("select", at: place) { return place }
    }
    return nil
  }

  private static let conflictPolicies = ["replace", "ignore", "abort", "fail", "rollback"]

  /// True if a word can make a condition hold for more rows than one of its terms does.
  private static func mayWiden(_ tokens: SQLTokens, at index: Int) -> Bool {
    if tokens.isWord("or", at: index) {
      return !tokens.isAnyWord(conflictPolicies, at: index + 1)
    }
    if tokens.isWord("not", at: index) {
      return !tokens.isAnyWord(["null", "exists", "in"], at: index + 1)
    }
    return tokens.isAnyWord(["left", "right", "full", "natural", "union", "except", "recursive"], at: index)
  }

  /// The name by which a query knows the table whose name ends at an index, in lower case; nil when it is the table's.
  private static func alias(behind index: Int, _ tokens: SQLTokens) -> String? {
    var place = index + (tokens.isMark(".", at: index + 1) ? 3 : 1)
    if tokens.isWord("as", at: place) { place += 1 }
    return tokens.name(at: place).map(ASCIIName.folded)
  }
}

/// A term of a condition that compares a column of a table with one of the trigger's row.
private struct Comparison {
  /// The column of the table, and the name in front of it; in lower case.
  let column: String
  let qualifier: String?
  /// The column of the trigger's row, in lower case.
  let ownColumn: String

  /// Nil when no such term begins at the index.
  init?(_ tokens: SQLTokens, at start: Int) {
    guard Self.beginsTerm(tokens, at: start) else { return nil }
    var index = start
    guard let left = Self.operand(tokens, &index), Self.takeEquality(tokens, &index),
      let right = Self.operand(tokens, &index), left.isOwn != right.isOwn, Self.endsTerm(tokens, at: index)
    else { return nil }
    let other = left.isOwn ? right : left
    column = other.column
    qualifier = other.qualifier
    ownColumn = left.isOwn ? left.column : right.column
  }

  private static func beginsTerm(_ tokens: SQLTokens, at index: Int) -> Bool {
    var before = index - 1
    while tokens.isMark("(", at: before) { before -= 1 }
    return tokens.isAnyWord(["where", "and", "on"], at: before)
  }

  private static func endsTerm(_ tokens: SQLTokens, at index: Int) -> Bool {
    guard index < tokens.count, !tokens.isMark(")", at: index), !tokens.isMark(";", at: index) else { return true }
    return tokens.isAnyWord(["and", "where", "group", "order", "limit", "having", "join", "inner", "cross"], at: index)
  }

  private typealias Operand = (qualifier: String?, column: String, isOwn: Bool)

  /// Takes a column, and returns true if it is that of the trigger's row.
  private static func operand(_ tokens: SQLTokens, _ index: inout Int) -> Operand? {
    guard let first = tokens.name(at: index).map(ASCIIName.folded), tokens.tokens[index].kind != .text else {
      return nil
    }
    guard tokens.isMark(".", at: index + 1) else {
      index += 1
      return (nil, first, false)
    }
    guard let column = tokens.name(at: index + 2).map(ASCIIName.folded) else { return nil }
    index += 3
    return (first, column, ["new", "old"].contains(first))
  }

  private static func takeEquality(_ tokens: SQLTokens, _ index: inout Int) -> Bool {
    guard tokens.isMark("=", at: index) || tokens.isWord("is", at: index) else { return false }
    index += tokens.isMark("=", at: index) && tokens.isMark("=", at: index + 1) ? 2 : 1
    return true
  }
}
