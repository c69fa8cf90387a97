import Buckia

extension DiffReport {
  /// The report as `--json` has it.
  var json: JSONValue {
    [
      "version": 1,
      "id": .text(id?.description),
      "path": .text(path),
      "bytes": .number(bytes),
      "method": .string(method?.rawValue ?? "auto"),
      "tables": .array(tables.map(\.json)),
      "skipped": .array(skipped.map(\.json)),
      "comparedByRows": .array(comparedByRows.map(\.json)),
      "warnings": .array(warnings.map { .string($0.shown) }),
      "remarks": .array(warnings.map(\.json)),
      "seconds": .real(seconds),
    ]
  }

  /// The report for people.
  func lines(style: Style) -> [String] {
    var lines: [String] = []
    if let path {
      lines.append("\(style(path.escaped, .strong))  \(ByteCount(bytes)) in \(Elapsed(seconds))")
    } else {
      lines.append("No changes, so no file was written (\(Elapsed(seconds))).")
    }
    var table = TextTable(["table", .number("inserted"), .number("updated"), .number("deleted"), "method", ""])
    for entry in tables {
      table.add([
        .init(entry.name.escaped(limit: 60)), .count(entry.inserted, .good), .count(entry.updated, .notable),
        .count(entry.deleted, .bad), .init(entry.method.rawValue, .faint),
        .init(entry.schemaRemark, .notable),
      ])
    }
    if tables.count > 1 {
      table.add([
        "in all", .count(tables.reduce(0) { $0 + $1.inserted }), .count(tables.reduce(0) { $0 + $1.updated }),
        .count(tables.reduce(0) { $0 + $1.deleted }),
      ])
    }
    if !table.isEmpty { lines += [""] + table.lines(style: style) }
    lines += skipped.lines(heading: "Does not travel:", style: style)
    lines += fallbackLines(style: style)
    lines += warnings.map(\.shown).remarkLines(style: style)
    if let path { lines += ["", "Apply it with: buckia apply DB \(path.shellQuoted)"] }
    return lines
  }
}

extension DiffReport {
  /// Which tables were compared row by row, and why: one line a reason.
  private func fallbackLines(style: Style) -> [String] {
    guard !comparedByRows.isEmpty else { return [] }
    let names = Dictionary(grouping: comparedByRows, by: \.reason.shown).mapValues { $0.map(\.name) }
    var table = TextTable(["", ""])
    var shownReasons: Set<String> = []
    for reason in comparedByRows.map(\.reason.shown) where shownReasons.insert(reason).inserted {
      let tables = names[reason] ?? []
      let shown = tables.prefix(3).map { $0.escaped(limit: 30) }.joined(separator: ", ")
      table.add([
        .init(tables.count > 3 ? "\(shown) and \(tables.count - 3) more" : shown), .init(reason.escaped, .faint),
      ])
    }
    return ["", style("Compared row by row:", .notable)] + table.lines(style: style)
  }
}

extension DiffReport.Table {
  fileprivate var json: JSONValue {
    [
      "name": .string(name), "inserted": .number(inserted), "updated": .number(updated),
      "deleted": .number(deleted), "method": .string(method.rawValue),
      "methodReason": .text(methodReason?.shown), "new": .bool(isNew),
      "newColumns": .array(newColumns.map { .string($0) }),
      "renames": .array(renames.map { ["from": .string($0.oldName), "to": .string($0.newName)] }),
    ]
  }

  /// What of the table itself is new.
  fileprivate var schemaRemark: String {
    if isNew { return "new table" }
    guard !newColumns.isEmpty else { return "" }
    let names = newColumns.map { $0.escaped(limit: 40) }.joined(separator: ", ")
    return "new column\(newColumns.count == 1 ? "" : "s") \(names)"
  }
}

extension SkippedItem {
  /// The item as `--json` has it.
  var json: JSONValue {
    ["name": .string(name), "code": .string(reason.code.rawValue), "reason": .string(reason.shown)]
  }
}

extension [SkippedItem] {
  /// The items for people under a heading; nothing when there are none.
  func lines(heading: String, style: Style) -> [String] {
    guard !isEmpty else { return [] }
    var table = TextTable(["", ""])
    for item in self { table.add([.init(item.name.escaped(limit: 60)), .init(item.reason.shown.escaped, .faint)]) }
    return ["", style(heading, .notable)] + table.lines(style: style)
  }
}

extension [String] {
  /// Remarks for people, one a line; nothing when there are none.
  func remarkLines(style: Style) -> [String] {
    isEmpty ? [] : [""] + map { "\(style("Note:", .notable)) \($0.escaped)" }
  }
}
