import Buckia

/// How many conflicts there are of each kind.
struct ConflictSummary {
  private let counts: [ConflictCount]

  init(_ counts: [ConflictCount]) { self.counts = counts }

  /// How many conflicts there are.
  var total: Int { counts.reduce(0) { $0 + $1.count } }

  /// The numbers as `--json` has them.
  var json: JSONValue { counts.json }

  /// A table of the numbers.
  func lines(style: Style) -> [String] {
    var table = TextTable([.text("table"), "kind", .number("conflicts"), .prose("")])
    for entry in counts.prefix(style.listLimit) {
      table.add([
        .init(entry.table.escaped(limit: 60)), .init(entry.kind.rawValue), .count(entry.count, .notable),
        .init(entry.outcome.explanation, .faint),
      ])
    }
    let left = counts.count - style.listLimit
    return table.lines(style: style) + (left > 0 ? [style.rest(left, "line", indent: 2)] : [])
  }
}
