import Buckia

/// How many conflicts there are of each kind.
struct ConflictSummary {
  /// The conflicts of one table that are alike.
  struct Entry {
    let table: String
    let kind: ConflictKind
    let outcome: ConflictOutcome
    var count: Int
  }

  private(set) var counts: [Entry] = []

  init(_ records: [ConflictRecord]) {
    var places: [String: Int] = [:]
    for record in records {
      let key = "\(record.kind.rawValue) \(record.outcome.rawValue) \(record.table)"
      if let place = places[key] {
        counts[place].count += 1
      } else {
        places[key] = counts.count
        counts.append(Entry(table: record.table, kind: record.kind, outcome: record.outcome, count: 1))
      }
    }
  }

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
