import BuckiaBytes

/// A parsed CREATE TRIGGER statement. See <https://sqlite.org/lang_createtrigger.html>.
///
/// Its parts are unchanged SQL text, so that statements of the body can be copied into another trigger.
package struct TriggerDefinition: Sendable {
  /// When a trigger fires.
  package enum Timing: String, Sendable {
    case before = "BEFORE"
    case after = "AFTER"
    case insteadOf = "INSTEAD OF"
  }

  /// The operation that fires a trigger.
  package enum Event: String, Sendable {
    case delete = "DELETE"
    case insert = "INSERT"
    case update = "UPDATE"
  }

  /// One statement of the body.
  package struct Statement: Sendable {
    /// The statement without its semicolon.
    package let text: String
    /// The table or view that the statement writes to; nil for a SELECT.
    package let target: TableName?
    /// True if the statement has a conflict clause: `INSERT OR REPLACE`, `REPLACE`, `UPDATE OR IGNORE`.
    package let hasConflictClause: Bool
    /// The names that the statement refers to.
    package let references: SQLReferences
  }

  /// When the trigger fires.
  package let timing: Timing
  /// The operation that fires the trigger.
  package let event: Event
  /// The columns after UPDATE OF; empty when there are none.
  package let columns: [String]
  /// The expression after WHEN; nil when there is none.
  package let condition: String?
  /// The names that the condition refers to.
  package let conditionReferences: SQLReferences
  /// The statements of the body, in order.
  package let statements: [Statement]

  /// Parses a statement.
  ///
  /// - Parameter sql: The statement from `sqlite_schema`.
  /// - Returns: nil when the text is not a CREATE TRIGGER statement.
  package init?(parsing sql: String) {
    let tokens = SQLTokens(sql)
    guard !tokens.tokens.contains(where: { $0.kind == .broken || $0.kind == .parameter }) else { return nil }
    var parser = TriggerParser(tokens: tokens)
    guard parser.skipName(), let timing = parser.timing(), let event = parser.event() else { return nil }
    self.timing = timing
    self.event = event
    columns = event == .update ? parser.updatedColumns() : []
    guard parser.skipTable(), let condition = parser.condition(), let body = parser.body() else { return nil }
    self.condition = condition.isEmpty ? nil : tokens.text(of: condition)
    conditionReferences = SQLReferences(in: tokens, condition)
    statements = body.map { Statement(tokens, $0) }
  }
}

/// Parses the tokens of a CREATE TRIGGER statement.
private struct TriggerParser {
  let tokens: SQLTokens
  private var index = 0

  init(tokens: SQLTokens) { self.tokens = tokens }

  private mutating func take(_ keywords: String...) -> Bool {
    for (offset, keyword) in keywords.enumerated() where !tokens.isWord(keyword, at: index + offset) { return false }
    index += keywords.count
    return true
  }

  /// Takes a name that may be qualified.
  private mutating func takeName() -> Bool {
    guard tokens.name(at: index) != nil else { return false }
    index += 1
    guard tokens.isMark(".", at: index) else { return true }
    index += 1
    guard tokens.name(at: index) != nil else { return false }
    index += 1
    return true
  }

  mutating func skipName() -> Bool {
    guard take("create") else { return false }
    if !take("temp") { _ = take("temporary") }
    guard take("trigger") else { return false }
    _ = take("if", "not", "exists")
    return takeName()
  }

  /// BEFORE is the default.
  mutating func timing() -> TriggerDefinition.Timing? {
    if take("instead", "of") { return .insteadOf }
    if take("after") { return .after }
    _ = take("before")
    return .before
  }

  mutating func event() -> TriggerDefinition.Event? {
    if take("delete") { return .delete }
    if take("insert") { return .insert }
    return take("update") ? .update : nil
  }

  mutating func updatedColumns() -> [String] {
    var columns: [String] = []
    guard take("of") else { return columns }
    while let column = tokens.name(at: index) {
      columns.append(column)
      index += 1
      guard tokens.isMark(",", at: index) else { break }
      index += 1
    }
    return columns
  }

  mutating func skipTable() -> Bool {
    guard take("on"), takeName() else { return false }
    _ = take("for", "each", "row")
    return true
  }

  /// The expression after WHEN; empty when there is none. Nil when no BEGIN follows.
  mutating func condition() -> Range<Int>? {
    guard take("when") else { return index..<index }
    let start = index
    while index < tokens.count {
      // BEGIN can also be the name of a column, after a dot or in parentheses.
      if tokens.isWord("begin", at: index), !tokens.isMark(".", at: index - 1) { return start..<index }
      index = tokens.isMark("(", at: index) ? tokens.closing(index) + 1 : index + 1
    }
    return nil
  }

