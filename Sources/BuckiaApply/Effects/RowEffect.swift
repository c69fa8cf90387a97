import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A row that applying has written, as the local table has it.
package struct RowEffect: Sendable, Equatable {
  /// What wrote the row.
  package enum Cause: Sendable {
    /// A change of the diff.
    case change
    /// An INSERT of the diff in the place of the local row with its key.
    case replacement
    /// A trigger, because of another row.
    case indirect
  }

  /// The table.
  package let table: TableName
  /// What happened to the row.
  package let operation: ChangeOperation
  /// What wrote it.
  package let cause: Cause
  /// The values of its key in the order of the key, as a record of the changeset format. Empty where only its content tells the
  /// row apart.
  package let key: [UInt8]
  /// The row before, as a record with a value for each local column; nil for an INSERT, and where the observer wants no whole rows.
  package let before: [UInt8]?
  /// The row afterwards; nil for a DELETE, and where the observer wants no whole rows.
  package let after: [UInt8]?
}

/// Is told of every row that applying writes.
///
/// Effects are reported when the row is written, those of triggers when all changes of a diff are. A
/// savepoint or a transaction may be rolled back afterwards: then the observer is rewound to where it was.
package protocol RowEffectObserver: AnyObject {
  /// Whether whole rows are wanted, which costs two queries a row. Otherwise `before` and `after` are nil.
  var wantsRows: Bool { get }
  /// A row was written. May throw to stop; everything is then rolled back.
  func didWrite(_ effect: RowEffect) throws
  /// How many effects have been reported.
  var mark: Int { get }
  /// Forgets the effects since a mark.
  func rewind(to mark: Int)
}

/// The rows of one table that applying has changed, for an application that shows them.
public struct ChangedRows: Sendable, Equatable {
  /// The table.
  public let table: String
  /// The keys of the changed rows, each once and in the order of the first change: the values of the primary key's columns, or
  /// the rowid. Nil where there were too many to list, and where rows have no key.
  public let keys: [[ChangesetValue]]?
}

/// Gathers the keys of changed rows, up to a limit.
package final class ChangedRowRecorder: RowEffectObserver {
  package let wantsRows = false

  private let limit: Int
  private var rows: [(table: TableName, key: [UInt8])] = []
  /// Tables with rows beyond the limit. One stays here when those are rolled back: it is then reported without keys.
  private var unlisted: [TableName] = []

  /// Begins with nothing.
  ///
  /// - Parameter limit: How many keys are listed at most.
  package init(limit: Int) { self.limit = limit }

  package func didWrite(_ effect: RowEffect) {
    if rows.count < limit {
      rows.append((effect.table, effect.key))
    } else if !unlisted.contains(effect.table) {
      unlisted.append(effect.table)
    }
  }

  package var mark: Int { rows.count }

  package func rewind(to mark: Int) { rows.removeLast(rows.count - mark) }

  /// The changed rows, by table in the order of the first change.
  ///
  /// - Throws: `ChangesetError`; never for records that applying has made.
  package func changedRows() throws -> [ChangedRows] {
    var order: [TableName] = []
    var keys: [TableName: [[UInt8]]] = [:]
    var seen: [TableName: Set<[UInt8]>] = [:]
    var withoutKeys = Set(unlisted)
    for row in rows {
      if seen[row.table] == nil { order.append(row.table) }
      if row.key.isEmpty { withoutKeys.insert(row.table) }
      if seen[row.table, default: []].insert(row.key).inserted { keys[row.table, default: []].append(row.key) }
    }
    order += unlisted.filter { seen[$0] == nil }
    return try order.map { table in
      guard !withoutKeys.contains(table) else { return ChangedRows(table: table.text, keys: nil) }
      let keys = try (keys[table] ?? []).map { try ChangesetValue.record($0).compactMap { $0 } }
      return ChangedRows(table: table.text, keys: keys)
    }
  }
}

/// Finds the rows that triggers write while changes are applied, for whoever wants to know.
///
/// Triggers can write to any table. So TEMP triggers note each row that is written, in TEMP tables that a rolled-back savepoint
/// takes back with the rows. They fire whoever writes, so all rows are reported by ``report(to:)`` alone. A row that is written while changes of its own table are applied counts as
/// written by a change.
struct IndirectEffects {
  /// A table whose rows are noted.
  private struct Watched {
    let definition: TableDefinition
    var name: TableName { TableName(definition.name) }
    /// The TEMP table that holds the notes.
    let store: String
    let keyCount: Int
    /// How many columns a whole row has; 0 where rows are not wanted or are too wide.
    let width: Int
  }

  private static let prefix = "\(SQLiteConnection.temporaryPrefix)effect_"
  private static let current = "temp.\(prefix)current"

  private let session: ApplySession
  private var watched: [Watched] = []
  private var places: [TableName: Int] = [:]
  private var triggers: [String] = []

