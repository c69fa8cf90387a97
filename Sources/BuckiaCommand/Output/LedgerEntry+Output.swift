import Buckia

extension LedgerEntry {
  /// The entry as `--json` has it.
  var json: JSONValue {
    [
      "id": .text(id?.description),
      "sender": .string(sender),
      "state": .string(state.rawValue),
      "appliedAt": .string(Moment(unixMilliseconds: recordedAt).rfc3339),
      "inserted": .number(inserted),
      "updated": .number(updated),
      "deleted": .number(deleted),
      "conflicts": .number(conflicts),
      "omitted": .number(omitted),
      "reason": .text(reason),
      "file": .string(file),
      "digest": .string(digest),
    ]
  }
}

extension [LedgerEntry] {
  /// The ledger as `--json` has it.
  var json: JSONValue { ["version": 1, "entries": .array(map(\.json))] }

  /// The ledger for people, the oldest entry first; of many, the newest.
  func lines(style: Style) -> [String] {
    guard !isEmpty else { return ["The ledger is empty: no diff file has arrived yet."] }
    var table = TextTable([
      "when", "state", "diff", .text("sender"), .number("inserted"), .number("updated"), .number("deleted"),
      .number("conflicts"),
    ])
    let shown = suffix(style.listLimit)
    for entry in shown {
      table.add([
        .init("\(Moment(unixMilliseconds: entry.recordedAt))"), .init(entry.state.rawValue, entry.state.role),
        .init(entry.name), .init(entry.sender.escaped(limit: 24), .faint),
        .count(entry.inserted), .count(entry.updated), .count(entry.deleted), .count(entry.conflicts, .notable),
      ])
    }
    var lines = shown.count < count ? [style.rest(count - shown.count, "older file")] : []
    lines += table.lines(style: style, indent: 0)
    for entry in shown {
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
