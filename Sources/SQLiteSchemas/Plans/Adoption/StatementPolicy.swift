import BuckiaBytes
import SQLiteConnections

/// What an author's statements may do: an allow list, for the authorizer.
struct StatementPolicy: Sendable {
  /// The author's tables and views.
  private let tables: Set<TableName>
  private let functions: Set<String>

  /// - Parameters:
  ///   - statements: All of the author's statements.
  ///   - functions: What may be called besides SQLite's own pure functions, in lower case.
  init(of statements: [SchemaStatement], allowing functions: Set<String>) {
    tables = Set(statements.filter { $0.kind == .table || $0.kind == .view }.map(\.name))
    self.functions = functions.subtracting(SQLFunctions.withEffects).union(SQLFunctions.pure)
  }

  /// Table-valued functions that compute their rows from their arguments.
  static let tableFunctions: Set<TableName> = ["json_each", "json_tree", "jsonb_each", "jsonb_tree"]
  private static let schemaTables: Set<TableName> = ["sqlite_master", "sqlite_schema"]

  /// Whether a CREATE statement may do something while it is prepared.
  func allows(_ action: SQLiteAction, making statement: SchemaStatement) -> Bool {
    guard isInMain(action) else { return false }
    let (name, detail) = (TableName(action.name), TableName(action.detail))
    switch action.verb {
    case .createTable: return statement.kind == .table && (name == statement.name || name == "sqlite_sequence")
    case .createIndex:
      if statement.kind == .index { return name == statement.name && detail == statement.table }
      // UNIQUE and PRIMARY KEY have indexes that SQLite names.
      return statement.kind == .table && detail == statement.name && action.name.hasPrefix("sqlite_autoindex_")
    case .createView: return statement.kind == .view && name == statement.name
    case .createTrigger: return statement.kind == .trigger && name == statement.name && detail == statement.table
    case .reindex: return statement.kind == .index && name == statement.name
    case .insert, .update, .read, .delete:
      if Self.schemaTables.contains(name) || name == "sqlite_sequence" { return action.cause == nil }
      return action.verb == .read && allowsUse(action)
    case .select, .function: return allowsUse(action)
    case .createVirtualTable, .recursive, .other: return false
    }
  }

  /// Whether a statement that sets off views, triggers and defaults may do something.
  func allowsUse(_ action: SQLiteAction) -> Bool {
    guard isInMain(action) else { return false }
    switch action.verb {
    case .select: return true
    case .function: return functions.contains(ASCIIName.folded(action.detail))
    case .read:
      let name = TableName(action.name)
      if tables.contains(name) || Self.tableFunctions.contains(name) { return true }
      // Of a common table expression of which no column is used, SQLite gives the name.
      return action.detail.isEmpty && name.refusal == nil
        && !SQLFunctions.withEffects.contains(ASCIIName.folded(action.name))
    case .insert, .update, .delete: return tables.contains(TableName(action.name))
    case .createTable, .createVirtualTable, .createIndex, .createView, .createTrigger, .reindex, .recursive, .other:
      return false
    }
  }

  private func isInMain(_ action: SQLiteAction) -> Bool { action.schema.isEmpty || action.schema == "main" }

  /// Why the arguments of a virtual table are refused; nil when they are fine. Options such as `content` name tables in quotes.
  static func refusal(ofArguments table: VirtualTableDefinition) -> String? {
    for argument in table.arguments {
      for name in SQLReferences(of: argument).names {
        if !name.text.isEmpty, let reason = name.refusal { return reason }
      }
    }
    return nil
  }
}
