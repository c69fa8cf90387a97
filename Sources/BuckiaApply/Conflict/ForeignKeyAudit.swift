import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

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

  /// What was found: rows that refer to nothing, and rows that refer to another row than before.
  struct Found {
    fileprivate(set) var violations = 0
    fileprivate(set) var replacements = 0
  }

  /// Looks at every foreign key whose table or parent was changed, and has each row recorded that it is broken in.
  ///
  /// Rows are handed on one at a time; only what tells them apart is remembered, so that none is recorded twice.
  ///
  /// - Returns: How many rows were found.
  /// - Throws: `SQLiteError`; `ReplicationError` with `conflict` when violations are refused unasked.
  func recordViolations(_ sections: TableSections, _ decider: ConflictDecider) throws -> Found {
    let referring = try referring(sections)
    var count = Found()
    guard !referring.isEmpty else { return count }
    let schema = try session.schema()
    for entry in schema.entries(named: referring) where entry.kind == .table {
      let child = try schema.definition(of: entry)
      var found = BrokenRows(of: child, hasRow: child.fitsWithIdentity(on: session.connection), decider)
      for key in child.foreignKeys {
        guard let check = try ForeignKeyCheck(key, of: child, in: schema, session) else { continue }
        found.begin(check.reference)
        // Both: a trigger of the application's can keep ours from firing (`RAISE(IGNORE)`).
        if let match = changed[entry.name] { try check.written(match, sections, &found) }
        if let store = watch.rowsWritten(to: entry.name) { try check.written(notedIn: store, &found) }
        if let match = changed[TableName(key.parent)] { try check.orphaned(match, sections, &found) }
        if let store = watch.valuesRemoved(from: TableName(key.parent), check.parentColumnNames) {
          try check.orphaned(notedIn: store, &found)
        }
        if let collisions, collisions.refused.hasReplaced {
          found.isReplaced = true
          try check.replaced(collisions, changed[entry.name], sections, &found)
        }
      }
      try found.finish()
      count.violations += found.violations
      count.replacements += found.replacements
    }
    return count
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
