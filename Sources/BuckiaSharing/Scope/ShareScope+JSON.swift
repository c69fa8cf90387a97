import BuckiaBytes
import SQLiteSchemas
import SQLiteChangesets

/// A scope as a document. `Schemas/scope.md` describes it.
extension ShareScope {
  private static let format: Int64 = 1

  /// Reads a document.
  ///
  /// - Throws: `ReplicationError` with `invalidScope` that says where it is wrong.
  public init(json text: String) throws {
    let document: JSONValue
    do {
      document = try JSONParser.parse(Array(text.utf8), numbers: .all)
    } catch {
      throw ReplicationError.invalidScope("the scope is no JSON document: \(error)")
    }
    var fields = try ScopeFields(document, at: "the scope")
    guard try fields.required("format") == .integer(Self.format) else {
      throw ReplicationError.invalidScope(
        "the scope has another format than \(Self.format); a newer Buckia may know it")
    }
    self.init(
      name: try fields.optionalText("name"),
      tables: try fields.list("tables").enumerated().map { place, value in
        try SharedTable(ScopeFields(value, at: "tables[\(place)]"))
      },
      references: try fields.list("references").enumerated().map { place, value in
        try SharedReference(ScopeFields(value, at: "references[\(place)]"))
      },
      excludedTables: try fields.texts("exclude").map { TableName($0) })
    try fields.finish()
  }

  /// The document: equal scopes have equal ones.
  public var json: String {
    var object = JSONObject()
    object.append("format", .integer(Self.format))
    if let name { object.append("name", .string(name)) }
    object.append("tables", .array(tables.map(\.json)))
    if !references.isEmpty { object.append("references", .array(references.map(\.json))) }
    if !excludedTables.isEmpty { object.append("exclude", .array(excludedTables.map { .string($0.text) })) }
    return JSONValue.object(object).text()
  }
}

extension SharedTable {
  fileprivate init(_ object: ScopeFields) throws {
    var fields = object
    self.init(TableName(try fields.text("table")))
    condition = try fields.optionalText("where")
    parents = try fields.texts("childrenOf").map { TableName($0) }
    childCondition = try fields.optionalText("childrenWhere")
    depth = try fields.optionalCount("depth")
    parameters = try fields.values("parameters")
    omittedColumns = try fields.texts("omit")
    columns = try fields.optionalTexts("columns")
    rewrittenColumns = try fields.values("rewrite")
    try fields.finish()
  }

  fileprivate var json: JSONValue {
    var object = JSONObject()
    object.append("table", .string(name.text))
    if let condition { object.append("where", .string(condition)) }
    if !parents.isEmpty { object.append("childrenOf", .array(parents.map { .string($0.text) })) }
    if let childCondition { object.append("childrenWhere", .string(childCondition)) }
    if let depth { object.append("depth", .number(depth)) }
    if !parameters.isEmpty { object.append("parameters", Self.json(parameters)) }
    if !omittedColumns.isEmpty { object.append("omit", .array(omittedColumns.map { .string($0) })) }
    if let columns { object.append("columns", .array(columns.map { .string($0) })) }
    if !rewrittenColumns.isEmpty { object.append("rewrite", Self.json(rewrittenColumns)) }
    return .object(object)
  }

  private static func json(_ values: [String: ChangesetValue]) -> JSONValue {
    .object(JSONObject(values.sorted { $0.key < $1.key }.map { JSONObject.Member($0.key, $0.value.json) }))
  }
}

extension SharedReference {
  fileprivate init(_ object: ScopeFields) throws {
    var fields = object
    self.init(
      TableName(try fields.text("table")), try fields.texts("columns"), to: TableName(try fields.text("parent")),
      try fields.texts("parentColumns"))
    try fields.finish()
  }

  fileprivate var json: JSONValue {
    var object = JSONObject()
    object.append("table", .string(table.text))
    object.append("columns", .array(columns.map { .string($0) }))
    object.append("parent", .string(parent.text))
    if !parentColumns.isEmpty { object.append("parentColumns", .array(parentColumns.map { .string($0) })) }
    return .object(object)
  }
}
