import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Finds the foreign keys that a diff has broken, after it was applied with enforcement off (``ApplySession/begin()``).
///
/// Only rows that the changes wrote, and rows that referred to removed ones, are examined: earlier violations are not
/// reported, and the rest of the database is not read.
struct ForeignKeyAudit {
  let session: ApplySession
  /// The changed tables, with the mapping of their columns to those of the changes.
  let changed: [TableName: TableMatch]
  /// The records made while changes were applied.
  let watch: ForeignKeyWatch
  /// The colliding keys that were found.
  let collisions: KeyCollisions?

  /// Looks at every foreign key whose table or parent was changed.
  ///
  /// - Parameters:
  ///   - written: Rows that were written beside the changes, by table.
  ///   - last: The greatest rowids before the changes of tables without a key.
  /// - Returns: The rows that refer to nothing or to another row than before, by foreign key.
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

/// Records, while changes are applied with foreign keys unenforced, the effects that the changes do not show.
///
/// A change has the key of its row, which determines the rows that lose a parent by its primary key. It does not show
/// the local value of a UNIQUE column that differed from the author's, nor the effects of triggers. TEMP triggers
/// record these, and are dropped when the changes have been applied. Most databases need none.
struct ForeignKeyWatch {
  /// The prefix of the triggers' names.
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

  /// Begins to record what the audit needs.
  ///
  /// - Parameters:
  ///   - changed: The tables that are to be changed.
  ///   - seesTriggers: True if triggers may change others.
  ///   - session: The session.
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

  /// Creates a table for the values of some columns, and triggers that record them.
  private mutating func note(
    _ values: [String], _ columns: [Int], of table: TableDefinition, at events: [String]
  ) throws -> KeyStore {
    let store = try KeyStore("\(removed.count + written.count)", for: table, columns, on: session.connection)
    for event in events {
      let name = "\(Self.prefix)trigger_\(triggers.count)"
      // Not OR IGNORE, because the outer statement's clause overrides it inside a trigger.
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

  /// The table of the values that rows have lost in these columns, with columns `k0…`; nil if they are not watched.
  func valuesRemoved(from table: TableName, _ columns: [String]) -> KeyStore? {
    removed[Watched(table: table, columns: columns)]
  }

  /// True if the lost values of a table are recorded.
  func notesRemovals(from table: TableName) -> Bool { removed.keys.contains { $0.table == table } }

  /// The table of the keys of written rows, with columns `k0…`; nil if they are not watched.
  func rowsWritten(to table: TableName) -> KeyStore? { written[table] }

  /// True if all writes are watched, also those of triggers.
  var seesEverything: Bool { !written.isEmpty }

  /// Drops the triggers and their records.
  func stop() throws {
    for name in triggers { try session.connection.execute("DROP TRIGGER IF EXISTS temp.\(name)") }
    for store in Array(removed.values) + Array(written.values) { try store.clear(on: session.connection) }
  }
}

extension TableDefinition {
  /// The number of columns in changes before those of the table: 1 if the key is the rowid.
  var columnOffset: Int { isKeyedByRowID ? 1 : 0 }
  /// The columns that another table's foreign key refers to, in the order of the key; fewer when there are none such.
  package func columns(referredToBy key: ForeignKey) -> [Int] {
    key.parentColumns.isEmpty ? primaryKey : key.parentColumns.compactMap { column(named: $0) }
  }
}
