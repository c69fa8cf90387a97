import Buckia

extension RebaseReport {
  /// The conflicts and new keys, for people.
  func lines(style: Style) -> [String] {
    var lines: [String] = []
    if conflictCount > 0 {
      let verb = policy == .keepLocal ? "the local changes are kept" : "the incoming changes are taken"
      lines += [""] + style.wrapped("\(conflictCount.counted("conflict")), \(verb):")
      for conflict in conflicts.prefix(style.listLimit) {
        lines += style.wrapped(conflict.line(style), indent: 2, hanging: 4)
      }
      let left = conflictCount - min(conflicts.count, style.listLimit)
      if left > 0 { lines.append(style.rest(left, "conflict", indent: 2)) }
    }
    if !remappedKeys.isEmpty {
      lines += [""] + style.wrapped("\(remappedKeys.count.counted("row")) with a new key:")
      for remapped in remappedKeys.prefix(style.listLimit) {
        lines += style.wrapped(
          "\(remapped.table.escaped(limit: 60)) \(remapped.key) → \(remapped.newKey)", indent: 2, hanging: 4)
      }
      let left = remappedKeys.count - style.listLimit
      if left > 0 { lines.append(style.rest(left, "row", indent: 2)) }
    }
    if !remapsKeys, conflicts.contains(where: { $0.kind == .insertedByBoth }) {
      let advice =
        "rows that refer to one which both have inserted mean different rows; --remap gives the local rows keys of their own"
      lines += [advice].remarkLines(style: style)
    }
    return lines
  }
}

extension RebaseReport.Conflict {
  fileprivate func line(_ style: Style) -> String {
    let limit = style.isFull ? Int.max : 40
    let name = key.map { "\($0.column.escaped(limit: 40)) \($0.value.shown(limit: limit))" }.joined(separator: ", ")
    return "\(table.escaped(limit: 60)) \(name): \(sentence)"
  }

  private var sentence: String {
    let names = columns.map { $0.escaped(limit: 40) }.joined(separator: ", ")
    return switch kind {
    case .updatedByBoth: "both set \(names)"
    case .insertedByBoth: "both insert a row with this key"
    case .deletedByLocal: "the local changes delete it, the incoming ones change it"
    case .deletedByIncoming: "the incoming changes delete it, the local ones change it"
    case .unique: "another row has its \(names)"
    case .undecidedUnique: "whether its \(names) are unique, only the database can tell"
    case .differentBase: "the changes were not made from the same state"
    case .parentLeftOut: "the row that its \(names) refers to is left out"
    }
  }
}
