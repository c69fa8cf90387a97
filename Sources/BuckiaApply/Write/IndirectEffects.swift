import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Finds the rows that triggers write while changes are applied, for an observer.
///
/// Triggers can write to any table. TEMP triggers therefore record each written row in TEMP tables, which are rolled
/// back with the rows. They also fire for the rows of changes, which is why ``report(to:)`` alone reports all rows. A
/// row that is written while changes of its own table are applied counts as written by a change.
struct IndirectEffects {
  /// A table whose written rows are recorded.
  private struct Watched {
    let definition: TableDefinition
    var name: TableName { TableName(definition.name) }
    /// The TEMP table with the records.
    let store: String
    let keyCount: Int
    /// The number of columns of a whole row; 0 if rows are not wanted or too wide.
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
  ///   - wantsRows: True if whole rows are wanted.
  ///   - session: The session.
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

  /// True if the written rows of a table are recorded.
  func watches(_ table: TableName) -> Bool { places[table] != nil }

  /// Sets the table whose changes are applied from now on.
  func begin(_ table: TableName) throws {
    guard !watched.isEmpty else { return }
    try session.connection.run(cached: "UPDATE \(Self.current) SET place = ?1", Int64(places[table] ?? -1))
  }

  /// Receives the rows, each with its table.
  typealias Report = (RowEffect, TableDefinition) throws -> Void

  /// Reports the recorded rows, and drops the triggers.
  func report(to observer: Report) throws {
    for name in triggers { try session.connection.execute("DROP TRIGGER IF EXISTS temp.\(name)") }
    for table in watched {
      try session.connection.forEachRow(of: "SELECT * FROM temp.\(table.store) ORDER BY rowid") { row in
        try report(row, of: table, to: observer)
      }
      try session.connection.execute("DELETE FROM temp.\(table.store)")
    }
  }

  // MARK: Recording

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
