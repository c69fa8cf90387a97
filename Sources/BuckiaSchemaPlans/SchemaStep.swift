import SQLiteSchemas

/// How far a diff may change the local schema.
public enum SchemaMode: String, Sendable, CaseIterable {
  /// Missing tables are created and missing columns added; nothing is ever dropped or altered.
  case additive
  /// Any difference refuses the diff.
  case exact
  /// Nothing is created: what is unknown here is kept in the database until the application's own upgrade has made a
  /// place for it. The rest is applied.
  case hold
}

/// One step that makes the local schema fit.
public enum SchemaStep: Equatable, Sendable, CustomStringConvertible {
  /// A table is created. `siblings` are the tables created along with it, the only ones its foreign keys may name.
  case createTable(TableDefinition, siblings: Set<TableName>)
  /// A column is added to a table that is there.
  case addColumn(ColumnDefinition, table: TableName)

  /// The statement that carries it out.
  var sql: String {
    switch self {
    case .createTable(let table, let siblings): return table.createStatement(siblings: siblings)
    case .addColumn(let column, let table):
      return "ALTER TABLE main.\(table.quoted) ADD COLUMN \(column.addClause)"
    }
  }

  /// What it does, for people.
  public var description: String {
    switch self {
    case .createTable(let table, _):
      guard let module = table.module else { return "create table \(table.name) (\(table.columns.count) columns)" }
      return "create virtual table \(table.name) (\(module.name), \(table.columns.count) columns)"
    case .addColumn(let column, let table): return "add column \(table).\(column.name)"
    }
  }
}

/// One line of a plan: what becomes of an incoming table or column here, and why. A table or column that is the same on both
/// sides has none.
public struct SchemaNote: Equatable, Sendable, CustomStringConvertible {
  /// What is done.
  public enum Action: String, Sendable, CaseIterable {
    /// A table is created.
    case create
    /// A column is added.
    case add
    /// Values go by name into columns that stand in another order here.
    case remap
    /// Values go into a column that has another name here.
    case rename
    /// A column or a property is only here, and stays.
    case keep
    /// Values go into a column of another type.
    case convert
    /// It is kept for the application's own upgrade.
    case hold
    /// A part of a definition is not carried out.
    case leaveOut = "leave-out"
  }

  /// What is done.
  public let action: Action
  /// The table, as the diff calls it.
  public let table: String
  /// The column; nil where it is about the whole table.
  public let column: String?
  /// What about it and why, for people.
  public let detail: String

  init(_ action: Action, _ table: String, _ column: String? = nil, _ detail: String) {
    self.action = action
    self.table = table
    self.column = column
    self.detail = detail
  }

  /// A line for people.
  public var description: String {
    let subject = column.map { "\(table).\($0)" } ?? table
    let verb = action == .leaveOut ? "leave out" : action.rawValue
    return "\(verb) \(subject)\(detail.isEmpty ? "" : ": \(detail)")"
  }
}
