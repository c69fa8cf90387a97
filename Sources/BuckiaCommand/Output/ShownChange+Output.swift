import Buckia

extension InspectedFile.ShownChange {
  /// Whether the change has values that are too long to be part of ``json``.
  var hasLongValues: Bool { (key + (old ?? []) + (new ?? [])).contains { $0.whole != nil } }

  /// The change as `--json` has it.
  var json: JSONValue {
    [
      "table": .string(table), "op": .string(operation.word), "key": Self.json(key),
      "old": old.map(Self.json) ?? .null, "new": new.map(Self.json) ?? .null,
    ]
  }

  /// Cells the change says nothing of are left out: null would be a value.
  private static func json(_ cells: [Cell]) -> JSONValue {
    .object(JSONObject(cells.compactMap { cell in cell.value.map { JSONObject.Member(cell.column, $0.json) } }))
  }

  /// The change: in one line, or in several where there is no room for it.
  func lines(style: Style) -> [String] {
    let (sign, pieces): (String, [String]) =
      switch operation {
      case .insert: (style("+", .good), list(new ?? [], style))
      case .delete: (style("-", .bad), list(key, style))
      case .update: (style("~", .notable), updatePieces(style))
      }
    var lines = style.wrapped(pieces: pieces, indent: 4, hanging: 6)
    lines[0] = "  \(sign) \(lines[0].dropFirst(4))"
    return lines
  }

  /// How many characters of a text are shown.
  private func limit(_ style: Style) -> Int { style.isFull ? .max : 40 }

  private func list(_ cells: [Cell], _ style: Style) -> [String] {
    cells.compactMap { cell in
      cell.value.map { "\(cell.column.escaped(limit: 40)) \($0.shown(limit: limit(style), partOf: cell.whole))" }
    }
  }

  /// The key of an UPDATE and what it sets, with the value before where it is known: a patchset does not tell.
  private func updatePieces(_ style: Style) -> [String] {
    var edits = zip(new ?? [], old ?? []).compactMap { after, before -> String? in
      guard let value = after.value else { return nil }
      let room = before.value == nil ? limit(style) : min(limit(style), max(12, (style.width - 20) / 2))
      let versions = before.value.map { [($0, before.whole), (value, after.whole)] } ?? [(value, after.whole)]
      let shown = ChangesetValue.shown(versions, limit: style.isFull ? .max : room)
      return "\(after.column.escaped(limit: 40)) \(shown.joined(separator: " → "))"
    }
    if edits.isEmpty { edits = ["nothing"] }
    var pieces = list(key, style)
    pieces.append("\(pieces.popLast() ?? ""): \(edits[0])")
    return pieces + edits.dropFirst()
  }
}
