import Buckia

extension ChangesetReport {
  /// The report for people.
  func lines(style: Style) -> [String] {
    let first =
      if id != nil {
        "\(style(path.map(\.escaped) ?? "standard output", .strong))  \(ByteCount(bytes)) in \(Elapsed(seconds))"
      } else {
        "Nothing remains to be changed, so no file was written."
      }
    var table = TextTable([.text("table"), .number("inserted"), .number("updated"), .number("deleted")])
    for entry in tables.prefix(style.listLimit) {
      table.add([
        .init(entry.name.escaped(limit: 60)), .count(entry.inserted, .good), .count(entry.updated, .notable),
        .count(entry.deleted, .bad),
      ])
    }
    let left = tables.count - style.listLimit
    return style.wrapped(first, hanging: 2) + (table.isEmpty ? [] : [""] + table.lines(style: style))
      + (left > 0 ? [style.rest(left, "table", indent: 2)] : [])
      + (rebase?.lines(style: style) ?? [])
      + remarks.map(\.shown).remarkLines(style: style)
  }
}
