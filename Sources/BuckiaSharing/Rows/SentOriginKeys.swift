import BuckiaApply
import BuckiaBytes
import BuckiaDiff
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The names that a share gives to rows which other replicas have sent, by which receivers find rows that they have:
/// the replicas that the rows come from, the keys there, and the version that was accepted from there if the row has
/// changed since.
package struct SentOriginKeys {
  /// The tables whose integer keys this replica assigns.
  package private(set) var ownKeys: [TableName] = []
  /// The names of the rows.
  package private(set) var naming = RowNaming()

  /// Looks up the rows that a changeset changes, and those that they refer to.
  ///
  /// - Parameters:
  ///   - changeset: The changes.
  ///   - definitions: Its tables.
  ///   - share: The share.
  ///   - baseline: The rows that the share deletes without having sent them.
  ///   - contents: The rows that only their content identifies.
  ///   - scope: The scope of the share.
  ///   - schema: The schema of the database.
  /// - Throws: `SQLiteError`, `ChangesetError`, `ByteStreamError`; `LedgerError` when the ledger is damaged.
  package init(
    in changeset: TemporaryBuffer, of definitions: [TableDefinition], _ share: ShareEntry,
    _ unsentDeletions: UnsentDeletions,
    _ contents: SentContents, _ scope: ShareScope, _ schema: SchemaReader, on connection: borrowing SQLiteConnection
  ) throws {
    let connection = SQLiteConnection(sharing: connection)
    naming.links = scope.keyLinks
    let links = naming.links
    let here = try schema.definitions(of: definitions.map { TableName($0.name) }, with: links)
    let keyed = here.namesWithOwnKeys(links)
    ownKeys = definitions.map { TableName($0.name) }.filter { keyed.contains($0) }
    let columns = KeyColumns(here, keyed: keyed, links: links)
    let tables = try KeyedTables(definitions, schema)
    let names = OriginKeys(Provenance(on: connection), on: connection)
    var named: Set<TableName> = []
    let parents = try KeyedTables(here, schema)
    for name in Set(here.map { TableName($0.name) }) {
      if let table = parents[name], try names.mayName(table) { named.insert(name) }
    }
    guard !named.isEmpty || !contents.isEmpty else { return }
    let versions = TakenVersions(on: connection)
    let readers =
      try AcknowledgementEntry.all(of: share.number, on: connection).map(\.replica)
      + ReplicaSigners.apart(readersOf: share.number, on: connection)
    let layouts = Dictionary(
      definitions.map { table in
        let name = TableName(table.name)
        let targets = columns.tables(in: name, columns: table.changesetColumns)
        return (name, targets.map { target in target.flatMap { named.contains($0) ? $0 : nil } })
      }, uniquingKeysWith: { first, _ in first })
    var runs = NamedRuns()
    // Rows of the diff are named with their changes.
    var changed: [TableName: [ClosedRange<Int64>]] = [:]
    let referred = Set(layouts.values.joined().compactMap { $0 })
    var references: [TableName: [Int64: [OriginKeys.Sent]]] = [:]
    func called(
      _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, _ header: ChangesetTable, _ name: TableName
    ) throws -> ([OriginKeys.Sent], key: Int64?) {
      let row = change.operation == .insert ? reader.new : reader.old
      guard named.contains(name), let table = tables.table(of: header), table.hasKey(row) else { return ([], nil) }
      let key = keyed.contains(name) ? table.integerKey(of: row, bytes) : nil
      let isUnknown = change.operation == .delete && unsentDeletions.gone[name]?.contains(table.key(row, bytes)) == true
      // Another share may have sent the deletion already. The row of a withdrawal is still here.
      let isGone =
        try change.operation == .delete && key != nil && !table.finds(table.lookup, row, bytes, on: connection)
      var found = try names.names(of: row, bytes, key: key, in: table, for: readers, isGone: isGone) {
        entry, brought in
        switch change.operation {
        case .insert: try versions.changed(since: entry, brought, row, bytes, of: table)
        case .delete: try isUnknown ? versions.taken(from: entry, brought, table.foldedKey(row, bytes)) : nil
        case .update: nil
        }
      }
      if change.operation == .insert, let key, !found.isEmpty, found.allSatisfy({ $0.version != nil }),
        try names.wasDeleted(IntegerKey.encoded(key), of: table),
        try !RowNotes(.kept, of: name).contain(table.key(row, bytes), on: connection)
      {
        // A share has sent the deletion, and the app has given the key to another row since.
        for called in found { try names.keep(called.name, of: key, in: name) }
        found = []
      }
      if isGone {
        // The key of a deleted row may be reused.
        try names.markDeleted(row, bytes, of: table)
      } else if change.operation != .delete, let key, referred.contains(name) {
        if let last = changed[name]?.last, last.upperBound < key, last.upperBound + 1 == key {
          changed[name]?.removeLast()
          changed[name]?.append(last.lowerBound...key)
        } else {
          changed[name, default: []].append(key...key)
        }
      }
      return (found, key)
    }
    try Changesets.forEachChange(of: changeset) { change, reader, bytes in
      guard let header = reader.table else { return }
      let name = TableName(header.name)
      let row = change.operation == .insert ? reader.new : reader.old
      if let counts = try contents.counts(header, row, bytes) {
        runs.add(counts)
      } else {
        let (found, key) = try called(change, reader, bytes, header, name)
        runs.add(found, for: key)
      }
      guard let targets = layouts[name] else { return }
      for values in [reader.old, reader.new] {
        for (place, target) in targets.enumerated() where place < values.count && values[place].kind == .integer {
          guard let target, tables[name].map({ target != name || !$0.keyPlaces.contains(place) }) ?? true else {
            continue
          }
          let key = values[place].integer(in: bytes)
          guard references[target]?[key] == nil, let parent = parents[target] else { continue }
          references[target, default: [:]][key] = try parent.withRow(forKey: key) {
            try names.names(of: $0, $1, key: key, in: parent, for: readers)
          }
        }
      }
    }
    naming.runs = runs.finished
    let changedKeys = changed.mapValues { KeyIntervals($0) }
    naming.references = references.sorted { $0.key.text < $1.key.text }.flatMap { table, rows in
      rows.filter { changedKeys[table]?.contains($0.key) != true }.sorted { $0.key < $1.key }.flatMap { key, names in
        names.map { RowNaming.Reference(table: table, key: key, replica: $0.name.replica, name: $0.name.key) }
      }
    }
  }
}

