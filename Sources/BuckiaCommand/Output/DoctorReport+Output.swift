import Buckia

extension DoctorReport {
  /// The report for people.
  func lines(style: Style) -> [String] {
    var lines: [String] = []
    if replicates.isEmpty {
      lines.append(style("No table of this database replicates.", .notable))
    } else {
      lines.append(style("\(replicates.count.counted("table")) replicate\(replicates.count == 1 ? "s" : ""):", .good))
      lines += tableLines(style: style)
    }
    lines += skipped.lines(heading: "Does not replicate:", style: style)
    if !warnings.isEmpty { lines += [""] + warnings.lines(style: style) }
    return lines
  }

  /// The tables, or where these are many, what tells rows apart and in which of them.
  private func tableLines(style: Style) -> [String] {
    guard replicates.count > style.listLimit else {
      var table = TextTable([.text("table"), .prose("rows are told apart by")])
      for entry in replicates { table.add([.init(entry.name.escaped(limit: 60)), .init(entry.key.escaped, .faint)]) }
      return table.lines(style: style)
    }
    var list = GroupedList()
    for entry in replicates { list.add(entry.name, "rows are told apart by \(entry.key)") }
    return list.lines("table", style: style)
  }
}
