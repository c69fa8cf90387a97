import Buckia

extension ChangesetReport {
  /// The report as `--json` has it.
  var json: JSONValue {
    let tables = tables.map { table -> JSONValue in
      [
        "name": .string(table.name), "inserted": .number(table.inserted), "updated": .number(table.updated),
        "deleted": .number(table.deleted),
      ]
    }
    let members: [JSONObject.Member] = [
      JSONObject.Member("version", 1), JSONObject.Member("id", .text(id?.description)),
      JSONObject.Member("path", .text(path)), JSONObject.Member("bytes", .number(bytes)),
      JSONObject.Member("tables", .array(tables)),
      JSONObject.Member("warnings", .array(remarks.map { .string($0.shown) })),
      JSONObject.Member("remarks", .array(remarks.map(\.json))), JSONObject.Member("seconds", .real(seconds)),
    ]
    return .object(JSONObject(members + (rebase?.json ?? [])))
  }

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
