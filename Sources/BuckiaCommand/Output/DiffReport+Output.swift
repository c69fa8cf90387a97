import Buckia

extension DiffReport {
  /// The report for people.
  func lines(style: Style) -> [String] {
    var lines: [String] = []
    if id != nil {
      let name = path.map(\.escaped) ?? "standard output"
      lines.append("\(style(name, .strong))  \(ByteCount(bytes)) in \(Elapsed(seconds))")
    } else if isComplete {
      lines.append("No changes, so no file was written (\(Elapsed(seconds))).")
    } else {
      lines.append("No file was written: what differs does not travel (\(Elapsed(seconds))).")
    }
    var table = TextTable([
      .text("table"), .number("inserted"), .number("updated"), .number("deleted"), "method", .prose(""),
    ])
    for entry in tables.prefix(style.listLimit) {
      table.add([
        .init(entry.name.escaped(limit: 60)), .count(entry.inserted, .good), .count(entry.updated, .notable),
        .count(entry.deleted, .bad), .init(entry.method.rawValue, .faint),
        .init(entry.schemaRemark, .notable),
      ])
    }
    let left = tables.count - style.listLimit
    if tables.count > 1 {
      table.add([
        "in all", .count(tables.reduce(0) { $0 + $1.inserted }), .count(tables.reduce(0) { $0 + $1.updated }),
        .count(tables.reduce(0) { $0 + $1.deleted }),
      ])
    }
    if !table.isEmpty { lines += [""] + table.lines(style: style) }
    if left > 0 { lines.append(style.rest(left, "table", indent: 2)) }
    lines += skipped.lines(heading: "Not in the file:", style: style)
    lines += comparedByRows.lines(heading: "Compared row by row:", style: style)
    if !warnings.isEmpty { lines += [""] + warnings.lines(style: style) }
    if includesSchema, !skipped.isEmpty {
      lines += ["", "Applied with --schema adopt, it brings the whole schema."]
    }
    if let path {
      // Without changes of rows or tables it has nothing for anybody else.
      let option = tables.isEmpty ? " --schema adopt" : ""
      lines += [""] + style.suggestion("Apply it with", "buckia apply DB \(path.shellQuoted)\(option)")
    }
    return lines
  }
}

extension DiffReport.Table {
  /// What of the table itself is new.
  fileprivate var schemaRemark: String {
    if isNew { return "new table" }
    guard !newColumns.isEmpty else { return "" }
    let names = newColumns.map { $0.escaped(limit: 40) }.joined(separator: ", ")
    return "new column\(newColumns.count == 1 ? "" : "s") \(names)"
  }
}

extension [SkippedItem] {
  /// The items for people under a heading, those with equal reasons together; nothing when there are none.
  func lines(heading: String, style: Style) -> [String] {
    guard !isEmpty else { return [] }
    var list = GroupedList()
    for item in self { list.add(item.name, item.reason.shown) }
    return ["", style(heading, .notable)] + list.lines("item", style: style)
  }
}
