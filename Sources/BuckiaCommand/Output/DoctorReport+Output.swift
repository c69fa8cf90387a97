import Buckia

extension DoctorReport {
  /// The report as `--json` has it.
  var json: JSONValue {
    [
      "version": 1,
      "replicates": .array(replicates.map { ["name": .string($0.name), "key": .string($0.key)] }),
      "skipped": .array(skipped.map(\.json)),
      "warnings": .array(warnings.map { .string($0.shown) }),
      "remarks": .array(warnings.map(\.json)),
    ]
  }

  /// The report for people.
  func lines(style: Style) -> [String] {
    var lines: [String] = []
    if replicates.isEmpty {
      lines.append(style("No table of this database replicates.", .notable))
    } else {
      lines.append(style("\(replicates.count.counted("table")) replicate\(replicates.count == 1 ? "s" : ""):", .good))
      var table = TextTable(["table", "rows are told apart by"])
      for entry in replicates { table.add([.init(entry.name.escaped(limit: 60)), .init(entry.key.escaped, .faint)]) }
      lines += table.lines(style: style)
    }
    lines += skipped.lines(heading: "Stays at home:", style: style)
    lines += warnings.map(\.shown).remarkLines(style: style)
    return lines
  }
}
