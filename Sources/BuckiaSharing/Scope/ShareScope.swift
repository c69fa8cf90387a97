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
public struct ShareScope: Hashable, Codable, Sendable {
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
public struct SharedTable: Hashable, Codable, Sendable {
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

  /// The columns by which a row that a recipient has added is the same as one here that was added under another number; empty where only rows
  /// that are equal are the same.
  public var match: [String] = []

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

  /// Takes rows of recipients for the same as rows here if they have equal values in these columns, whatever their numbers are.
  public func matching(_ columns: String...) -> SharedTable {
    var table = self
    table.match = columns
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
public struct SharedReference: Hashable, Codable, Sendable {
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
    var fields = try JSONFields(document, of: ScopeDocument())
    guard try fields.required("format") == .integer(Self.format) else {
      throw ReplicationError.invalidScope(
        "the scope has another format than \(Self.format); a newer Buckia may know it")
    }
    self.init(
      name: try fields.stringIfNamed("name"),
      tables: try fields.objectsIfNamed("tables", limit: .max, SharedTable.init(reading:)),
      references: try fields.objectsIfNamed("references", limit: .max, SharedReference.init(reading:)),
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
  fileprivate init(reading fields: inout JSONFields<ScopeDocument>) throws(ReplicationError) {
    self.init(TableName(try fields.string("table")))
    condition = try fields.stringIfNamed("where")
    parents = try fields.texts("childrenOf").map { TableName($0) }
    childCondition = try fields.stringIfNamed("childrenWhere")
    depth = fields.remaining["depth"] == nil ? nil : try Int(clamping: fields.integer("depth", in: 1 ... .max))
    parameters = try fields.columnValues("parameters")
    omittedColumns = try fields.texts("omit")
    columns = fields.remaining["columns"] == nil ? nil : try fields.strings("columns")
    rewrittenColumns = try fields.columnValues("rewrite")
    match = try fields.texts("match")
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
    if !match.isEmpty { object.append("match", .strings(match)) }
    return .object(object)
  }

  private static func json(_ values: [String: ChangesetValue]) -> JSONValue {
    .object(JSONObject(values.sorted { $0.key < $1.key }.map { JSONObject.Member($0.key, $0.value.json) }))
  }
}

extension SharedReference {
  fileprivate init(reading fields: inout JSONFields<ScopeDocument>) throws(ReplicationError) {
    self.init(
      TableName(try fields.string("table")), try fields.texts("columns"), to: TableName(try fields.string("parent")),
      try fields.texts("parentColumns"))
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

/// The document of a scope. Each member must be read, because an unknown name could be a misspelled one, and share more than intended.
private struct ScopeDocument: JSONDocument {
  func invalid(_ field: String, _ problem: String) -> ReplicationError {
    .invalidScope("\(field.isEmpty ? "" : "\"\(field)\" of ")the scope \(problem)")
  }
}

extension JSONFields<ScopeDocument> {
  /// A list of texts; empty where there is none.
  fileprivate mutating func texts(_ name: String) throws(ReplicationError) -> [String] {
    remaining[name] == nil ? [] : try strings(name)
  }

  /// Values of columns or parameters, by name; empty where there are none.
  fileprivate mutating func columnValues(_ name: String) throws(ReplicationError) -> [String: ChangesetValue] {
    guard remaining[name] != nil else { return [:] }
    let found = try required(name)
    guard case .object(let object) = found else { throw invalid(name, "is \(found.kind), not an object") }
    var values: [String: ChangesetValue] = [:]
    for member in object.members {
      guard let value = ChangesetValue(json: member.value) else {
        throw invalid(name, "has a value for \"\(member.name)\" that no column can have")
      }
      values[member.name] = value
    }
    return values
  }
}

extension ReplicationError {
  /// An error for a scope that cannot be followed.
  static func invalidScope(_ message: String, table: TableName? = nil, column: String? = nil) -> ReplicationError {
    ReplicationError(.invalidScope, message, table: table?.text, column: column)
  }
}
