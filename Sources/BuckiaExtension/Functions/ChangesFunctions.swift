import Buckia
import SQLiteConnections

extension SQLiteConnection {
  /// Adds what reads changes without a database: `buckia_changes(blob)` with a row a change, `buckia_change_values(blob)` with a row
  /// a value, and `buckia_invert(blob)`.
  func addChangesFunctions() throws(SQLiteError) {
    try addFunction("buckia_invert", argumentCounts: 1...1, access: .innocuous, isDeterministic: true) { arguments in
      guard let source = try arguments.bytes(at: 0, of: "buckia_invert") else { return .null }
      return try SQLiteFunctionFailure.wrapping {
        var bytes: [UInt8] = []
        try RewrittenChanges(inverting: source).forEachPiece { bytes.append(contentsOf: $0) }
        return .blob(bytes)
      }
    }
    try addTableFunction(
      SQLiteTableFunction(
        "buckia_changes", columns: ["position", "tbl", "op", "key", "old", "new"], parameters: ["buckia_file"],
        required: 1,
        access: .innocuous
      ) { arguments in
        let spool = RowSpool()
        guard let source = try arguments.bytes(at: 0, of: "buckia_changes") else { return spool }
        try SQLiteFunctionFailure.wrapping { try spool.appendChanges(of: DiffInspection.open(source)) }
        return spool
      })
    try addTableFunction(
      SQLiteTableFunction(
        "buckia_change_values", columns: ["position", "tbl", "op", "col", "is_key", "old", "new"],
        parameters: ["buckia_file"],
        required: 1, access: .innocuous
      ) { arguments in
        let spool = RowSpool()
        guard let source = try arguments.bytes(at: 0, of: "buckia_change_values") else { return spool }
        try SQLiteFunctionFailure.wrapping { try spool.appendValues(of: DiffInspection.open(source)) }
        return spool
      })
  }
}

extension RowSpool {
  /// Adds a row for each change, with its rows as JSON.
  fileprivate func appendChanges(of file: InspectedFile) throws {
    var position: Int64 = 0
    try file.forEachChange { change in
      position += 1
      try append([
        .integer(position), .text(change.table), .text(change.operation.word), json(change.key, file),
        change.old.map { try json($0, file) } ?? .null, change.new.map { try json($0, file) } ?? .null,
      ])
    }
  }

  /// Cells as a JSON object; those that the change says nothing of are left out.
  private func json(_ cells: [InspectedFile.ShownChange.Cell], _ file: InspectedFile) throws -> SQLiteFunctionResult {
    var object = JSONObject()
    for cell in cells {
      guard var value = cell.value else { continue }
      if let whole = cell.whole {
        var bytes: [UInt8] = []
        try file.forEachPiece(of: whole) { bytes.append(contentsOf: $0) }
        value = if case .text = value { .text(String(decoding: bytes, as: UTF8.self)) } else { .blob(bytes) }
      }
      object.append(cell.column, value.json)
    }
    return JSONValue.object(object).column
  }

  /// Adds a row for each value.
  fileprivate func appendValues(of file: InspectedFile) throws {
    try file.forEachStoredCell { cell in
      try append([
        .integer(cell.position), .text(cell.table), .text(cell.operation.word), .text(cell.column),
        .integer(cell.isKey ? 1 : 0), SQLiteFunctionResult(cell.old), SQLiteFunctionResult(cell.new),
      ])
    }
  }
}

extension SQLiteFunctionResult {
  fileprivate init(_ value: InspectedFile.StoredValue?) {
    self =
      switch value {
      case nil, .null: .null
      case .integer(let number): .integer(number)
      case .real(let number): .real(number)
      case .text(let bytes): .utf8(bytes)
      case .blob(let bytes): .blob(bytes)
      }
  }
}
