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

/// Notes, while changes are applied with foreign keys unenforced, what cannot be read off the changes afterwards.
///
/// A change tells the key of its row, and so which rows lose a parent that they know by its primary key. It does not tell
/// what a UNIQUE column held here, where the local row was another than its author saw; nor what triggers do. TEMP triggers
/// note that, and are dropped when the changes are applied. Most databases need none.
struct ForeignKeyWatch {
  /// The names of our triggers begin so.
  private static let prefix = "\(SQLiteConnection.temporaryPrefix)watch_"

  /// Columns of one table whose values are noted, in a table of their own.
  private struct Watched: Hashable {
    let table: TableName
    let columns: [String]
  }

  private let session: ApplySession
  private var removed: [Watched: KeyStore] = [:]
  private var written: [TableName: KeyStore] = [:]
  private var triggers: [String] = []

  /// Begins to watch what the audit will need.
  ///
  /// - Parameters:
  ///   - changed: The tables that are to be changed.
  ///   - seesTriggers: True if triggers may change others.
  ///   - session: What is known of the schema.
  /// - Throws: `SQLiteError` when the schema cannot be read or the triggers cannot be made.
  init(changed: Set<TableName>, seesTriggers: Bool, _ session: ApplySession) throws {
    self.session = session
    let references = try session.references()
    if references.isEmpty { return }
    let schema = try session.schema()
    // The tables whose foreign keys are watched, each with the parents that are.
    var watched: [TableName: Set<TableName>] = [:]
    for name in changed {
      guard references.isParent(name), let table = try schema.table(named: name) else { continue }
      for child in references.children(of: name, besidesKeyOf: table) {
        watched[child, default: []].insert(name)
      }
    }
    for child in seesTriggers ? references.children : Set(watched.keys) {
      guard let definition = try schema.table(named: child) else { continue }
      if seesTriggers { try watchWritten(definition) }
      for key in definition.foreignKeys {
        let name = TableName(key.parent)
        guard seesTriggers || watched[child]?.contains(name) == true,
          let parent = try schema.table(named: name)
        else { continue }
        let columns = parent.columns(referredToBy: key)
        guard columns.count == key.columns.count else { continue }
        let isKey = columns.allSatisfy { parent.primaryKey.contains($0) }
        if seesTriggers || !isKey { try watchRemoved(parent, columns) }
      }
    }
  }

  private mutating func watchRemoved(_ parent: TableDefinition, _ columns: [Int]) throws {
    let watched = Watched(table: TableName(parent.name), columns: columns.map { parent.columns[$0].name })
    guard removed[watched] == nil else { return }
    let names = watched.columns.map(SQLText.identifier)
    removed[watched] = try note(
      names.map { "OLD.\($0)" }, columns, of: parent, at: ["DELETE", "UPDATE OF \(names.joined(separator: ", "))"])
  }

  private mutating func watchWritten(_ child: TableDefinition) throws {
    let name = TableName(child.name)
    guard written[name] == nil, child.isKeyedByRowID ? child.rowIDName != nil : true else { return }
    written[name] = try note(
      child.keySQL.map { "NEW.\($0)" }, child.primaryKey, of: child, at: ["INSERT", "UPDATE"])
  }

  /// Makes a table for the values of some columns, and triggers that note them there.
  private mutating func note(
    _ values: [String], _ columns: [Int], of table: TableDefinition, at events: [String]
  ) throws -> KeyStore {
    let store = try KeyStore("\(removed.count + written.count)", for: table, columns, on: session.connection)
    for event in events {
      let name = "\(Self.prefix)trigger_\(triggers.count)"
      // Not OR IGNORE, which inside a trigger gives way to what the outer statement says.
      try session.connection.execute(
        """
        DROP TRIGGER IF EXISTS temp.\(name);
        CREATE TEMP TRIGGER \(name) AFTER \(event) ON main.\(TableName(table.name).quoted) BEGIN
          INSERT INTO \(store.name) VALUES (\(values.joined(separator: ", "))) ON CONFLICT DO NOTHING;
        END
        """)
      triggers.append(name)
    }
    return store
  }

  /// The table that notes which values of these columns rows have lost, with columns `k0…`; nil when they are not watched.
  func valuesRemoved(from table: TableName, _ columns: [String]) -> KeyStore? {
    removed[Watched(table: table, columns: columns)]
  }

  /// True if it is noted what rows of a table lose.
  func notesRemovals(from table: TableName) -> Bool { removed.keys.contains { $0.table == table } }

  /// The table that notes the keys of the rows that were written, with columns `k0…`; nil when they are not watched.
  func rowsWritten(to table: TableName) -> KeyStore? { written[table] }

  /// True if all that happens is watched, whoever does it.
  var seesEverything: Bool { !written.isEmpty }

  /// Takes the triggers away, and what they noted.
  func stop() throws {
    for name in triggers { try session.connection.execute("DROP TRIGGER IF EXISTS temp.\(name)") }
    for store in Array(removed.values) + Array(written.values) { try store.clear(on: session.connection) }
  }
}

extension TableDefinition {
  /// How many columns changes have before those of the table: the rowid, where that is the key.
  var columnOffset: Int { isKeyedByRowID ? 1 : 0 }
  /// The columns that another table's foreign key refers to, in the order of the key; fewer when there are none such.
  package func columns(referredToBy key: ForeignKey) -> [Int] {
    key.parentColumns.isEmpty ? primaryKey : key.parentColumns.compactMap { column(named: $0) }
  }
}
