import BuckiaBytes

extension TriggerDefinition.Statement {
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
      let isClause = ["where", "from", "returning", "order", "limit"].contains { isWord($0, at: index) }
      if isClause || isMark(",", at: index) { break }
      index += 1
    }
    return min(index, count)
  }

  /// True if an expression gives the present time.
  fileprivate func isTime(_ range: Range<Int>) -> Bool {
    range.contains { index in
      ["current_timestamp", "current_date", "current_time"].contains { isWord($0, at: index) }
        || isMark("(", at: index - 1) && name(at: index).map { ASCIIName.matches($0, "now") } == true
        || isMark(",", at: index - 1) && name(at: index).map { ASCIIName.matches($0, "now") } == true
    }
  }

  /// Whether an expression computes a number from the column itself, or counts rows.
  fileprivate func isCount(of column: String, _ range: Range<Int>) -> Bool {
    let reads = range.contains { name(at: $0).map { ASCIIName.matches($0, column) } ?? false }
    let computes = range.contains { isMark("+", at: $0) || isMark("-", at: $0) }
    let counts = range.contains { index in
      ["count", "sum", "total"].contains { isWord($0, at: index) } && isMark("(", at: index + 1)
    }
    return (reads && computes) || counts
  }
}
