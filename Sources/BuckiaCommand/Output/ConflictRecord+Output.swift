import Buckia

extension ConflictRecord {
  /// The record as `--json` has it.
  var json: JSONValue {
    [
      "id": .integer(id),
      "diff": .string(diff),
      "table": .string(table),
      "key": Self.json(key),
      "kind": .string(kind.rawValue),
      "outcome": .string(outcome.rawValue),
      "base": Self.json(base),
      "local": Self.json(local),
      "incoming": Self.json(incoming),
      "reason": .text(reason),
    ]
  }

  private static func json(_ cells: [Cell]?) -> JSONValue {
    guard let cells else { return .null }
    var object = JSONObject()
    for cell in cells {
      if let value = cell.value { object.append(cell.column, value.json) }
    }
    return .object(object)
  }

  /// The record for people: what happened, then the three versions side by side, column by column.
  func lines(style: Style) -> [String] {
    let row = key.map { "\($0.column.escaped(limit: 40)) = \($0.value?.shown() ?? "?")" }.joined(separator: ", ")
    var lines = [
      "\(style("#\(id)", .strong))  \(style(table.escaped(limit: 60), .strong)), \(row)",
      "  \(kind.explanation); \(outcome.explanation). \(style("From \(diff.escaped(limit: 64))", .faint))",
    ]
    if let reason { lines.append("  \(style(reason.escaped, .notable))") }
    var table = TextTable(["column", "as its author saw it", "here", "incoming"])
    for column in columns where isWorthShowing(column) {
      table.add([
        .init(column.escaped(limit: 40)), Self.shown(base, column), Self.shown(local, column),
        Self.shown(incoming, column),
      ])
    }
    return lines + table.lines(style: style)
  }

  /// All columns of the three versions, in order.
  private var columns: [String] {
    var columns: [String] = []
    for cell in (local ?? []) + (incoming ?? []) + (base ?? []) where !columns.contains(cell.column) {
      columns.append(cell.column)
    }
    return columns
  }

  /// Whether the versions differ in a column: the others would only hide what it is about.
  private func isWorthShowing(_ column: String) -> Bool {
    let rows = [base, local, incoming].compactMap { $0 }
    let values = rows.compactMap { Self.value(of: column, in: $0) }
    // A row that stands alone is shown whole, but for its key, which stands above.
    guard rows.count > 1 else { return !key.contains { $0.column == column } }
    return values.contains { $0 != values.first }
  }

  private static func value(of column: String, in cells: [Cell]?) -> ChangesetValue? {
    cells?.first { $0.column == column }?.value
  }

  private static func shown(_ cells: [Cell]?, _ column: String) -> TextTable.Cell {
    guard cells != nil else { return .init("no row", .faint) }
    guard let value = value(of: column, in: cells) else { return .init("·", .faint) }
    return .init(value.shown())
  }
}

extension [ConflictRecord] {
  /// The records as `--json` has them.
  var json: JSONValue { ["version": 1, "conflicts": .array(map(\.json))] }
}

extension ConflictKind {
  fileprivate var explanation: String {
    switch self {
    case .data: "The row was changed here, too"
    case .notFound: "The row is not here (any more)"
    case .conflict: "Another row with this key is here already"
    case .constraint: "A constraint of the table refuses the row"
    case .foreignKey: "The row refers to one that is not here as its author means it"
    }
  }
}

extension ConflictOutcome {
  fileprivate var explanation: String {
    switch self {
    case .keptLocal: "what is here stayed"
    case .tookIncoming: "the incoming version was taken"
    case .merged: "columns that both sides changed stayed, the others were taken"
    case .resolved: "the app wrote a row of its own"
    case .omitted: "the change was left out"
    case .reported: "the row stands as it is"
    }
  }
}
