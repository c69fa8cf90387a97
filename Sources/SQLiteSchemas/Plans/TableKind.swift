/// What kind of object a table name stands for. See <https://sqlite.org/pragma.html#pragma_table_list>.
package enum TableKind: Equatable, Sendable {
  /// An ordinary table.
  case table
  /// A view.
  case view
  /// A virtual table, with the name of its module and what its rows are.
  case virtual(module: String, content: VirtualContent)
  /// A shadow table of a virtual table.
  case shadow(of: String)

  /// Whether it has rows of its own, which travel.
  package var hasOwnRows: Bool {
    switch self {
    case .table, .virtual(_, .own): true
    case .view, .virtual, .shadow: false
    }
  }
}

/// Whose the rows of a virtual table are. It decides whether they travel, for each database by itself.
package enum VirtualContent: Equatable, Sendable {
  /// The application writes them and nothing else does: they are data like any other.
  case own
  /// Triggers of the schema write them, so they follow from other tables.
  case keptByTriggers
  /// They are those of another table or view, which a full-text table indexes ("external content").
  case external(TableName)
  /// They cannot be read back: a full-text table that keeps no text ("contentless").
  case contentless
  /// A module whose rows do not travel.
  case unknown
  /// SQLite cannot open the table here, and says why.
  case unavailable(String)
}