/// Collects the names of neighbouring rows.
private struct NamedRuns {
  private struct Run {
    var count: Int64 = 0
    let shape: [Shape]
    var keys: [[Int64]]
    var versions: [[UInt64]]
  }

  /// A replica; true if it uses other keys than this database; true if the rows have changed since they came from
  /// there.
  private struct Shape: Equatable {
    let replica: [UInt8]
    let isOther: Bool
    let isChanged: Bool
    var copies: CopyCounts.Count?
  }

  private var runs: [Run] = []
  private var isNamed = false

  /// Adds a row.
  ///
  /// - Parameters:
  ///   - names: The names of the row; empty if only this database names it.
  ///   - key: The local integer key; nil for a key that is the same everywhere.
  mutating func add(_ names: [OriginKeys.Sent], for key: Int64?) {
    if !names.isEmpty { isNamed = true }
    let shape = names.map {
      Shape(replica: $0.name.replica, isOther: key != nil && $0.name.key != key, isChanged: $0.version != nil)
    }
    let last = count(shape)
    for (place, name) in names.enumerated() {
      if shape[place].isOther { runs[last].keys[place].append(name.name.key) }
      if let version = name.version { runs[last].versions[place].append(version) }
    }
  }

  /// Adds a row that only its content identifies.
  mutating func add(_ counts: CopyCounts) {
    isNamed = true
    let origins = counts.byOrigin.sorted { $0.key.lexicographicallyPrecedes($1.key) }
    let shape = origins.map { Shape(replica: $0.key, isOther: false, isChanged: false, copies: $0.value) }
    count(shape)
  }

