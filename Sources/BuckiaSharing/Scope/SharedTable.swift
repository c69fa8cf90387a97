import SQLiteChangesets
import SQLiteSchemas

/// Which rows and columns of a table are shared.
///
/// Without anything else, all of them.
public struct SharedTable: Equatable, Sendable {
  /// The table.
  public var name: TableName
  /// An SQL expression over the columns of the table that chooses rows; nil for all of them, or for none if there are `parents`.
  ///
  /// It becomes part of a query as it is. It must give the same answer for a row each time.
  public var condition: String?
  /// Where not empty, rows are shared, too, that refer to a row of one of these tables which was chosen, or is a child itself.
  /// The table may be one of its own parents.
  public var parents: [TableName]
  /// An SQL expression that chooses among the children; nil for all of them.
  public var childCondition: String?
  /// How many steps from child to child a row may be away from one that a condition has chosen; nil for any number.
  public var depth: Int?
  /// The values of the parameters of both conditions (`:name`, `@name`, `$name`), by name without the first character.
  public var parameters: [String: ChangesetValue]
  /// The columns that are left out.
  public var omittedColumns: [String]
  /// The only columns that are shared, beside those of the primary key and those with another value; nil for all that are not left out.
  ///
  /// A column that the table gets later is not shared then.
  public var columns: [String]?
  /// Columns that others get with this value, instead of the one that they have here.
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

  /// Shares the rows that refer to shared rows of other tables, or of the table itself, beside those that a condition chooses.
  ///
  /// Rows that are shared only because others refer to them have no children.
  ///
  /// - Parameters:
  ///   - parents: The tables that are referred to.
  ///   - condition: An SQL expression that chooses among the children; nil for all of them. It has the same parameters as the
  ///     other one.
  ///   - depth: How many steps from child to child a row may be away from one that a condition has chosen, at least 1; nil for
  ///     any number.
  public func children(of parents: TableName..., where condition: String? = nil, depth: Int? = nil) -> SharedTable {
    var table = self
    table.parents = parents
    table.childCondition = condition
    table.depth = depth
    return table
  }

  /// Shares only some columns, those of the primary key, and those with another value. A column that the table gets later is not shared.
  public func columns(_ columns: String...) -> SharedTable {
    var table = self
    table.columns = (table.columns ?? []) + columns
    return table
  }

  /// Leaves columns out. Those of the primary key cannot be. A column that the table gets later is shared.
  public func omitting(_ columns: String...) -> SharedTable {
    var table = self
    table.omittedColumns += columns
    return table
  }

  /// Gives others a column with another value, the same in each row: an owner's id, say.
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
