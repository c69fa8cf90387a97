import Buckia

extension RowOrigin {
  /// The answer as `--json` has it.
  var json: JSONValue {
    [
      "version": 1,
      "table": .string(table),
      "exists": .bool(exists),
      "source": source?.json ?? .null,
      "columns": .array(
        columns.map {
          ["name": .string($0.name), "value": $0.value?.json ?? .null, "source": $0.source?.json ?? .null]
        }),
    ]
  }

  /// The answer for people.
  func lines(style: Style) -> [String] {
    guard exists else {
      guard let source else { return ["There is no such row, and no diff has ever deleted one."] }
      return style.wrapped("The row is not there: \(source.words) has deleted it.")
    }
    var lines: [String] = []
    if let source { lines += style.wrapped("Inserted by \(source.words).") + [""] }
    var list = TextTable(["column", .text("value"), "diff", .text("sender"), "applied"])
    for column in columns {
      let source = column.source
      list.add([
        .init(column.name.escaped(limit: 40)), .init(column.value?.shown(limit: style.isFull ? .max : 24) ?? ""),
        .init(source.map { $0.isClaimed ? "\($0.diff) *" : "\($0.diff)" } ?? "–"),
        .init(source?.sender.escaped(limit: 24) ?? "", .faint),
        .init(source?.appliedAt.map { "\(Moment(unixMilliseconds: $0))" } ?? ""),
      ])
    }
    lines += list.lines(style: style, indent: 0)
    if columns.contains(where: { $0.source == nil }) {
      lines += style.wrapped(
        style("–: no diff that is known here; it was so from the beginning, or was changed here and not sent.", .faint))
    }
    if columns.contains(where: { $0.source?.isClaimed == true }) {
      lines += style.wrapped(
        style("*: the sender says that the change comes from this diff, which did not bring it here itself.", .faint))
    }
    return lines
  }
}

extension RowOrigin.Source {
  fileprivate var json: JSONValue {
    [
      "diff": .string(diff.description),
      "sender": .string(sender),
      "isClaimed": .bool(isClaimed),
      "appliedAt": .text(appliedAt.map { Moment(unixMilliseconds: $0).rfc3339 }),
    ]
  }

  fileprivate var words: String {
    let sender = sender.escaped(limit: 80)
    return isClaimed ? "\(diff) (so \(sender) says)" : "\(diff) (\(sender))"
  }
}
