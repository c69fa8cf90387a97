import Buckia

/// What a person wants to know before the changes: where a file comes from and how much it does.
struct ShownHeader {
  let path: String
  let file: InspectedFile

  /// What is known of the file, by name.
  ///
  /// - Parameter place: Where the statements of the author's schema are.
  func facts(statementsAt place: String) -> [(name: String, value: String)] {
    var facts: [(name: String, value: String)] = []
    func add(_ name: String, _ value: String) { facts.append((name, value)) }
    add("file", "\(path.escaped) (\(ByteCount(Int(file.byteCount))))")
    if let id = file.id { add("made", "\(Moment(unixSeconds: id.unixSeconds)), id \(id)") }
    if case .object(let manifest)? = file.manifest {
      add("sender", file.sender.escaped)
      if case .object(let sender)? = manifest["sender"], case .string(let replica)? = sender["replica"] {
        // Without a signature anybody can have written it.
        add("replica", "\(file.isSigned ? "" : "claims to be ")\(replica.escaped)")
        if case .string(let incarnation)? = sender["incarnation"] { add("incarnation", incarnation.escaped) }
      }
      if case .string(let dataset)? = manifest["dataset"] { add("dataset", dataset.escaped) }
      if case .string(let kind)? = manifest["kind"] { add("kind", kind.escaped) }
      if let statements = file.statements {
        add("schema", "\(statements.count.counted("statement")) for those who adopt it (\(place))")
      }
    } else {
      let format = file.summary.format == .patchset ? "patchset" : "changeset"
      add("kind", "raw \(format): nothing says who made it, and its columns have no names")
    }
    return facts
  }

  func lines(style: Style) -> [String] {
    var facts = TextTable(["", .prose("")])
    for fact in self.facts(statementsAt: "--json lists them") {
      facts.add([.init(fact.name, .faint), .init(fact.value)])
    }
    var table = TextTable([.text("table"), .number("inserted"), .number("updated"), .number("deleted")])
    for entry in file.summary.tables.prefix(style.listLimit) {
      table.add([
        .init(entry.table.name.escaped(limit: 60)), .count(entry.inserted, .good), .count(entry.updated, .notable),
        .count(entry.deleted, .bad),
      ])
    }
    let left = file.summary.tables.count - style.listLimit
    return facts.lines(style: style, indent: 0) + [""] + (table.isEmpty ? ["No changes."] : table.lines(style: style))
      + (left > 0 ? [style.rest(left, "table", indent: 2)] : [])
  }
}
