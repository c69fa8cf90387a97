import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Finds the foreign keys that a diff has broken, after it was applied with enforcement off (``ApplySession/begin()``).
///
/// Only rows that the changes wrote, and rows that referred to what they took away, are looked at:
/// violations that were there before are not reported, and the rest of the database is not read.
struct ForeignKeyAudit {
  let session: ApplySession
  /// The tables that were changed, with how their columns meet those of the changes.
  let changed: [TableName: TableMatch]
  /// What was noted meanwhile.
  let watch: ForeignKeyWatch
  /// What was found out of colliding keys.
  let collisions: KeyCollisions?

  /// Looks at every foreign key whose table or parent was changed.
  ///
  /// - Parameters:
  ///   - written: Rows that were written beside the changes, by table.
  ///   - last: The greatest rowids before the changes of tables without a key.
  /// - Returns: The rows that refer to nothing or to another row than before, by foreign key; none without such rows.
  /// - Throws: `SQLiteError`.
  func run(
    _ sections: TableSections, beside written: [TableName: KeyStore], after last: [TableName: Int64]
  ) throws -> [BrokenRows] {
    let referring = try referring(sections).union(written.keys)
    var all: [BrokenRows] = []
    guard !referring.isEmpty else { return all }
    let schema = try session.schema()
    for entry in schema.entries(named: referring) where entry.kind == .table {
      let child = try schema.definition(of: entry)
      for key in child.foreignKeys {
        guard let check = try ForeignKeyCheck(key, of: child, in: schema, session) else { continue }
        var found = BrokenRows(check)
        found.areTaken = true
        // Both: a trigger of the application's can keep ours from firing (`RAISE(IGNORE)`).
        if let match = changed[TableName(key.parent)] { try check.orphaned(match, sections, &found) }
        if let store = watch.valuesRemoved(from: TableName(key.parent), check.parentColumnNames) {
          try check.orphaned(notedIn: store, &found)
        }
        found.areTaken = false
        if let match = changed[entry.name] { try check.written(match, sections, after: last[entry.name], &found) }
        if let store = watch.rowsWritten(to: entry.name) { try check.written(notedIn: store, &found) }
        if let store = written[entry.name] { try check.written(notedIn: store, &found) }
        if let collisions, collisions.refused.hasReplaced {
          found.areReplaced = true
          try check.replaced(collisions, changed[entry.name], sections, &found)
        }
        if !found.missing.isEmpty || !found.replaced.isEmpty { all.append(found) }
      }
    }
    return all
  }

  /// The tables that have a foreign key and were changed, and those whose parent may have lost a row or a value that they refer
  /// to. A table can be the parent of thousands, and most files only add rows to it.
  private func referring(_ sections: TableSections) throws -> Set<TableName> {
    let references = try session.references()
    if references.isEmpty { return [] }
    if watch.seesEverything { return references.children }
    let hasReplaced = collisions?.refused.hasReplaced == true
    var found: Set<TableName> = []
    for (name, match) in changed {
      if references.isChild(name) { found.insert(name) }
      let takesAway =
        hasReplaced || watch.notesRemovals(from: name) || sections.takeAway(from: TableName(match.local.name))
      if takesAway { found.formUnion(references.children(of: name)) }
    }
    return found
  }
}
