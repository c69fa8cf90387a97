/// Converts verified files to the changes that the engine plans and applies.
extension IncomingChanges {
  /// Creates the changes of a verified diff file.
  ///
  /// - Parameters:
  ///   - diff: The file.
  ///   - path: The name of the file, with or without its folder; the ledger stores the name.
  package init(_ diff: borrowing DiffFile, file path: String) {
    self.init(
      key: LedgerKey(
        sender: diff.signature.sender, id: diff.manifest.id, digest: diff.manifestDigest.bytes, isRaw: false),
      placed: diff.manifest.place, file: FileSystem.name(of: path), definitions: diff.schema, author: diff.author,
      renames: diff.manifest.renames, changeset: diff.changeset, feed: ChangesetFeed(diff.inspection.summary))
    claims = diff.manifest.claims
    dataset = diff.manifest.dataset?.bytes
    let annotations = diff.annotations
    withdrawals = { annotations?.withdrawals ?? [] }
    origins = { annotations?.originRuns ?? [] }
    naming = { annotations?.keys.map { RowNaming($0) } ?? RowNaming() }
  }

  /// Creates the head of a diff file, without its changes.
  ///
  /// - Parameter feed: A feed with the reason for the missing changes.
  init(_ head: DiffFile.Head, file path: String, _ feed: ChangesetFeed) {
    self.init(
      key: LedgerKey(
        sender: head.signature.sender, id: head.manifest.id, digest: head.manifestDigest.bytes, isRaw: false),
      placed: head.manifest.place, file: FileSystem.name(of: path), definitions: nil, changeset: TemporaryBuffer(),
      feed: feed)
    dataset = head.manifest.dataset?.bytes
  }

  /// Creates the changes of a verified raw changeset.
  package init(_ raw: borrowing RawChangeset, file path: String) {
    self.init(
      key: LedgerKey(sender: "", id: raw.id, digest: raw.digest.bytes, isRaw: true), file: FileSystem.name(of: path),
      definitions: nil, changeset: raw.changeset, feed: ChangesetFeed(raw.inspection.summary))
  }
}

extension IncomingChanges {
  /// Creates the changes of a diff file that is still being verified, for a transaction of our own.
  init(_ diff: StreamedDiffFile, file path: String) {
    self.init(
      key: LedgerKey(
        sender: diff.signature.sender, id: diff.manifest.id, digest: diff.manifestDigest.bytes, isRaw: false),
      placed: diff.manifest.place, file: FileSystem.name(of: path), definitions: diff.schema, author: diff.author,
      renames: diff.manifest.renames, claimed: diff.manifest.counts, changeset: diff.changeset, feed: diff.feed)
    claims = diff.manifest.claims
    dataset = diff.manifest.dataset?.bytes
    withdrawals = { try diff.file().file.annotations?.withdrawals ?? [] }
    // Most files have no annotations, which the manifest shows before the end has arrived.
    if diff.manifest.hasAnnotations { origins = { try diff.file().file.annotations?.originRuns ?? [] } }
    naming = { try diff.file().file.annotations?.keys.map { RowNaming($0) } ?? RowNaming() }
  }
}

extension Manifest {
  /// The number of changes of each table.
  fileprivate var counts: [TableName: ApplyCounts] {
    let counts = tables.map { table in
      let counts = ApplyCounts(
        inserted: Int(clamping: table.inserted), updated: Int(clamping: table.updated),
        deleted: Int(clamping: table.deleted))
      return (TableName(table.name), counts)
    }
    return Dictionary(counts) { first, _ in first }
  }
}

extension Manifest {
  /// The diff's place in its stream, which determines its predecessor. An acknowledgement without predecessor waits for
  /// nothing.
  fileprivate var place: StreamPlace? {
    guard let chain, kind != .ack || chain.follows != nil || chain.sequence == 1 else { return nil }
    return StreamPlace(
      stream: chain.stream.bytes, incarnation: sender?.incarnation?.bytes, sequence: chain.sequence,
      follows: chain.follows.map { StreamPlace.Predecessor(id: $0.id, digest: $0.manifestSHA256.bytes) },
      replaces: chain.replaces?.bytes, isSnapshot: kind == .snapshot)
  }
}

extension DiffFile.Signature {
  /// The verified key of the sender in the ledger's form; empty for an unsigned file.
  var sender: String {
    switch self {
    case .unsigned: ""
    case .signed(let key): key.description
    }
  }
}

extension Manifest {
  /// The claims about the sender and about streams.
  fileprivate var claims: StreamClaims {
    var claims = StreamClaims()
    claims.replica = sender?.replica?.bytes
    claims.acknowledgements = acknowledgements.map {
      StreamClaims.Acknowledgement(
        stream: $0.stream.bytes, incarnation: $0.incarnation.bytes, through: $0.through)
    }
    claims.states = states.map {
      StreamClaims.State(
        table: $0.table, rows: $0.rows, digest: $0.digest.bytes,
        buckets: $0.buckets.map { Dictionary($0.map { ($0.bucket, $0.beginning) }) { first, _ in first } })
    }
    claims.resent = resent.map(\.claim)
    claims.requests = requests.map(\.claim)
    claims.withdraws = tables.contains { $0.withdrawn > 0 }
    claims.ownKeys = Set(ownKeys)
    if let sharedWith { claims.isSharedWith = { SigningKey(hex: $0).map { sharedWith.addresses($0.bytes) } ?? false } }
    return claims
  }
}

extension Annotations {
  /// Runs of neighbouring changes; true for withdrawals.
  fileprivate var withdrawals: [(count: Int64, isWithdrawal: Bool)] {
    runs.map { ($0.count, $0.kind == .withdraw) }
  }
}

extension Annotations {
  /// The origins of neighbouring changes.
  fileprivate var originRuns: [OriginRun] {
    runs.map { run in
      OriginRun(
        count: run.count, diff: origins[run.origin],
        columns: Dictionary(run.columns.map { ($0.column, origins[$0.origin]) }) { first, _ in first },
        isWithdrawal: run.kind == .withdraw)
    }
  }
}

extension RowNaming {
  /// Reads the annotations of a diff.
  fileprivate init(_ keys: RowKeys) {
    self.init()
    runs = keys.runs.map { run in
      let names = run.names.map {
        Names(
          replica: keys.replicas[$0.replica].bytes, keys: $0.keys, versions: $0.versions,
          copies: $0.copies.map { CopyCounts.Count(inserted: $0.inserted, deleted: $0.deleted) })
      }
      return Run(count: run.count, names: names)
    }
    references = keys.references.map { row in
      Reference(table: row.table, key: row.key, replica: keys.replicas[row.replica].bytes, name: row.name)
    }
    links = keys.links.map { link in
      (link.table, ForeignKey(columns: link.columns, parent: link.parent.text, parentColumns: link.parentColumns))
    }
  }
}

extension Manifest.Rows {
  fileprivate var claim: StreamClaims.Rows {
    StreamClaims.Rows(of: stream?.bytes, table: table, buckets: buckets.map { Set($0) })
  }
}
