import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

/// The tables of a share, which of their rows and columns are shared, and which rows come along with others.
///
/// Rows to which shared rows refer always come along, also from tables that are not named. Rows that refer to shared
/// ones come along if the scope asks for it.
///
/// ```swift
/// let scope = ShareScope {
///   SharedTable("album").where("id = :album", ["album": 7])
///   SharedTable("photo").children(of: "album").omitting("note")
/// }
/// ```
///
/// `Schemas/scope.md` describes the JSON document.
public struct ShareScope: Equatable, Sendable {
  /// The name for people; nil for a scope that only its content identifies.
  ///
  /// If a named scope changes, rows that were sent before are added and withdrawn to fit it. A changed scope without a
  /// name is another scope.
  public var name: String?
  /// The tables that are named, each once.
  public var tables: [SharedTable]
  /// References that no foreign key declares.
  public var references: [SharedReference]
  /// Tables that are never shared. A shared row must not refer to one of theirs.
  public var excludedTables: [TableName]

  /// Creates a scope.
  public init(
    name: String? = nil, tables: [SharedTable], references: [SharedReference] = [], excludedTables: [TableName] = []
  ) {
    self.name = name
    self.tables = tables
    self.references = references
    self.excludedTables = excludedTables
  }

  /// Creates a scope of the tables that are listed.
  public init(name: String? = nil, @SharedTableList _ tables: () -> [SharedTable]) {
    self.init(name: name, tables: tables())
  }

  /// The entry of a table; nil if the scope does not name it.
  func table(_ name: TableName) -> SharedTable? { tables.first { $0.name == name } }
}

/// Builds the list of tables of a ``ShareScope``, with `if` and `for`.
@resultBuilder
public enum SharedTableList {
  /// One table.
  public static func buildExpression(_ table: SharedTable) -> [SharedTable] { [table] }
  /// One after the other.
  public static func buildBlock(_ parts: [SharedTable]...) -> [SharedTable] { parts.flatMap { $0 } }
  /// `if` without `else`.
  public static func buildOptional(_ part: [SharedTable]?) -> [SharedTable] { part ?? [] }
  /// `if`.
  public static func buildEither(first: [SharedTable]) -> [SharedTable] { first }
  /// `else`.
  public static func buildEither(second: [SharedTable]) -> [SharedTable] { second }
  /// `for`.
  public static func buildArray(_ parts: [[SharedTable]]) -> [SharedTable] { parts.flatMap { $0 } }
}

/// Which rows and columns of a table are shared.
///
/// All of them by default.
public struct SharedTable: Equatable, Sendable {
  /// The table.
  public var name: TableName
  /// An SQL expression over the columns of the table that chooses rows; nil for all of them, or for none if there are `parents`.
  ///
  /// It becomes a part of a query. It must give the same answer for a row each time.
  public var condition: String?
  /// If not empty, rows that refer to a chosen row of one of these tables, or to a child of one, are shared, too. The
  /// table may be one of its own parents.
  public var parents: [TableName]
  /// An SQL expression that chooses among the children; nil for all of them.
  public var childCondition: String?
  /// The most steps from child to child between a row and one that a condition has chosen; nil for no limit.
  public var depth: Int?
  /// The values of the parameters of both conditions (`:name`, `@name`, `$name`), by name without the first character.
  public var parameters: [String: ChangesetValue]
  /// The columns that are left out.
  public var omittedColumns: [String]
  /// The only columns that are shared, beside the primary key and rewritten columns; nil for all columns that are not
  /// omitted.
  ///
  /// Columns that are added later are not shared.
  public var columns: [String]?
  /// Columns for which recipients get this value instead of the local one.
  public var rewrittenColumns: [String: ChangesetValue]

  /// Shares all rows and columns of a table.
  public init(_ name: TableName) {
    self.name = name
    parameters = [:]
    parents = []
    omittedColumns = []
    rewrittenColumns = [:]
  }

  /// Chooses the rows for which an SQL expression is true.
  ///
  /// - Parameters:
  ///   - condition: An expression over the columns of the table. It must come from someone who may run any query.
  ///   - parameters: The values of its parameters, by name without the first character.
  public func `where`(_ condition: String, _ parameters: [String: ChangesetValue] = [:]) -> SharedTable {
    var table = self
    table.condition = condition
    table.parameters = parameters
    return table
  }

  /// Shares the rows that refer to shared rows of other tables, or of the table itself, in addition to the rows that a
  /// condition chooses.
  ///
  /// The children of rows that are shared only because others refer to them are not shared.
  ///
  /// - Parameters:
  ///   - parents: The tables that are referred to.
  ///   - condition: An SQL expression that chooses among the children; nil for all of them. It has the same parameters as the
  ///     other one.
  ///   - depth: The most steps from child to child between a row and one that a condition has chosen, at least 1; nil
  ///     for no limit.
  public func children(of parents: TableName..., where condition: String? = nil, depth: Int? = nil) -> SharedTable {
    var table = self
    table.parents = parents
    table.childCondition = condition
    table.depth = depth
    return table
  }

