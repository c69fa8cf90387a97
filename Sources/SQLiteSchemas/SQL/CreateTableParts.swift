import BuckiaBytes

/// The parts of a CREATE TABLE statement: what stands before its parentheses, its columns, its constraints, and what stands behind.
/// See <https://sqlite.org/lang_createtable.html>.
package struct CreateTableParts {
  private let tokens: SQLTokens
  private let head: Range<Int>
  private let columns: [Range<Int>]
  private let constraints: [Range<Int>]
  private let end: Range<Int>

  /// - Returns: nil when the text is not such a statement.
  package init?(parsing sql: String) {
    let tokens = SQLTokens(sql)
    guard tokens.isWord("create", at: 0), tokens.isWord("table", at: 1), tokens.isMark("(", at: 3) else { return nil }
    let closing = tokens.closing(3)
    guard closing < tokens.count else { return nil }
    self.tokens = tokens
    head = 0..<4
    end = closing..<tokens.count
    var columns: [Range<Int>] = []
    var constraints: [Range<Int>] = []
    var start = 4
    var place = start
    while place <= closing {
      if place == closing || tokens.isMark(",", at: place) {
        let part = start..<place
        let isConstraint = tokens.isAnyWord(["constraint", "primary", "unique", "check", "foreign"], at: start)
        if isConstraint { constraints.append(part) } else { columns.append(part) }
        start = place + 1
      } else if tokens.isMark("(", at: place) {
        place = tokens.closing(place)
      }
      place += 1
    }
    self.columns = columns
    self.constraints = constraints
  }

  /// The definitions of columns that `ALTER TABLE … ADD COLUMN` would have to add to make another statement of this one, in their
  /// order; nil where that is not enough.
  ///
  /// SQLite writes an added column behind the last one, before the constraints.
  package func addedColumns(in other: CreateTableParts) -> [String]? {
    guard other.columns.count > columns.count, constraints.count == other.constraints.count else { return nil }
    let pairs =
      [(head, other.head), (end, other.end)] + zip(columns, other.columns) + zip(constraints, other.constraints)
    guard pairs.allSatisfy({ isSame($0, as: $1, in: other.tokens) }) else { return nil }
    return other.columns.dropFirst(columns.count).map { other.tokens.text(of: $0) }
  }

  /// The columns that may have got another name in another statement of the table: at the same place between those that both have, and
  /// with the same definition otherwise, as `ALTER TABLE … RENAME COLUMN` leaves it.
  package func renamedColumns(in other: CreateTableParts) -> [(old: String, new: String)] {
    let mine = columns.map { (name: tokens.name(at: $0.lowerBound) ?? "", range: $0) }
    let others = other.columns.map { (name: other.tokens.name(at: $0.lowerBound) ?? "", range: $0) }
    var found: [(old: String, new: String)] = []
    var next = 0
    for column in mine {
      if let same = others.firstIndex(where: { ASCIIName.matches($0.name, column.name) }) {
        next = same + 1
        continue
      }
      guard next < others.count else { break }
      let candidate = others[next]
      guard !mine.contains(where: { ASCIIName.matches($0.name, candidate.name) }),
        isSame(column.range.dropFirst(), as: candidate.range.dropFirst(), in: other.tokens)
      else { continue }
      found.append((column.name, candidate.name))
      next += 1
    }
    return found
  }

  /// The definition of a column, from its name on; nil where the statement has none of this name.
  package func definition(ofColumn name: String) -> String? {
    let column = columns.first { column in
      tokens.name(at: column.lowerBound).map { ASCIIName.matches($0, name) } == true
    }
    return column.map { tokens.text(of: $0) }
  }

  /// True if two definitions of a column have the same tokens, whatever the white space and the comments between them.
  package static func isSame(_ definition: String, _ other: String) -> Bool {
    SQLTokens(definition).isEqual(to: SQLTokens(other))
  }

  /// The name in the definition of a column; nil when it does not begin with one.
  package static func name(inColumn definition: String) -> String? { SQLTokens(definition).name(at: 0) }

  /// The statement with more columns behind its last one, where SQLite writes added columns, too.
  ///
  /// - Parameter definitions: The definitions of the columns; at least one.
  package func adding(_ definitions: [String]) -> String? {
    guard let last = columns.last, !last.isEmpty else { return nil }
    let end = tokens.tokens[last.upperBound - 1].range.upperBound
    let added = definitions.map { ", \($0)" }.joined()
    return String(decoding: tokens.bytes[..<end], as: UTF8.self) + added
      + String(decoding: tokens.bytes[end...], as: UTF8.self)
  }

  private func isSame(_ range: Range<Int>, as other: Range<Int>, in tokens: SQLTokens) -> Bool {
    range.count == other.count
      && zip(range, other).allSatisfy { self.tokens.bytes(at: $0).elementsEqual(tokens.bytes(at: $1)) }
  }

  /// The expressions of all CHECK clauses in order, each as a list of tokens without comments and white space.
  ///
  /// CHECK expressions are not replicated. But where they differ, one database can refuse rows of the other, so a diff
  /// reports the difference.
  ///
  /// - Parameter sql: The CREATE TABLE statement from `sqlite_schema`. Any other text gives some list.
  package static func checks(in sql: String) -> [[String]] {
    let tokens = SQLTokens(sql)
    var expressions: [[String]] = []
    var index = 0
    while index < tokens.count {
      guard tokens.isWord("check", at: index), tokens.isMark("(", at: index + 1) else {
        index += 1
        continue
      }
      let end = min(tokens.closing(index + 1) + 1, tokens.count)
      expressions.append((index + 1..<end).map { comparable(tokens, at: $0) })
      index = end
    }
    return expressions
  }

  /// The expression of the CHECK constraint with a name; nil where there is none.
  ///
  /// - Parameters:
  ///   - name: The name.
  ///   - sql: The CREATE TABLE statement from `sqlite_schema`.
  package static func check(named name: String, in sql: String) -> String? {
    let tokens = SQLTokens(sql)
    for index in tokens.tokens.indices
    where tokens.isWord("constraint", at: index) && tokens.isWord("check", at: index + 2)
      && tokens.isMark("(", at: index + 3)
    {
      guard tokens.name(at: index + 1).map({ $0.utf8.elementsEqual(name.utf8) }) == true else { continue }
      let end = tokens.closing(index + 3)
      guard end < tokens.count else { return nil }
      return tokens.text(of: (index + 4)..<end)
    }
    return nil
  }

  /// The text of a token, in lower case if it is a word.
  private static func comparable(_ tokens: SQLTokens, at index: Int) -> String {
    let text = tokens.text(at: index)
    return tokens.tokens[index].kind == .word ? ASCIIName.folded(text) : text
  }

  /// True if a constraint has an ON CONFLICT clause. See <https://sqlite.org/lang_conflict.html>.
  ///
  /// - Parameter sql: The CREATE TABLE statement from `sqlite_schema`. Any other text gives some answer.
  package static func hasConflictClause(in sql: String) -> Bool {
    let tokens = SQLTokens(sql)
    return tokens.tokens.indices.contains { tokens.isWord("on", at: $0) && tokens.isWord("conflict", at: $0 + 1) }
  }
}