  /// The statements between BEGIN and END, which are the only ones that contain semicolons.
  mutating func body() -> [Range<Int>]? {
    guard take("begin") else { return nil }
    var end = tokens.count - 1
    if tokens.isMark(";", at: end) { end -= 1 }
    guard end > index, tokens.isWord("end", at: end), tokens.isMark(";", at: end - 1) else { return nil }
    var statements: [Range<Int>] = []
    var start = index
    for place in index..<end where tokens.isMark(";", at: place) {
      if start < place { statements.append(start..<place) }
      start = place + 1
    }
    return statements
  }
}

extension TriggerDefinition.Statement {
  fileprivate init(_ tokens: SQLTokens, _ range: Range<Int>) {
    var index = range.lowerBound
    var hasConflictClause = false
    func skipConflictClause() {
      guard tokens.isWord("or", at: index) else { return }
      hasConflictClause = true
      index += 2
    }
    var isWriting = true
    if tokens.isWord("insert", at: index) {
      index += 1
      skipConflictClause()
      isWriting = tokens.isWord("into", at: index)
      index += 1
    } else if tokens.isWord("replace", at: index) {
      hasConflictClause = true
      isWriting = tokens.isWord("into", at: index + 1)
      index += 2
    } else if tokens.isWord("update", at: index) {
      index += 1
      skipConflictClause()
    } else if tokens.isWord("delete", at: index) {
      isWriting = tokens.isWord("from", at: index + 1)
      index += 2
    } else {
      isWriting = false
    }
    text = tokens.text(of: range)
    target = isWriting && index < range.upperBound ? tokens.name(at: index).map { TableName($0) } : nil
    self.hasConflictClause = hasConflictClause
    references = SQLReferences(in: tokens, range)
  }

  /// The columns that the statement sets to a count: from their own value (`SET n = n + 1`), or from what other rows hold
  /// (`SET n = (SELECT count(*) …)`).
  package var countedColumns: [String] { columns { $0.isCount(of: $1, $2) } }

  /// The columns that the statement sets to the present time.
  package var timedColumns: [String] { columns { tokens, _, range in tokens.isTime(range) } }

  /// The columns that the statement sets to an expression which meets a condition.
  private func columns(where isMet: (SQLTokens, String, Range<Int>) -> Bool) -> [String] {
    let tokens = SQLTokens(text)
    var columns: [String] = []
    var index = 0
    while index < tokens.count {
      if tokens.isMark("(", at: index) {
        index = tokens.closing(index) + 1
        continue
      }
      index += 1
      guard tokens.isWord("set", at: index - 1) else { continue }
      while let column = tokens.name(at: index), tokens.isMark("=", at: index + 1) {
        let start = index + 2
        index = tokens.endOfExpression(from: start)
        if isMet(tokens, column, start..<max(start, index)) { columns.append(column) }
        guard tokens.isMark(",", at: index) else { break }
        index += 1
      }
    }
    return columns
  }
}

extension SQLTokens {
  /// Where the expression that begins at an index ends: at a comma, at the next clause, or with the statement.
  fileprivate func endOfExpression(from start: Int) -> Int {
    var index = start
    while index < count {
      if isMark("(", at: index) {
        index = closing(index) + 1
        continue
      }
      let isClause = isAnyWord(["where", "from", "returning", "order", "limit"], at: index)
      if isClause || isMark(",", at: index) { break }
      index += 1
    }
    return min(index, count)
  }

  /// True if an expression gives the present time.
  fileprivate func isTime(_ range: Range<Int>) -> Bool {
    range.contains { index in
      isAnyWord(["current_timestamp", "current_date", "current_time"], at: index)
        || isMark("(", at: index - 1) && name(at: index).map { ASCIIName.matches($0, "now") } == true
        || isMark(",", at: index - 1) && name(at: index).map { ASCIIName.matches($0, "now") } == true
    }
  }

  /// True if an expression computes a number from the column itself, or counts rows.
  fileprivate func isCount(of column: String, _ range: Range<Int>) -> Bool {
    let reads = range.contains { name(at: $0).map { ASCIIName.matches($0, column) } ?? false }
    let computes = range.contains { isMark("+", at: $0) || isMark("-", at: $0) }
    let counts = range.contains { index in
      isAnyWord(["count", "sum", "total"], at: index) && isMark("(", at: index + 1)
    }
    return (reads && computes) || counts
  }
}
