import Buckia
import BuckiaReports

extension [LedgerEntry] {
  /// Entries for people, the oldest first.
  ///
  /// - Parameter total: How many entries the ledger has, where these are its newest; nil for as many.
  func lines(style: Style, of total: Int? = nil) -> [String] {
    guard !isEmpty else { return ["The ledger is empty: no diff file has arrived yet."] }
    var table = TextTable([
      "when", "state", "diff", .text("sender"), .number("inserted"), .number("updated"), .number("deleted"),
      .number("conflicts"),
    ])
    for entry in self {
      table.add([
        .init("\(Moment(unixMilliseconds: entry.recordedAt))"), .init(entry.state.rawValue, entry.state.role),
        .init(entry.name), .init(entry.sender.escaped(limit: 24), .faint),
        .count(entry.inserted), .count(entry.updated), .count(entry.deleted), .count(entry.conflicts, .notable),
      ])
    }
    let left = (total ?? count) - count
    var lines = left > 0 ? [style.rest(left, "older file")] : []
    lines += table.lines(style: style, indent: 0)
    for entry in self {
      guard let reason = entry.reason else { continue }
      let state = style(entry.state.rawValue, entry.state.role)
      lines += [""] + style.wrapped("\(style(entry.name, .strong)) \(state): \(reason.escaped)", hanging: 2)
    }
    return lines
  }
}

extension LedgerEntry {
  /// What people call it: its id, else the file it came in.
  fileprivate var name: String { id?.description ?? file.escaped(limit: 40) }
}
