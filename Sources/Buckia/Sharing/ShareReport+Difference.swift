import BuckiaApply
import BuckiaDiff
import BuckiaFormat
import BuckiaBytes
import BuckiaSharing
import SQLiteChangesets
import SQLiteSchemas

extension ShareReport {
  /// What a difference sends.
  ///
  /// - Parameters:
  ///   - difference: What is sent.
  ///   - departed: The rows that have left the scope.
  ///   - onLeave: What becomes of them.
  ///   - listingChanges: Whether the rows are listed.
  /// - Throws: `ChangesetError`, `ByteStreamError`.
  static func tables(
    _ difference: DatabaseDifference, _ departed: DepartedRows, onLeave: LeavePolicy, listingChanges: Bool
  ) throws -> [Table] {
    var tables = difference.tables.map { table in
      let name = TableName(table.definition.name)
      let left = departed.counts[name] ?? 0
      let withdrawn = onLeave == .withdraw ? left : 0
      return Table(
        name: name.text, columns: table.definition.columns.map(\.name), inserted: table.inserted,
        updated: table.updated,
        deleted: table.deleted - withdrawn, withdrawn: withdrawn, kept: left - withdrawn, changes: [])
    }
    guard listingChanges else { return tables }
    let places = Dictionary(tables.enumerated().map { (TableName($1.name), $0) }) { first, _ in first }
    try Changesets.forEachChange(of: difference.changeset) { change, reader, bytes in
      guard let table = reader.table, let place = places[TableName(table.name)] else { return }
      let row = change.operation == .insert ? reader.new : reader.old
      let keyed = row.indices.filter { table.isKey($0) && row[$0].kind != .null }
      let key = (keyed.isEmpty ? Array(row.indices) : keyed).map { ChangesetValue(row[$0], in: bytes) ?? .null }
      tables[place].changes.append(Change(operation: change.operation, key: key))
    }
    return tables
  }
}

extension Annotations {
  /// Says which changes come from elsewhere or withdraw rows, and what others call the rows; nil where there is nothing to say.
  init?(_ runs: [OriginRun], naming: RowNaming, origin id: KSUID) throws {
    let keys = try RowKeys(naming)
    let isNews = runs.contains { $0.isNews(in: id) }
    guard isNews || !keys.isEmpty else { return nil }
    var origins: [KSUID] = []
    var places: [KSUID: Int] = [:]
    func place(of diff: KSUID) -> Int {
      if let known = places[diff] { return known }
      origins.append(diff)
      places[diff] = origins.count - 1
      return origins.count - 1
    }
    let described =
      !isNews
      ? []
      : runs.map { run in
        Run(
          count: run.count, origin: place(of: run.diff), kind: run.isWithdrawal ? .withdraw : .edit,
          columns: run.columns.sorted { $0.key < $1.key }.map {
            ColumnOrigin(column: $0.key, origin: place(of: $0.value))
          })
      }
    self.init(origins: origins, runs: described, keys: keys.isEmpty ? nil : keys)
  }
}

extension RowKeys {
  /// What the annotations of a share say of its rows.
  ///
  /// - Throws: `BuckiaError` when the ledger is damaged.
  fileprivate init(_ naming: RowNaming) throws {
    self.init()
    var places: [[UInt8]: Int] = [:]
    func place(of replica: [UInt8]) throws -> Int {
      if let known = places[replica] { return known }
      guard let id = ReplicaID(replica) else {
        throw BuckiaError(.alteredLedger, "the names of rows in the ledger are not as Buckia makes them")
      }
      replicas.append(id)
      places[replica] = replicas.count - 1
      return replicas.count - 1
    }
    for run in naming.runs {
      let names = try run.names.map { name in
        Names(
          replica: try place(of: name.replica), keys: name.keys, versions: name.versions,
          copies: name.copies.map { Copies(inserted: $0.inserted, deleted: $0.deleted) })
      }
      runs.append(Run(count: run.count, names: names))
    }
    for row in naming.references {
      references.append(
        Reference(table: row.table, key: row.key, replica: try place(of: row.replica), name: row.name))
    }
    links = naming.links.map { link in
      Link(
        table: link.table, columns: link.key.columns, parent: TableName(link.key.parent),
        parentColumns: link.key.parentColumns)
    }
  }
}

extension DiffOutput {
  /// Whether more than one file can go there.
  var takesSeveral: Bool { if case .folder = self { true } else { false } }
}
