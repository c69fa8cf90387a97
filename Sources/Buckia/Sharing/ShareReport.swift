/// What ``DatabaseManager/share(_:to:output:options:signedBy:progress:)`` did.
public struct ShareReport: Hashable, Codable, Sendable {
  /// What is sent of one table.
  public struct Table: Hashable, Codable, Sendable {
    /// The table's name.
    public let name: String
    /// The columns that recipients get.
    public let columns: [String]
    /// Rows that are new to the receivers.
    public let inserted: Int
    /// Rows of which they get other values.
    public let updated: Int
    /// Rows that were deleted here.
    public let deleted: Int
    /// Rows that are not shared any more.
    public let withdrawn: Int
    /// Rows that left the scope and stay at the recipients.
    public let kept: Int
    /// The rows: their keys. Empty unless it was a dry run.
    public internal(set) var changes: [Change]
  }

  /// A row that a dry run would send.
  public struct Change: Hashable, Codable, Sendable {
    /// What happens to it at the receivers.
    public let operation: ChangeOperation
    /// The values of its key; the whole row without a key.
    public let key: [ChangesetValue]
  }

  /// A file that was written to where it goes.
  public struct Delivery: Hashable, Codable, Sendable {
    /// The diff's id.
    public let id: KSUID
    /// The path; nil for a stream.
    public let path: String?
    /// Its size in bytes.
    public let bytes: Int
    /// The names of the recipients.
    public let recipients: [String]
  }

  /// The id of the diff file; nil if nothing has changed since the last one, and in a dry run.
  public internal(set) var id: KSUID?
  /// The written file; nil for none, and for a stream.
  public internal(set) var path: String?
  /// Its size in bytes.
  public internal(set) var bytes = 0
  /// All files of the diff, ``path`` first: one for each 64 recipients of an encrypted diff. They have the same id and
  /// the same contents, and each recipient needs one of them. The other files are in the folders `group-2`, `group-3` …
  /// beside the first.
  public internal(set) var files: [Delivery] = []
  /// True if the diff has everything in the scope, and not only changes.
  public internal(set) var isSnapshot = false
  /// The number in the stream; 0 for none.
  public internal(set) var sequence: Int64 = 0
  /// The sent rows by table.
  public internal(set) var tables: [Table] = []
  /// Rows that are left out because they refer to rows that the receivers would not have. Rows that were sent earlier
  /// stay at the receivers in the last sent version, unless a resync sends everything again.
  public internal(set) var leftOut: [LeftOutRows] = []
  /// What does not travel.
  public internal(set) var skipped: [SkippedItem] = []
  /// Files of earlier calls that were delivered first.
  public internal(set) var delivered: [Delivery] = []
  /// True if nothing was written or sent.
  public internal(set) var isDryRun = false
  /// True if changes are left for another call, because the single output file was used for an earlier diff.
  public internal(set) var isIncomplete = false
  /// Warnings about it.
  public internal(set) var warnings: [Warning] = []
  /// How long it took, in seconds.
  public internal(set) var seconds = 0.0
}

extension Annotations {
  /// Creates the annotations with the origins of changes, withdrawals, and the names of rows; nil if there are none.
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
  /// The names of rows for the annotations.
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
  /// True if more than one file can go there.
  var takesSeveral: Bool { if case .folder = self { true } else { false } }
}

extension LeftOutRows {
  /// The warning about the rows, with the first of them as an example.
  var warning: Warning {
    let code: Warning.Code =
      switch reason {
      case .noParent: .rowsWithoutParent
      case .parentNotShared: .parentNotShared
      case .parentLeftOut: .parentLeftOut
      case .heldBack: .rowsHeldBack
      case .conditionFails: .conditionFails
      }
    let key = rows.first?.key.map { "\($0)" }.joined(separator: ", ") ?? ""
    return Warning(
      code, table, String(count), columns.joined(separator: ", "), parent, key.escaped(limit: 60))
  }
}

extension [LeftOutRows] {
  /// The number of rows of each table, for the ledger.
  func entries(of share: Int64) -> [LeftOutEntry] {
    var counts: [TableName: Int64] = [:]
    for rows in self { counts[TableName(rows.table), default: 0] += Int64(rows.count) }
    return counts.map { LeftOutEntry(share: share, table: $0, count: $1) }
  }
}

/// The claims of a share's diff about its stream, beside the changes.
struct ShareClaims {
  /// The sums of the tables.
  let states: [SentState.Claim]
  /// The rows that are sent again.
  let resent: [ResendRequest]
  /// The rows of the receiver's streams that they are asked for.
  let asked: [StateEntry]

  /// Says it in a manifest.
  ///
  /// - Parameters:
  ///   - manifest: That of the diff.
  ///   - difference: What is sent.
  func write(into manifest: inout Manifest, of difference: DatabaseDifference) {
    let sent = Set(difference.tables.map { TableName($0.definition.name) } + resent.map(\.table))
    manifest.states = states.compactMap { claim in
      guard sent.contains(TableName(claim.table)), let digest = Manifest.State.Digest(claim.digest) else { return nil }
      let buckets = claim.buckets?.sorted { $0.key < $1.key }
        .compactMap { Manifest.State.Bucket($0.key, beginning: $0.value) }
      return Manifest.State(table: claim.table, rows: claim.rows, digest: digest, buckets: buckets)
    }
    manifest.resent = resent.map { Manifest.Rows(table: $0.table.text, buckets: $0.buckets?.sorted()) }
    // A reader that does not know the field would insert the rows a second time.
    if !resent.isEmpty { manifest.critical.append("resent") }
    manifest.requests = asked.compactMap { state in
      let buckets = state.difference.flatMap { $0.isEmpty ? nil : $0 }
      return StreamID(state.stream).map { Manifest.Rows(of: $0, table: state.table.text, buckets: buckets) }
    }
  }
}

extension ShareReport {
  /// The sent rows of a difference.
  ///
  /// - Parameters:
  ///   - difference: The sent difference.
  ///   - departed: The rows that have left the scope.
  ///   - onLeave: What becomes of them.
  ///   - listingChanges: True if the rows are listed.
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
