import Buckia

extension InspectedFile.ShownChange {
  /// The change as `--json` has it.
  var json: JSONValue {
    let name =
      switch operation {
      case .insert: "insert"
      case .update: "update"
      case .delete: "delete"
      }
    return [
      "table": .string(table), "op": .string(name), "key": Self.json(key),
      "old": old.map(Self.json) ?? .null, "new": new.map(Self.json) ?? .null,
    ]
  }

  /// Cells the change says nothing of are left out: null would be a value.
  private static func json(_ cells: [Cell]) -> JSONValue {
    .object(JSONObject(cells.compactMap { cell in cell.value.map { JSONObject.Member(cell.column, $0.json) } }))
  }

  /// The change in one line.
  func line(style: Style) -> String {
    switch operation {
    case .insert: "\(style("+", .good)) \(Self.list(new ?? []))"
    case .delete: "\(style("-", .bad)) \(Self.list(key))"
    case .update: "\(style("~", .notable)) \(Self.list(key)): \(edits)"
    }
  }

  private static func list(_ cells: [Cell]) -> String {
    cells.compactMap { cell in cell.value.map { "\(cell.column.escaped(limit: 40)) \($0.shown())" } }
      .joined(separator: ", ")
  }

  /// What an UPDATE sets, with the value before where it is known: a patchset does not tell.
  private var edits: String {
    let edits = zip(new ?? [], old ?? []).compactMap { after, before -> String? in
      guard let value = after.value else { return nil }
      let previous = before.value.map { "\($0.shown()) → " } ?? ""
      return "\(after.column.escaped(limit: 40)) \(previous)\(value.shown())"
    }
    return edits.isEmpty ? "nothing" : edits.joined(separator: ", ")
  }
}