  /// Shares only some columns, the primary key, and rewritten columns. Columns that are added later are not shared.
  public func columns(_ columns: String...) -> SharedTable {
    var table = self
    table.columns = (table.columns ?? []) + columns
    return table
  }

  /// Leaves out columns, which must not be part of the primary key. Columns that are added later are shared.
  public func omitting(_ columns: String...) -> SharedTable {
    var table = self
    table.omittedColumns += columns
    return table
  }

  /// Gives recipients the same value of a column in each row, such as an owner's id.
  public func rewriting(_ column: String, to value: ChangesetValue) -> SharedTable {
    var table = self
    table.rewrittenColumns[column] = value
    return table
  }
}

/// A reference that no foreign key declares.
public struct SharedReference: Equatable, Sendable {
  /// The table whose rows refer to others, the child.
  public var table: TableName
  /// The columns that hold the key.
  public var columns: [String]
  /// The table that is referred to.
  public var parent: TableName
  /// Its columns; empty for the primary key.
  public var parentColumns: [String]

  /// Declares a reference.
  public init(_ table: TableName, _ columns: [String], to parent: TableName, _ parentColumns: [String] = []) {
    self.table = table
    self.columns = columns
    self.parent = parent
    self.parentColumns = parentColumns
  }
}

/// The scope as a JSON document. `Schemas/scope.md` describes it.
extension ShareScope {
  private static let format: Int64 = 1

  /// Reads a document.
  ///
  /// - Throws: `ReplicationError` with `invalidScope`, which names the place of the error.
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

  /// The document. Equal scopes have equal documents.
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
    if !omittedColumns.isEmpty { object.append("omit", .strings(omittedColumns)) }
    if let columns { object.append("columns", .strings(columns)) }
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
    object.append("columns", .strings(columns))
    object.append("parent", .string(parent.text))
    if !parentColumns.isEmpty { object.append("parentColumns", .strings(parentColumns)) }
    return .object(object)
  }
}

/// The members of an object in a scope's document. Each must be read, because an unknown name could be a misspelled
/// one, and share more than intended.
struct ScopeFields {
  private let path: String
  private var members: [JSONObject.Member]

  init(_ value: JSONValue, at path: String) throws {
    self.path = path
    guard case .object(let object) = value else {
      throw ReplicationError.invalidScope("\(path) is \(value.kind), not an object")
    }
    members = object.members
  }

  private func invalid(_ name: String, _ problem: String) -> ReplicationError {
    .invalidScope("\"\(name)\" of \(path) \(problem)")
  }

  private mutating func take(_ name: String) -> JSONValue? {
    guard let place = members.firstIndex(where: { $0.name.utf8.elementsEqual(name.utf8) }) else { return nil }
    return members.remove(at: place).value
  }

  mutating func required(_ name: String) throws -> JSONValue {
    guard let value = take(name) else { throw invalid(name, "is missing") }
    return value
  }

  mutating func optionalText(_ name: String) throws -> String? {
    guard let value = take(name) else { return nil }
    guard case .string(let text) = value else { throw invalid(name, "is \(value.kind), not text") }
    return text
  }

  mutating func text(_ name: String) throws -> String {
    guard let text = try optionalText(name) else { throw invalid(name, "is missing") }
    return text
  }

  mutating func optionalCount(_ name: String) throws -> Int? {
    guard let value = take(name) else { return nil }
    guard case .integer(let number) = value, number >= 1 else { throw invalid(name, "is no number from 1 on") }
    return Int(clamping: number)
  }

  /// The list with a name; empty if it is missing.
  mutating func list(_ name: String) throws -> [JSONValue] {
    guard let value = take(name) else { return [] }
    guard case .array(let values) = value else { throw invalid(name, "is \(value.kind), not a list") }
    return values
  }

  mutating func texts(_ name: String) throws -> [String] {
    try list(name).map { value in
      guard case .string(let text) = value else { throw invalid(name, "has \(value.kind) in it, not text") }
      return text
    }
  }

  mutating func optionalTexts(_ name: String) throws -> [String]? {
    members.contains { $0.name == name } ? try texts(name) : nil
  }

  /// Values of columns or parameters, by name.
  mutating func values(_ name: String) throws -> [String: ChangesetValue] {
    guard let value = take(name) else { return [:] }
    guard case .object(let object) = value else { throw invalid(name, "is \(value.kind), not an object") }
    var values: [String: ChangesetValue] = [:]
    for member in object.members {
      guard let value = ChangesetValue(json: member.value) else {
        throw invalid(name, "has a value for \"\(member.name)\" that no column can have")
      }
      values[member.name] = value
    }
    return values
  }

  func finish() throws {
    if let member = members.first { throw invalid(member.name, "is not known here") }
  }
}

extension ReplicationError {
  /// An error for a scope that cannot be followed.
  static func invalidScope(_ message: String, table: TableName? = nil, column: String? = nil) -> ReplicationError {
    ReplicationError(.invalidScope, message, table: table?.text, column: column)
  }
}
