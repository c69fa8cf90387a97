import BuckiaApply
import BuckiaByteStreams
import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// What a share says of the keys of its rows, so that its readers find the rows that they have already: what they call them, or what
/// those call them that they came from.
package struct SentNames {
  /// The tables whose rows have integer keys that this replica gives out itself.
  package private(set) var ownKeys: [TableName] = []
  /// What others call the rows.
  package private(set) var naming = RowNaming()

  /// Looks up the rows that a changeset changes, and those that they refer to.
  ///
  /// - Parameters:
  ///   - changeset: The changes.
  ///   - definitions: Its tables.
  ///   - share: The share.
  ///   - scope: What is shared.
  ///   - schema: The schema of the database.
  /// - Throws: `SQLiteError`, `ChangesetError`, `ByteStreamError`.
  package init(
    in changeset: TemporaryBuffer, of definitions: [TableDefinition], _ share: ShareEntry, _ scope: ShareScope,
    _ schema: SchemaReader, on connection: borrowing SQLiteConnection
  ) throws {
    let connection = SQLiteConnection(sharing: connection)
    naming.links = scope.keyLinks
    let links = naming.links
    let here = try schema.definitions(of: definitions.map { TableName($0.name) }, with: links)
    let keyed = here.namesWithOwnKeys(links)
    ownKeys = definitions.map { TableName($0.name) }.filter { keyed.contains($0) }
    let columns = KeyColumns(here, keyed: keyed, links: links)
    let tables = try KeyedTables(definitions, schema)
    let names = RowNames(Vouchers(on: connection), on: connection)
    var named: Set<TableName> = []
    let parents = try KeyedTables(here, schema)
    for name in keyed {
      if let table = parents[name], try names.mayName(table) { named.insert(name) }
    }
    guard !named.isEmpty else { return }
    let readers = try AcknowledgementEntry.all(of: share.number, on: connection).map(\.replica)
    let layouts = Dictionary(
      definitions.map { table in
        let name = TableName(table.name)
        let targets = columns.tables(in: name, columns: table.changesetColumns)
        return (name, targets.map { target in target.flatMap { named.contains($0) ? $0 : nil } })
      }, uniquingKeysWith: { first, _ in first })
    var runs = NamedRuns()
    // Rows of the diff are named where they are.
    var changed: [TableName: Set<Int64>] = [:]
    var references: [TableName: [Int64: [RowNames.Name]]] = [:]
    try Changesets.forEachChange(of: changeset) { change, reader, bytes in
      guard let header = reader.table else { return }
      let name = TableName(header.name)
      let row = change.operation == .insert ? reader.new : reader.old
      var found: [RowNames.Name] = []
      var key: Int64?
      if named.contains(name), let table = tables.table(of: header), let local = table.integerKey(of: row, bytes) {
        found = try names.names(of: local, in: table, for: readers)
        key = local
        if change.operation == .delete {
          // What is gone may give its key to another row.
          try names.forget(row, bytes, of: table, unlessHereOn: connection)
        } else {
          changed[name, default: []].insert(local)
        }
      }
      runs.add(found, for: key)
      guard let targets = layouts[name] else { return }
      for values in [reader.old, reader.new] {
        for (place, target) in targets.enumerated() where place < values.count && values[place].kind == .integer {
          guard let target, tables[name].map({ target != name || !$0.keyPlaces.contains(place) }) ?? true else {
            continue
          }
          let key = values[place].integer(in: bytes)
          guard references[target]?[key] == nil, let parent = parents[target] else { continue }
          references[target, default: [:]][key] = try names.names(of: key, in: parent, for: readers)
        }
      }
    }
    naming.runs = runs.finished
    naming.references = references.sorted { $0.key.text < $1.key.text }.flatMap { table, rows in
      rows.filter { changed[table]?.contains($0.key) != true }.sorted { $0.key < $1.key }.flatMap { key, names in
        names.map { RowNaming.Reference(table: table, key: key, replica: $0.replica, name: $0.key) }
      }
    }
  }
}

/// Gathers what neighbouring rows are called.
private struct NamedRuns {
  private struct Run {
    var count: Int64 = 0
    /// The replicas, and whether they call the rows otherwise than this database does.
    let shape: [Shape]
    var keys: [[Int64]]
  }

  private struct Shape: Equatable {
    let replica: [UInt8]
    let isOther: Bool
  }

  private var runs: [Run] = []
  private var isNamed = false

  /// Adds a row.
  ///
  /// - Parameters:
  ///   - names: What it is called; empty where this database alone calls it anything.
  ///   - key: Its key here.
  mutating func add(_ names: [RowNames.Name], for key: Int64?) {
    if !names.isEmpty { isNamed = true }
    let shape = names.map { Shape(replica: $0.replica, isOther: $0.key != key) }
    if runs.last?.shape != shape { runs.append(Run(shape: shape, keys: shape.map { _ in [] })) }
    let last = runs.count - 1
    runs[last].count += 1
    for (place, name) in names.enumerated() where shape[place].isOther { runs[last].keys[place].append(name.key) }
  }

  /// The runs; none where no row has a name.
  var finished: [RowNaming.Run] {
    guard isNamed else { return [] }
    return runs.map { run in
      RowNaming.Run(
        count: run.count, names: zip(run.shape, run.keys).map { RowNaming.Names(replica: $0.replica, keys: $1) })
    }
  }
}
