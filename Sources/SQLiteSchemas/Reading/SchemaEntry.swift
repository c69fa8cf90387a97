import BuckiaBytes

/// One entry of a database's schema.
package struct SchemaEntry: Sendable {
  /// The name as it was created; that of another table for one that stands in for it.
  package private(set) var name: TableName
  /// The name under which its rows are.
  package let storedName: String
  /// What it is.
  package let kind: TableKind
  /// True if it is a WITHOUT ROWID table.
  let isWithoutRowID: Bool
  /// True if it is a STRICT table.
  let isStrict: Bool
  /// The statement that it was created with.
  package internal(set) var sql: String
  /// True if `name` is not the name itself, because that is no valid UTF-8.
  let isNameRepaired: Bool

  init(
    name: TableName, kind: TableKind, isWithoutRowID: Bool, isStrict: Bool, sql: String, isNameRepaired: Bool
  ) {
    self.name = name
    storedName = name.text
    self.kind = kind
    self.isWithoutRowID = isWithoutRowID
    self.isStrict = isStrict
    self.sql = sql
    self.isNameRepaired = isNameRepaired
  }

  /// The same rows under the name of another table.
  func standing(in name: TableName) -> SchemaEntry {
    var entry = self
    entry.name = name
    return entry
  }

  /// True if another database has the very same definition under this name.
  package func isDefined(like other: SchemaEntry) -> Bool {
    kind == other.kind && !sql.isEmpty && sql.utf8.elementsEqual(other.sql.utf8)
      && name.text.utf8.elementsEqual(other.name.text.utf8)
  }

  /// True if it is a virtual table with content of its own that adopting the schema does not create.
  package var isUnmade: Bool {
    switch kind {
    case .table, .view, .shadow, .virtual(_, .keptByTriggers), .virtual(_, .external): false
    case .virtual: SchemaStatement(.table, name: name.text, table: name.text, sql: sql).refusal != nil
    }
  }
}

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

  /// True if it has rows of its own, which travel.
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

/// Which tables travel. One set of rules for diff, apply and `doctor`.
package enum Replicability {
  /// True if a table is one of Buckia's, which like those of SQLite do not travel and are not reported.
  package static func isOwn(_ table: TableName) -> Bool { ASCIIName.folded(table.text).hasPrefix("buckia_") }

  /// Why an object of the schema cannot travel, or nil for a table that can.
  package static func refusal(of entry: SchemaEntry) -> String? {
    switch entry.kind {
    case .table: break
    case .view: return "a view holds no rows of its own"
    case .virtual(let module, let content):
      if let reason = refusal(of: content) { return "a virtual table (\(module)): \(reason)" }
    case .shadow(let owner):
      return owner.isEmpty ? "holds the insides of a virtual table" : "holds the insides of the virtual table \(owner)"
    }
    if entry.isNameRepaired { return "its name is not valid UTF-8" }
    return entry.name.refusal
  }

  /// True if the statement that made a table is enough to tell that its rows can travel: it is too short for too many
  /// columns or too long a name, and does not name the rowid.
  package static func isPlain(_ entry: SchemaEntry) -> Bool {
    guard entry.sql.utf8.count <= TableDefinition.nameByteLimit else { return false }
    let name = Array(TableDefinition.rowIDColumn.utf8)
    var sql = entry.sql
    return sql.withUTF8 { bytes in
      !bytes.indices.dropLast(name.count - 1).contains { start in
        name.indices.allSatisfy { ASCIIName.folded(bytes[start + $0]) == name[$0] }
      }
    }
  }

  /// Why the rows of a virtual table do not travel, or nil.
  private static func refusal(of content: VirtualContent) -> String? {
    switch content {
    case .own: nil
    case .keptByTriggers: "triggers keep it, so its content does not travel: the receiver keeps its own"
    case .external(let table): "it indexes \"\(table)\" and does not travel; the receiver rebuilds it from that table"
    case .contentless: "it keeps no text (content=''), so what is in it cannot be read and does not travel"
    case .unknown: "its content does not travel; where triggers keep it, the receiver does, too"
    case .unavailable(let reason): "it cannot be opened here (\(reason)), so its content does not travel"
    }
  }

  /// Why the rows of a table cannot travel, or nil.
  package static func refusal(of table: TableDefinition) -> String? {
    if table.hasRepairedNames { return "the name of one of its columns is not valid UTF-8; give it another" }
    if table.columns.isEmpty { return "it has no columns but generated ones" }
    if table.isKeyedByRowID, table.rowIDName == nil {
      return "it has no primary key, and its columns hide the rowid; give it a primary key"
    }
    if table.isKeyedByRowID, table.column(named: TableDefinition.rowIDColumn) != nil {
      return "it has no primary key, and a column is named like the rowid; give it a primary key"
    }
    if table.columns.count + table.generated.count > TableDefinition.columnLimit {
      return "it has more than \(TableDefinition.columnLimit) columns"
    }
    let texts = [table.name] + table.columns.flatMap { [$0.name, $0.declaredType, $0.collation] }
    if texts.contains(where: { $0.utf8.count > TableDefinition.nameByteLimit }) {
      return "a name or a declared type in it is longer than \(TableDefinition.nameByteLimit) bytes"
    }
    return nil
  }
}
