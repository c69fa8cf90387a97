import SQLiteConnections
import SQLiteSchemas

/// What else happens when a row of a table is written: triggers, and the actions of foreign keys that are enforced.
struct RowSideEffects {
  /// Leaves out the TEMP triggers of Buckia, as SQL over `sqlite_schema`.
  static let isNotOurs = "substr(name, 1, 7) <> 'buckia_'"

  /// Whether any trigger of the application fires on the table.
  let hasTriggers: Bool
  /// Whether enforced foreign keys refer to the table.
  let isReferenced: Bool
  /// Whether a row can be deleted and inserted again without any side effect.
  let allowsUnseenDeletes: Bool
  /// The places in the local layout that enforced foreign keys refer to: who refers to such a value follows it.
  let referenced: Set<Int>

  /// Whether a row that replaces another can be written over it: with triggers or foreign-key actions about, it makes a
  /// difference that SQLite deletes the old row first.
  var rewritesInPlace: Bool { !hasTriggers && !isReferenced }

  init(of statements: TableStatements, enforcesForeignKeys: Bool) throws {
    hasTriggers = try statements.hasTriggers()
    var isReferenced = false
    var acts = false
    var referenced: Set<Int> = []
    if enforcesForeignKeys {
      let local = statements.match.local
      // A reference that was broken before would count as newly broken when its row comes back.
      if !local.foreignKeys.isEmpty { acts = true }
      let offset = local.isKeyedByRowID ? 1 : 0
      let query = """
        SELECT f."to", f.on_delete FROM main.sqlite_schema AS t, pragma_foreign_key_list(t.name, 'main') AS f
        WHERE t.type = 'table' AND f."table" = ?1 COLLATE NOCASE
        """
      try statements.connection.forEachRow(of: query, binding: [local.name]) { row in
        isReferenced = true
        if row.text(at: 1) != ForeignKey.Action.noAction.rawValue { acts = true }
        if let column = row.text(at: 0).flatMap({ local.column(named: $0) }) { referenced.insert(column + offset) }
      }
    }
    self.isReferenced = isReferenced
    self.referenced = referenced
    allowsUnseenDeletes = !hasTriggers && !acts
  }
}