  /// Begins to watch.
  ///
  /// - Parameters:
  ///   - wantsRows: Whether whole rows are wanted.
  ///   - session: What is known of the schema.
  /// - Throws: `SQLiteError` when the schema cannot be read or the triggers cannot be made.
  init(wantsRows: Bool, _ session: ApplySession) throws {
    self.session = session
    let schema = try session.schema()
    for entry in schema.entries where entry.kind == .table {
      try watch(schema.definition(of: entry), wantsRows: wantsRows)
    }
    guard !watched.isEmpty else { return }
    try session.connection.execute(
      "CREATE TEMP TABLE IF NOT EXISTS \(Self.prefix)current(place); DELETE FROM \(Self.current); INSERT INTO \(Self.current) VALUES (-1)"
    )
  }

  /// Whether the rows of a table are noted here.
  func watches(_ table: TableName) -> Bool { places[table] != nil }

  /// Says of which table changes are applied from now on.
  func begin(_ table: TableName) throws {
    guard !watched.isEmpty else { return }
    try session.connection.run(cached: "UPDATE \(Self.current) SET place = ?1", Int64(places[table] ?? -1))
  }

  /// What takes the rows: each with its table.
  typealias Report = (RowEffect, TableDefinition) throws -> Void

  /// Reports the rows that were noted, and takes the triggers away.
  func report(to observer: Report) throws {
    for name in triggers { try session.connection.execute("DROP TRIGGER IF EXISTS temp.\(name)") }
    for table in watched {
      try session.connection.forEachRow(of: "SELECT * FROM temp.\(table.store) ORDER BY rowid") { row in
        try report(row, of: table, to: observer)
      }
      try session.connection.execute("DELETE FROM temp.\(table.store)")
    }
  }

  // MARK: Noting

  private mutating func watch(_ table: TableDefinition, wantsRows: Bool) throws {
    let key = table.isKeyedByRowID && table.rowIDName == nil ? [] : table.keySQL
    let row = wantsRows ? table.changesetColumnsSQL : []
    // Operation and cause, the key and the row, old and new.
    let fits = 2 + 2 * (key.count + row.count) <= session.connection.columnLimit
    let columns = fits ? row : []
    let place = watched.count
    let store = "\(Self.prefix)\(key.count)_\(columns.count)_\(place)"
    let names = ["operation", "direct"] + (0..<2 * (key.count + columns.count)).map { "v\($0)" }
    try session.connection.execute(
      "CREATE TEMP TABLE IF NOT EXISTS \(store)(\(names.joined(separator: ", "))); DELETE FROM temp.\(store)")
    func values(_ prefix: String?) -> [String] {
      (key + columns).map { name in prefix.map { "\($0).\(name)" } ?? "NULL" }
    }
    for (operation, event, old, new) in [
      (ChangeOperation.insert, "INSERT", nil, "NEW"), (.update, "UPDATE", "OLD", "NEW"),
      (.delete, "DELETE", "OLD", nil as String?),
    ] {
      let trigger = "\(Self.prefix)trigger_\(triggers.count)"
      let noted =
        ["\(operation.rawValue)", "(SELECT place = \(place) FROM \(Self.prefix)current)"] + values(old) + values(new)
      try session.connection.execute(
        """
        DROP TRIGGER IF EXISTS temp.\(trigger);
        CREATE TEMP TRIGGER \(trigger) AFTER \(event) ON main.\(TableName(table.name).quoted) BEGIN
          INSERT INTO \(store) VALUES (\(noted.joined(separator: ", ")));
        END
        """)
      triggers.append(trigger)
    }
    places[TableName(table.name)] = place
    watched.append(Watched(definition: table, store: store, keyCount: key.count, width: columns.count))
  }

  // MARK: Reporting

  private func report(_ noted: borrowing SQLiteStatement, of table: Watched, to observer: Report) throws {
    guard let operation = ChangeOperation(rawValue: UInt8(clamping: noted.integer(at: 0))) else { return }
    let cause = noted.integer(at: 1) != 0 ? RowEffect.Cause.change : .indirect
    let half = table.keyCount + table.width
    func version(from first: Int) -> (key: [UInt8], row: [UInt8]?) {
      let row = first + table.keyCount
      return (noted.record(of: first..<row), table.width > 0 ? noted.record(of: row..<(first + half)) : nil)
    }
    let (old, new) = (version(from: 2), version(from: 2 + half))
    func effect(_ operation: ChangeOperation, _ key: [UInt8], _ before: [UInt8]?, _ after: [UInt8]?) -> RowEffect {
      RowEffect(table: table.name, operation: operation, cause: cause, key: key, before: before, after: after)
    }
    switch operation {
    case .insert: try observer(effect(.insert, new.key, nil, new.row), table.definition)
    case .delete: try observer(effect(.delete, old.key, old.row, nil), table.definition)
    case .update where old.key == new.key: try observer(effect(.update, new.key, old.row, new.row), table.definition)
    case .update:
      // A trigger has given the row another key.
      try observer(effect(.delete, old.key, old.row, nil), table.definition)
      try observer(effect(.insert, new.key, nil, new.row), table.definition)
    }
  }
}
