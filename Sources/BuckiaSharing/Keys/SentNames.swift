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
    naming.links = scope.references.map { reference in
      let key = ForeignKey(
        columns: reference.columns, parent: reference.parent.text, parentColumns: reference.parentColumns)
      return (reference.table, key)
    }
    let links = naming.links
    let here = try schema.definitions(of: definitions.map { TableName($0.name) }, with: links)
    let keyed = Set(here.filter { $0.hasOwnKeys(links) }.map { TableName($0.name) })
    ownKeys = definitions.map { TableName($0.name) }.filter { keyed.contains($0) }
    let columns = KeyColumns(here, keyed: keyed, links: links)
    let tables = try KeyedTables(definitions, schema)
    let names = RowNames(Vouchers(on: connection), on: connection)
    var named: Set<TableName> = []
    for name in keyed {
      if let table = tables[name] {
        if try names.mayName(table) { named.insert(name) }
      } else if try RowNameEntry.exist(of: name, on: connection) {
        named.insert(name)
      }
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
    var references: [TableName: [Int64: RowNames.Name]] = [:]
    try Changesets.forEachChange(of: changeset) { change, reader, bytes in
      guard let header = reader.table else { return }
      let name = TableName(header.name)
      let row = change.operation == .insert ? reader.new : reader.old
      var found: (RowNames.Name, Int64)?
      if named.contains(name), let table = tables[name], table.keyPlaces.count == 1,
        row[table.keyPlaces[0]].kind == .integer
      {
        let key = row[table.keyPlaces[0]].integer(in: bytes)
        found = try names.name(of: key, in: table, for: readers).map { ($0, key) }
        // What is gone may give its key to another row.
        if change.operation == .delete { try names.forget(row, bytes, of: table, unlessHereOn: connection) }
      }
      runs.add(found?.0, for: found?.1)
      guard let targets = layouts[name] else { return }
      for values in [reader.old, reader.new] {
        for (place, target) in targets.enumerated() where place < values.count && values[place].kind == .integer {
          guard let target, tables[name].map({ target != name || !$0.keyPlaces.contains(place) }) ?? true else { continue }
          let key = values[place].integer(in: bytes)
          guard references[target]?[key] == nil,
            let other = try names.otherName(of: key, in: target, for: readers)
          else { continue }
          references[target, default: [:]][key] = other
        }
      }
    }
    naming.runs = runs.finished
    naming.references = references.sorted { $0.key.text < $1.key.text }.flatMap { table, rows in
      rows.sorted { $0.key < $1.key }.map { key, name in
        RowNaming.Reference(table: table, key: key, replica: name.replica, name: name.key)
      }
    }
  }
}

/// Gathers what neighbouring rows are called.
private struct NamedRuns {
  private var runs: [(count: Int64, replica: [UInt8]?, keys: [Int64])] = []
  private var isNamed = false

  /// Adds a row.
  ///
  /// - Parameters:
  ///   - name: What it is called; nil where this database alone calls it anything.
  ///   - key: Its key here.
  mutating func add(_ name: RowNames.Name?, for key: Int64?) {
    if name != nil { isNamed = true }
    let isOther = name.map { $0.key != key } ?? false
    let keys = isOther ? name.map { [$0.key] } ?? [] : []
    if let last = runs.last, last.replica == name?.replica, last.keys.isEmpty == keys.isEmpty {
      runs[runs.count - 1].count += 1
      runs[runs.count - 1].keys += keys
    } else {
      runs.append((1, name?.replica, keys))
    }
  }

  /// The runs; none where no row has a name.
  var finished: [RowNaming.Run] {
    isNamed ? runs.map { RowNaming.Run(count: $0.count, replica: $0.replica, keys: $0.keys) } : []
  }
}