  /// Counts a row of a shape.
  ///
  /// - Returns: The place of its run.
  @discardableResult
  private mutating func count(_ shape: [Shape]) -> Int {
    if runs.last?.shape != shape {
      runs.append(Run(shape: shape, keys: shape.map { _ in [] }, versions: shape.map { _ in [] }))
    }
    runs[runs.count - 1].count += 1
    return runs.count - 1
  }

  /// The runs; empty if no row has a name.
  var finished: [RowNaming.Run] {
    guard isNamed else { return [] }
    return runs.map { run in
      RowNaming.Run(
        count: run.count,
        names: run.shape.indices.map {
          RowNaming.Names(
            replica: run.shape[$0].replica, keys: run.keys[$0], versions: run.versions[$0], copies: run.shape[$0].copies
          )
        })
    }
  }
}

/// The versions of rows that were last accepted from streams: the hashes of the sent rows.
final class TakenVersions {
  /// Cached facts about a stream's table.
  private struct Stream {
    /// The columns of the stream in lower case; nil if unknown.
    let columns: Set<String>?
    let hasUntaken: Bool
    let hasMapped: Bool
  }

  /// The version of a row that was never accepted.
  private static let none: UInt64 = 0

  private let connection: SQLiteConnection
  private var streams: [ProvenanceEntry: Stream] = [:]

  init(on connection: borrowing SQLiteConnection) { self.connection = SQLiteConnection(sharing: connection) }

  private func stream(_ entry: ProvenanceEntry) throws -> Stream {
    if let known = streams[entry] { return known }
    let state = try StateEntry.all(on: connection).first {
      $0.owner == .sender(entry.sender) && $0.stream == entry.stream && $0.table == entry.table
    }
    let found = Stream(
      columns: try state.map { Set(try TableState($0, at: connection.path).columns.map { ASCIIName.folded($0) }) },
      hasUntaken: try RowNotes(untakenFrom: entry.number).exist(on: connection),
      hasMapped: try MappedRows(of: entry.number).exist(on: connection))
    streams[entry] = found
    return found
  }

  /// The version of a row that was last accepted from a stream.
  ///
  /// - Parameters:
  ///   - brought: The stream's last version of the row.
  ///   - key: The local key in the format of changesets.
  /// - Throws: `SQLiteError`; `LedgerError` when the ledger is damaged.
  func taken(from entry: ProvenanceEntry, _ brought: RowProvenance, _ key: [UInt8]) throws -> UInt64 {
    let stream = try stream(entry)
    let mapped =
      try stream.hasMapped ? MappedRows(of: entry.number).hash(ofLocal: key, on: connection) : nil
    switch try stream.hasUntaken ? RowNotes(untakenFrom: entry.number).state(of: key, on: connection) : nil {
    case nil: return mapped ?? brought.hash
    case RowState.absent?: return Self.none
    // The recorded hash is that of the local row, which differs from the sent one if keys are mapped.
    case .present(let hash)?: return mapped == nil ? hash : Self.none
    }
  }

  /// The accepted version if the row has changed since; nil if it has not.
  ///
  /// - Parameters:
  ///   - row: The row to send.
  ///   - table: The sent table.
  /// - Throws: As ``taken(from:_:_:)``.
  func changed(
    since entry: ProvenanceEntry, _ brought: RowProvenance, _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable
  ) throws -> UInt64? {
    let stream = try stream(entry)
    var hash = StreamRowHash()
    for (place, column) in table.columns.enumerated()
    where row[place].isDefined && stream.columns?.contains(ASCIIName.folded(column)) ?? true {
      hash.add(row[place], bytes, table.seeds[place])
    }
    if !stream.hasUntaken, hash.value == brought.hash { return nil }
    let key = table.foldedKey(row, bytes)
    let isTaken = try !stream.hasUntaken || RowNotes(untakenFrom: entry.number).state(of: key, on: connection) == nil
    return try isTaken && hash.value == brought.hash ? nil : taken(from: entry, brought, key)
  }
}
