import BuckiaDiffFiles
import SQLiteChangesets

/// One change of one row, copied out for people and programs.
struct RowChange {
  /// A column and its value.
  typealias Cell = (column: String, value: ChangesetValue)

  let table: String
  let operation: ChangeOperation
  /// The columns that tell the row apart.
  let key: [Cell]
  /// What its author saw; nil for an INSERT.
  let old: [Cell]?
  /// What its author wants; nil for a DELETE.
  let new: [Cell]?

  /// Copies the change a reader has just read.
  init(_ change: Change, of reader: ChangesetReader, table: ChangesetTable, columns: [String], in bytes: RawSpan) {
    func cells(_ values: [ValueSlice], where isWanted: (Int) -> Bool = { _ in true }) -> [Cell] {
      values.indices.compactMap { index in
        guard isWanted(index), let value = ChangesetValue(values[index], in: bytes) else { return nil }
        return (columns[index], value)
      }
    }
    self.table = table.name
    operation = change.operation
    key = cells(change.operation == .insert ? reader.new : reader.old, where: table.isKey)
    old = change.operation == .insert ? nil : cells(reader.old)
    new = change.operation == .delete ? nil : cells(reader.new)
  }

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

  private static func json(_ cells: [Cell]) -> JSONValue {
    .object(JSONObject(cells.map { JSONObject.Member($0.column, $0.value.json) }))
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
    cells.map { "\($0.column.escaped(limit: 40)) \($0.value.shown())" }.joined(separator: ", ")
  }

  /// What an UPDATE sets, with the value before where it is known: a patchset does not tell.
  private var edits: String {
    let edits = (new ?? []).map { cell in
      let before = old?.first { $0.column == cell.column }.map { "\($0.value.shown()) → " } ?? ""
      return "\(cell.column.escaped(limit: 40)) \(before)\(cell.value.shown())"
    }
    return edits.isEmpty ? "nothing" : edits.joined(separator: ", ")
  }
}
