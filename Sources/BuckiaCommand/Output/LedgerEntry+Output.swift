import Buckia
import BuckiaBytes

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
      guard let reason = entry.reason ?? entry.undoes.map({ "undoes \($0)" }) else { continue }
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

extension SentDiff {
  /// The diff as `--json` has it.
  var json: JSONValue {
    [
      "id": .string(id.description), "recipients": .array(recipients.map { .string($0) }),
      "sequence": .integer(sequence), "file": .string(file),
      "madeAt": .string(Moment(unixMilliseconds: madeAt).rfc3339), "delivered": .bool(isDelivered),
    ]
  }
}

extension [SentDiff] {
  /// The diffs for people, the oldest first.
  func lines(style: Style) -> [String] {
    guard !isEmpty else { return ["Nothing was shared from this database yet."] }
    var table = TextTable(["when", .text("to"), .number("number"), "file", .prose("")])
    for diff in self {
      table.add([
        .init("\(Moment(unixMilliseconds: diff.madeAt))"),
        .init(diff.recipients.map { $0.escaped(limit: 40) }.joined(separator: ", ")),
        .count(Int(clamping: diff.sequence)),
        .init(diff.file.escaped(limit: 60)),
        .init(diff.isDelivered ? "" : "not written yet; share again writes it", .notable),
      ])
    }
    return table.lines(style: style, indent: 0)
  }
}
