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
    return [
      "version": 1, "id": .text(id?.description), "path": .text(path), "bytes": .number(bytes),
      "tables": .array(tables), "warnings": .array(remarks.map { .string($0.shown) }),
      "remarks": .array(remarks.map(\.json)), "seconds": .real(seconds),
    ]
  }

  /// The report for people.
  func lines(style: Style) -> [String] {
    let first =
      if let path {
        "\(style(path.escaped, .strong))  \(ByteCount(bytes)) in \(Elapsed(seconds))"
      } else {
        "Nothing remains to be changed, so no file was written."
      }
    var table = TextTable(["table", .number("inserted"), .number("updated"), .number("deleted")])
    for entry in tables {
      table.add([
        .init(entry.name.escaped(limit: 60)), .count(entry.inserted, .good), .count(entry.updated, .notable),
        .count(entry.deleted, .bad),
      ])
    }
    return [first] + (table.isEmpty ? [] : [""] + table.lines(style: style))
      + remarks.map(\.shown).remarkLines(style: style)
  }
}
