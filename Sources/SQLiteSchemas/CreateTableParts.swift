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
        let isConstraint = ["constraint", "primary", "unique", "check", "foreign"].contains {
          tokens.isWord($0, at: start)
        }
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

  private func isSame(_ range: Range<Int>, as other: Range<Int>, in tokens: SQLTokens) -> Bool {
    range.count == other.count
      && zip(range, other).allSatisfy { self.tokens.bytes(at: $0).elementsEqual(tokens.bytes(at: $1)) }
  }
}

extension SQLTokens {
  fileprivate func bytes(at index: Int) -> ArraySlice<UInt8> { bytes[tokens[index].range] }
}
