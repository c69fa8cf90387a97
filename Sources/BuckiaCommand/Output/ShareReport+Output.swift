import Buckia

extension ShareReport {
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
      lines += groupLines(style: style)
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
    lines += skipped.lines(heading: "Not in the file:", style: style)
    if !warnings.isEmpty { lines += [""] + warnings.lines(style: style) }
    let held = leftOut.filter { $0.reason == .heldBack }
    if !held.isEmpty {
      lines += ["", "Held back:"] + held.map { $0.line(style: style) }
      lines.append(
        "To send these rows, share with --widen once; to send such rows from now on, too, with --widen always.")
    }
    return lines
  }
}

extension LeftOutRows {
  /// The keys of the rows.
  fileprivate func line(style: Style) -> String {
    let shown = rows.prefix(style.listLimit).map { $0.key.map { "\($0)" }.joined(separator: ", ").escaped(limit: 60) }
    let rest = count > shown.count ? " and \(count - shown.count) more" : ""
    return "  \(table.escaped(limit: 60)): \(shown.joined(separator: "; "))\(rest)"
  }
}

extension ShareReport {
  /// The files behind the first one, and for how many people each is.
  private func groupLines(style: Style) -> [String] {
    guard files.count > 1, let first = files.first else { return [] }
    var lines = [
      "One file can be encrypted for up to 64 people, so there are \(files.count) with the same contents. Each person needs one:"
    ]
    var table = TextTable([.text("file"), .number("people"), .text("from … to")])
    for file in files.prefix(style.listLimit) {
      let names = [file.recipients.first, file.recipients.last].compactMap { $0?.escaped(limit: 24) }
      table.add([
        .init(file == first ? "this one" : file.folderName.escaped(limit: 40)), .count(file.recipients.count),
        .init(names.joined(separator: " … ")),
      ])
    }
    lines += table.lines(style: style)
    if files.count > style.listLimit { lines.append(style.rest(files.count - style.listLimit, "file", indent: 2)) }
    return lines
  }
}

extension ShareReport.Delivery {
  /// The folder that the file is in, without those above it.
  fileprivate var folderName: String {
    (path ?? "").split(separator: "/").dropLast().last.map(String.init) ?? ""
  }
}

extension ShareReport.Table {
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
