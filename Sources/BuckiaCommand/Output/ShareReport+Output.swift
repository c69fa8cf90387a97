import Buckia

extension ShareReport {
  /// The report as `--json` has it.
  var json: JSONValue {
    [
      "version": 1,
      "id": .text(id?.description),
      "path": .text(path),
      "bytes": .number(bytes),
      "method": .string(DiffMethod.rows.rawValue),
      "snapshot": .bool(isSnapshot),
      "sequence": .number(sequence),
      "dryRun": .bool(isDryRun),
      "tables": .array(tables.map(\.json)),
      "skipped": .array(skipped.map(\.json)),
      "delivered": .array(
        delivered.map { ["id": .string($0.id.description), "path": .text($0.path)] }),
      "incomplete": .bool(isIncomplete),
      "warnings": .array(warnings.map { .string($0.shown) }),
      "remarks": .array(warnings.map(\.json)),
      "seconds": .real(seconds),
    ]
  }

  /// The report for people.
  func lines(style: Style) -> [String] {
    var lines = delivered.map {
      "\($0.path.map(\.escaped) ?? "standard output") was left of an earlier share, and is written now."
    }
    let time = "(\(Elapsed(seconds)))"
    if isIncomplete {
      lines.append("Only this file fits the output. Share again for what has changed since.")
    } else if isDryRun, bytes > 0 {
      lines.append("\(ByteCount(bytes)) would be sent \(time)\(isSnapshot ? ": everything in the scope" : "").")
    } else if id != nil {
      let name = path.map(\.escaped) ?? "standard output"
      lines.append(
        "\(style(name, .strong))  \(ByteCount(bytes)) in \(Elapsed(seconds))\(isSnapshot ? ", everything in the scope" : "")"
      )
    } else {
      lines.append("No changes, so no file \(isDryRun ? "would be" : "was") written \(time).")
    }
    var table = TextTable([
      .text("table"), .number("inserted"), .number("updated"), .number("deleted"), .number("withdrawn"),
    ])
    for entry in tables.prefix(style.listLimit) {
      table.add([
        .init(entry.name.escaped(limit: 60)), .count(entry.inserted, .good), .count(entry.updated, .notable),
        .count(entry.deleted, .bad), .count(entry.withdrawn, .notable),
      ])
    }
    if !table.isEmpty { lines += [""] + table.lines(style: style) }
    if tables.count > style.listLimit { lines.append(style.rest(tables.count - style.listLimit, "table", indent: 2)) }
    if isDryRun { for table in tables { lines += [""] + table.preview(style: style) } }
    lines += skipped.lines(heading: "Does not travel:", style: style)
    if !warnings.isEmpty { lines += [""] + warnings.lines(style: style) }
    return lines
  }
}

extension ShareReport.Table {
  fileprivate var json: JSONValue {
    [
      "name": .string(name), "columns": .array(columns.map { .string($0) }), "inserted": .number(inserted),
      "updated": .number(updated), "deleted": .number(deleted), "withdrawn": .number(withdrawn), "kept": .number(kept),
      "method": .string(DiffMethod.rows.rawValue),
      "changes": .array(changes.map { ["op": .string($0.name), "key": .array($0.key.map(\.json))] }),
    ]
  }

  /// The columns and rows that would leave.
  fileprivate func preview(style: Style) -> [String] {
    let columns = columns.map { $0.escaped(limit: 40) }.joined(separator: ", ")
    var lines = style.wrapped("\(name.escaped(limit: 60)): \(columns)", indent: 0, hanging: 2)
    for change in changes.prefix(style.listLimit) {
      let sign = [ChangeOperation.insert: "+", .update: "~", .delete: "-"][change.operation] ?? " "
      lines.append("  \(sign) \(change.key.map { $0.shown(limit: style.isFull ? .max : 40) }.joined(separator: ", "))")
    }
    let left = changes.count - style.listLimit
    if left > 0 { lines.append(style.rest(left, "row", indent: 2)) }
    return lines
  }
}

extension ShareReport.Change {
  /// What happens to the row, as `--json` has it.
  fileprivate var name: String {
    switch operation {
    case .insert: "insert"
    case .update: "update"
    case .delete: "delete"
    }
  }
}
