import SQLiteChangesets
import SQLiteSchemas

/// What is shared with others: tables, which of their rows and columns, and what comes along because rows refer to it.
///
/// Rows that shared rows refer to always come along, from tables that are not named, too. Rows that refer to shared ones come
/// along where the scope says so.
///
/// ```swift
/// let scope = ShareScope {
///   SharedTable("album").where("id = :album", ["album": 7])
///   SharedTable("photo").children(of: "album").omitting("note")
/// }
/// ```
///
/// As a JSON document it is described in `Schemas/scope.md`.
public struct ShareScope: Equatable, Sendable {
  /// What people call it; nil for a scope that is known by its content.
  ///
  /// If a scope with a name is changed, what has been sent by it is adjusted. One without is another scope then.
  public var name: String?
  /// The tables that are named, each once.
  public var tables: [SharedTable]
  /// References that no foreign key declares.
  public var references: [SharedReference]
  /// Tables that are never shared. A shared row must not refer to one of theirs.
  public var excludedTables: [TableName]

  /// Makes a scope.
  public init(
    name: String? = nil, tables: [SharedTable], references: [SharedReference] = [], excludedTables: [TableName] = []
  ) {
    self.name = name
    self.tables = tables
    self.references = references
    self.excludedTables = excludedTables
  }

  /// Makes a scope of the tables that are listed.
  public init(name: String? = nil, @SharedTableList _ tables: () -> [SharedTable]) {
    self.init(name: name, tables: tables())
  }

  /// What is said of a table; nil where it is not named.
  func table(_ name: TableName) -> SharedTable? { tables.first { $0.name == name } }
}

/// Lists the tables of a ``ShareScope``, with `if` and `for` where they depend on something.
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
