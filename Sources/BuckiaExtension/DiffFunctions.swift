import Buckia
import SQLiteConnections

extension SQLiteConnection {
  /// Adds `buckia_diff(old, new [, options])` twice: the function returns the changes as a blob, and the table-valued
  /// one the number of changes of each table, and the parts that are not replicated.
  func addDiffFunctions() throws(SQLiteError) {
    try addFunction("buckia_diff", argumentCounts: 2...3, access: .direct) { arguments in
      let call = try DiffCall(arguments)
      return try call.changes().map { .blob($0) } ?? .null
    }
    try addTableFunction(
      SQLiteTableFunction(
        "buckia_diff", columns: ["name", "inserted", "updated", "deleted", "method", "new", "reason"],
        parameters: ["buckia_old_path", "buckia_new_path", "buckia_options"], required: 2, access: .direct
      ) { arguments in
        let spool = RowSpool()
        let difference = try DiffCall(arguments).difference()
        for table in difference.tables {
          try spool.append([
            .text(table.definition.name), .integer(Int64(table.inserted)), .integer(Int64(table.updated)),
            .integer(Int64(table.deleted)), .text(table.method.rawValue), .integer(table.isNew ? 1 : 0), .null,
          ])
        }
        for item in difference.skipped {
          try spool.append([.text(item.name), .null, .null, .null, .null, .null, .text(item.reason.description)])
        }
        return spool
      })
  }
}

/// The arguments of a call of `buckia_diff`.
private struct DiffCall {
  private let older: String?
  private let newer: String
  private let options: DiffOptions
  /// True for a changeset, false for a diff file; nil if unspecified.
  private let isRaw: Bool?
  private let home: BuckiaHome

  init(_ arguments: borrowing SQLiteArguments) throws {
    older = try arguments.path(at: 0, of: "buckia_diff")
    guard let path = try arguments.path(at: 1, of: "buckia_diff") else {
      throw SQLiteFunctionFailure("buckia_diff needs the path of the newer database")
    }
    newer = path
    let given = try CallOptions(
      arguments.text(at: 2), of: "buckia_diff", known: ["tables", "method", "raw", "again", "force", "home"])
    var options = DiffOptions(
      tables: try given.texts("tables")?.map { TableName($0) }, method: try given.choice("method"))
    isRaw = try given.flag("raw")
    options.includesSent = try given.flag("again") ?? false
    options.allowsUnrelated = try given.flag("force") ?? false
    self.options = options
    home = try given.home()
  }

  /// The changes, as `buckia diff` writes them; nil if there are none.
  ///
  /// - Throws: `SQLiteFunctionFailure`, also if a changeset would have to leave rows out, since the function cannot
  ///   report them. Nothing is recorded as sent then.
  func changes() throws -> [UInt8]? {
    var options = options
    options.isRaw = isRaw ?? true
    options.refusesIncomplete = true
    return try SQLiteFunctionFailure.wrapping {
      // The thread that asks for the difference writes them.
      nonisolated(unsafe) var bytes: [UInt8] = []
      do {
        let report = try DatabaseManager(newer, home: home).createDatabaseDiff(
          since: older, output: .stream { bytes.append(contentsOf: $0) }, options: options)
        return report.id == nil ? nil : bytes
      } catch let refusal as IncompleteChangeset {
        throw SQLiteFunctionFailure("\(refusal); ask for a diff file with the option {\"raw\":false}")
      }
    }
  }

  /// What differs. Nothing is written, and nothing noted as sent.
  func difference() throws -> DatabaseDifference {
    var options = options
    options.isRaw = isRaw ?? false
    return try SQLiteFunctionFailure.wrapping {
      for path in [older, newer].compactMap({ $0 }) { try DatabaseManager(path).requireFile() }
      let source = try older.map { try RowSource(opening: $0) } ?? RowSource.empty()
      return try DatabaseComparison.run(from: source, to: RowSource(opening: newer), options: options)
    }
  }
}

extension SQLiteConnection {
  /// Adds the functions that read changes without a database: `buckia_changes(blob)` with a row per change,
  /// `buckia_change_values(blob)` with a row per value, and `buckia_invert(blob)`.
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

  /// Cells as a JSON object, without those that the change does not contain.
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

extension SQLiteConnection {
  /// Adds `buckia_verify(path or blob)`: the report of `buckia verify --json`.
  func addVerifyFunction() throws(SQLiteError) {
    try addFunction("buckia_verify", argumentCounts: 1...1, access: .direct) { arguments in
      guard let source = try arguments.source(at: 0, of: "buckia_verify") else { return .null }
      let report = try SQLiteFunctionFailure.wrapping { try DiffInspection.verify([source], home: .standard) }
      return .text(report.json.text())
    }
  }
}
