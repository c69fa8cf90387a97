import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Tracks shared rows while the diffs of others are applied: which rows their streams send and withdraw, what they
/// acknowledge, and what need not be sent back to them.
package final class InboundShares: SharingParticipant {
  let connection: SQLiteConnection
  let provenance: Provenance
  let senders: KnownSenders
  private let policies: ConflictPolicies
  private let copies: CopyPolicy
  /// The columns by which rows of tables are the same that both sides have added under different keys, besides those of the scopes.
  package var matches: [TableName: [String]] = [:]
  /// True if rows of a share were looked up by ``matches``.
  package private(set) var hasMatched = false
  /// True if some columns of rows that are here are left as they are.
  package var ignoresColumns = false
  /// The keys of the rows that the present changes insert and that were here before.
  private(set) var own: [TableName: KeySet] = [:]
  /// True if the present changes insert a row that the sender has sent before.
  private var repeatsRows = false
  let keySets: KeySets
  /// The rows that the present changes were to delete and that stayed because local rows refer to them.
  private var kept: [TableName: Set<[UInt8]>] = [:]
  private let names: OriginKeys
  /// True if any stream has rows whose last change was not accepted; nil until that is read, once for each diff.
  var hasUntaken: Bool?
  /// The key mapping of the present changes, with the mapped changes; nil if they name no keys.
  private var keyMapping: (keys: KeyMapping, changes: IncomingChanges)?
  /// The origins of the present changes; nil if all are the diff's own.
  private(set) var origins: RowOrigins?
  /// The rows of the present changes that only their content identifies; nil for none.
  private var contents: ReceivedContents?
  /// The parts of the present changes that were left out because the local values are later.
  private var outdated: OutdatedChanges?
  /// The keys of rows that the present changes insert and that exist here, if the sender has not shown to know the
  /// local content.
  private(set) var contested: [TableName: Set<[UInt8]>] = [:]
  /// The hashes that rows had before the present changes have deleted them, as far as these contain only their keys.
  private(set) var deleted: [TableName: [[UInt8]: UInt64]] = [:]
  /// True if the sender of the present changes may lack deletions that are forgotten here.
  private var isFromReturning = false
  /// True if the present changes begin the stream of a restored backup, whose author lacks the last diffs of the
  /// previous stream.
  private(set) var isFromBackup = false
  /// The unsent edits of rows that the author of the present changes has; nil for changes outside of streams.
  private var edits: EditsSinceShare?
  /// The origins of values, read once for all diffs.
  private lazy var editHistory = EditHistory(on: connection)
  /// True if anything has been applied since tombstones were collected last.
  private var hasFinished = false
  /// The deletions of which other replicas may have learned since tombstones were collected last.
  let settling: DeletionPruning.Candidates
  /// True if anything is shared; nil until that is read.
  private var shares: Bool?
  /// True if any share has only some rows of a table; nil until that is read.
  var areNarrow: Bool?
  /// The signer of the present changes, and which senders have which rows; nil if the changes bring no rows into
  /// shares.
  var author: (sender: String, holders: RowHolders, schema: SchemaReader)?
  /// The scopes with conditions that read other rows, during a transaction that may bring rows into them; nil before.
  var dependentScopes: DependentScopes?
  /// The senders of the changes in the transaction.
  var movers: Set<String> = []

  /// Creates a participant in applying diffs, through a connection that must outlive it.
  ///
  /// - Parameters:
  ///   - connection: The connection.
  ///   - senders: The keys that have replaced others.
  ///   - policies: The policies for conflicts.
  ///   - copies: How the first diff of a copy is treated.
  package init(
    on connection: borrowing SQLiteConnection, senders: KnownSenders = .empty,
    _ policies: ConflictPolicies = .keepLocal, _ copies: CopyPolicy = .ask
  ) {
    self.copies = copies
    self.policies = policies
    self.connection = SQLiteConnection(sharing: connection)
    self.senders = senders
    keySets = KeySets("diff", on: connection)
    settling = DeletionPruning.Candidates(on: connection)
    provenance = Provenance(on: connection)
    names = OriginKeys(provenance, on: connection)
  }

  package func concerns(_ changes: IncomingChanges) throws -> Bool {
    if changes.definitions != nil,
      changes.place != nil || !changes.claims.acknowledgements.isEmpty || changes.claims.withdraws
    {
      return true
    }
    // Read once: a share that is made meanwhile has not been acknowledged yet.
    let sharesAnything = try shares ?? !ShareEntry.all(on: connection).isEmpty
    shares = sharesAnything
    guard sharesAnything else { return false }
    return try hasNarrowShares()
      || changes.definitions != nil && !changes.sharesWithAuthor(senders, on: connection).isEmpty
  }

  // MARK: Before

  package func prepare(_ changes: IncomingChanges) throws -> IncomingChanges {
    own = [:]
    repeatsRows = false
    try keySets.clear()
    kept = [:]
    keyMapping = nil
    origins = nil
    edits = nil
    contents = nil
    outdated = nil
    contested = [:]
    deleted = [:]
    isFromReturning = try isReturning(changes)
    var flagged = changes
    flagged.isFromReturning = isFromReturning
    return try prepared(flagged)
  }

  private func prepared(_ changes: IncomingChanges) throws -> IncomingChanges {
    try takeOverStreams(by: changes.key.sender, changes.place)
    if let replica = changes.claims.replica {
      try ReplicaSigners.settle(replica, of: changes.key.sender, senders, on: connection)
    }
    provenance.reload()
    names.reload()
    let schema = try SchemaReader(connection)
    let naming = try changes.naming().runs
    try watchScopes(changes, schema)
    let definitions = try changes.definitions(in: schema)
    if author != nil || naming.contains(where: { $0.names.contains { $0.copies != nil } }) {
      contents = try ReceivedContents(
        definitions, from: changes, sharedBack: changes.sharesWithAuthor(senders, on: connection), schema,
        on: connection)
    }
    isFromBackup = try comesFromBackup(changes)
    guard let place = place(of: changes) else { return changes }
    hasMatched = true
    let tables = try KeyedTables(definitions, schema)
    if let keys = try KeyMapping(
      changes, schema, names, provenance, copies, senders, matching: matches(for: changes), on: connection)
    {
      keyMapping = (keys, try keys.mapped())
    }
    let runs = try changes.origins()
    let changes = keyMapping?.changes ?? changes
    try contents?.look(at: changes, naming)
    let origins =
      try runs.isEmpty
      ? nil
      : changes.key.id.map { id in
        try RowOrigins(runs, of: changes.changeset, id, knowing: changes.feed.summary())
      }
    self.origins = origins
    let crossing =
      policies.usesLatest || policies.usesTakeIncoming ? try CrossingShares(changes, senders, on: connection) : nil
    edits = EditsSinceShare(changes, tables, editHistory, senders, crossing, on: connection)
    outdated = try OutdatedChanges(policies, changes, senders, crossing, on: connection)
    let withdrawals = try changes.withdrawals()
    var staying: Set<Int64> = []
    if try !withdrawals.isEmpty || tables.contains(where: { try provenance.isHere($0) }) {
      staying = try look(at: changes, WithdrawalRuns(withdrawals), place, tables)
    }
    let resent = ResentRows(changes.claims.resent, of: place.stream, isSnapshot: place.isSnapshot)
    let identified = try changes.claims.ownKeys.filter { name in
      try tables[name].map { try provenance.isHere($0) } ?? false
    }
    // A snapshot also has the receiver's own rows.
    let returned = try resent.isEmpty ? ReturnedChanges(runs, on: connection) : nil
    var matched = try MatchedChanges(
      resent: resent, place: place, sender: changes.key.sender, id: changes.key.id, author: changes.claims.replica,
      own: ReplicaIdentity.read(on: connection)?.replica, tables: tables, provenance: provenance, names: names,
      sent: sent(to: changes), identified: resent.isEmpty ? [] : identified,
      sentKeys: keyMapping?.keys.sentKeys ?? [:], staying: staying, returned: returned, origins: runs, naming: naming,
      references: keyMapping?.keys.layouts ?? [:], calledAsSent: keyMapping?.keys.calledAsSent ?? [:],
      contents: contents, outdated: outdated, crossing: crossing, rowsHere: own,
      lastApplied: place.isSnapshot ? changes.lastApplied(on: connection) : nil,
      knowsDeletions: place.isSnapshot
        && tables.contains { try Tombstones.exist(of: $0.name, on: connection) },
      unseenShares: place.isSnapshot ? changes.unseenShares(senders, on: connection) : [], policies: policies,
      repeatsRows: repeatsRows,
      withdrawals: WithdrawalRuns(withdrawals), keySets: keySets, connection: SQLiteConnection(sharing: connection))
    var result = try matched.changes(of: changes, schema) ?? changes
    deleted = matched.deleted
    contested = try outOfScope(matched.contested, tables, changes)
    result.knownOrigins = origins
    return result
  }

  /// The columns by which rows are the same: those that were asked for, else those of the scopes that may be shared with the author of
  /// changes. Who a recipient is need not be known for that.
  private func matches(for changes: IncomingChanges) throws -> [TableName: [String]] {
    try ShareEntry.all(on: connection).reduce(into: matches) { matches, share in
      guard try share.isRead(by: changes.key.sender, senders, on: connection) != false else { return }
      for table in try ShareScope(json: share.scope).tables where !table.match.isEmpty {
        matches[table.name] = matches[table.name] ?? table.match
      }
    }
  }

  /// Finds the inserted rows that already exist here.
  ///
  /// - Returns: The numbers of the changes that withdraw a row which stays, from 1.
  private func look(
    at changes: IncomingChanges, _ runs: WithdrawalRuns, _ place: StreamPlace, _ tables: KeyedTables
  ) throws -> Set<Int64> {
    var runs = runs
    let sender = changes.key.sender
    var staying: Set<Int64> = []
    var ordinal: Int64 = 0
    try Changesets.forEachChange(of: changes.changeset, knowing: changes.feed.summary()) { change, reader, bytes in
      let isWithdrawal = runs.next()
      ordinal += 1
      guard let table = reader.table.flatMap({ tables.table(of: $0) }) else { return }
      if change.operation == .insert, table.hasKey(reader.new) {
        if try provenance.isOwn(reader.new, bytes, of: table) {
          try own.insert(table.key(reader.new, bytes), of: table.name, in: keySets)
        } else if !repeatsRows {
          repeatsRows = try provenance.found(reader.new, bytes, of: table).contains { $0.entry.sender == sender }
        }
      }
      if isWithdrawal, table.hasKey(reader.old) {
        let streams = [place.stream] + (place.replaces.map { [$0] } ?? [])
        let isBrought = try provenance.hash(reader.old, bytes, of: table, streams: streams, from: sender) != nil
        if try !isBrought || provenance.stays(reader.old, bytes, of: table, withoutStreams: streams, from: sender) {
          staying.insert(ordinal)
        }
      }
    }
    return staying
  }

  /// The baselines with the local rows, those of shares with the author of a diff first.
  private func sent(to changes: IncomingChanges) throws -> [PeerBaseline] {
    let theirs = Set(try changes.sharesWithAuthor(senders, on: connection).map(\.number))
    let all = try ShareEntry.all(on: connection).filter { $0.sequence > 0 }
    return try (all.filter { theirs.contains($0.number) } + all.filter { !theirs.contains($0.number) }).map {
      try PeerBaseline(of: $0, on: connection)
    }
  }

  package func valuesBeforeEdits(ofRow key: [UInt8], in table: TableName) throws -> [String: [UInt8]] {
    try edits?.valuesBefore(ofRow: key, in: table) ?? [:]
  }

  package func sendingDiffs(ofRow key: [UInt8], in table: TableName) throws -> [String: KSUID] {
    try edits?.sendingDiffs(ofRow: key, in: table, provenance) ?? [:]
  }

  /// The place of changes in their stream. The stream of a restored backup continues beside the previous stream, of
  /// which its author lacks a part.
  private func place(of changes: IncomingChanges) -> StreamPlace? {
    isFromBackup ? changes.place?.besideReplaced : changes.place
  }

  // MARK: Afterwards

  package func didKeep(_ key: [UInt8], of table: TableName) { kept[table, default: []].insert(key) }

  package func finish(_ changes: IncomingChanges, counting counts: ApplyCounts) throws -> [Warning] {
    hasFinished = true
    hasUntaken = nil
    let mayBeUntaken = counts.conflicts > 0 || ignoresColumns
    try noteRestored(by: changes)
    try noteAcknowledgements(of: changes)
    try noteProgress(of: changes)
    try noteRequests(of: changes)
    // The changes with the sender's keys, beside the mapped ones.
    let mapped = keyMapping?.keys.hasChanges == true ? keyMapping?.keys.mappedTables ?? [] : []
    let original =
      try mapped.isEmpty ? nil : ChangesetCursor(changes.changeset, knowing: changes.feed.summary())
    let changes = keyMapping?.changes ?? changes
    try keyMapping?.keys.finish()
    let matched = keyMapping?.keys.matched ?? [:]
    keyMapping = nil
    if let place = changes.place, let replica = changes.claims.replica {
      try OriginKeyEntry.note(author: replica, of: place.stream, from: changes.key.sender, on: connection)
    }
    let schema = try SchemaReader(connection)
    let definitions = try changes.definitions(in: schema)
    let tables = try KeyedTables(definitions, schema)
    let shares = try changes.sharesWithAuthor(senders, on: connection)
    // Rows that some recipients may lack stay out of the baseline, and the next share sends them.
    let (peers, groups) = (try shares.filter { try $0.isForOne() }, try shares.filter { try !$0.isForOne() })
    let followed = try peers.map { (share: $0.number, baseline: try PeerBaseline(of: $0, on: connection)) }
    let unsent = try followed + groups.map { (share: $0.number, baseline: try PeerBaseline(of: $0, on: connection)) }
    let others = try changes.claims.withdraws ? otherShares(than: peers) : []
    let resent = changes.place.map {
      ResentRows(changes.claims.resent, of: $0.stream, isSnapshot: $0.isSnapshot)
    }
    let state = try resent.flatMap {
      try ReceivedState(changes, $0, tables, provenance, schema, on: connection)
    }
    var runs = WithdrawalRuns(try changes.withdrawals())
    var naming = OriginKeyRuns(contents == nil ? [] : try changes.naming().runs)
    let contentsNow = try contents.map { _ in
      try ReceivedContents(definitions, from: changes, sharedBack: shares, schema, on: connection)
    }
    let hasTombstones = try connection.hasRow(cached: "SELECT 1 FROM main.buckia_tombstone LIMIT 1")
    let hasWithdrawn = try RowNotes.exist(.withdrawn, on: connection)
    let recipients = try shares.map { (number: $0.number, isForOne: try $0.isForOne()) }
    let sentIn = unsent.map(\.baseline)
    try Changesets.forEachChange(of: changes.changeset, knowing: changes.feed.summary()) { change, reader, bytes in
      let isWithdrawal = runs.next()
      let called = naming.next()
      let sent = try original?.next { change, reader, bytes -> SentChange? in
        guard let table = reader.table.flatMap({ tables.table(of: $0) }), mapped.contains(table.name),
          table.hasKey(change.operation == .insert ? reader.new : reader.old)
        else { return nil }
        return SentChange(change, reader, bytes, of: table)
      }
      if let contentsNow, let header = reader.table,
        try contentsNow.note(
          change, reader, bytes, header, called, isWithdrawal: isWithdrawal, after: contents,
          mayDiffer: mayBeUntaken, in: recipients)
      {
        return
      }
      guard let table = reader.table.flatMap({ tables.table(of: $0) }) else { return }
      var isForgotten = try isFromReturning && self.isForgotten(change, reader, bytes, of: table, changes.key.id)
      var edited = try edits?.coveredPlaces(of: change, reader, bytes, of: table) ?? []
      var isKept =
        change.operation == .delete && kept[table.name]?.contains(table.key(reader.old, bytes)) == true
      // The next share sends later local values again.
      switch outdated?.leftOut(of: change, reader, bytes, table) {
      case .values(let places): edited.formUnion(places)
      case .insertion: isForgotten = true
      case .deletion: isKept = true
      case nil: break
      }
      // A row that stays although it was deleted is sent again, also by shares with several recipients.
      for (_, baseline) in isKept ? unsent : followed {
        try baseline.follow(
          change, reader, bytes, of: table, isForgotten: isForgotten, isKept: isKept, beside: edited)
      }
      if change.operation == .insert, table.hasKey(reader.new), changes.place != nil {
        if hasTombstones, try table.finds(table.lookup, reader.new, bytes, on: connection) {
          try Tombstones.remove(table.key(reader.new, bytes), of: table.name, on: connection)
        }
        if hasWithdrawn {
          try RowNotes(.withdrawn, of: table.name).remove(table.key(reader.new, bytes), on: connection)
        }
        for (share, baseline) in unsent where try !baseline.has(reader.new, bytes, of: table) {
          try RowNotes(.unsent, of: table.name, for: share).note(table.key(reader.new, bytes), on: connection)
        }
      }
      try noteWidening(change, reader, bytes, of: table, sentIn: sentIn)
      if let place = changes.place {
        // Rows that the author lacks because of a restored backup are missing for another reason than a conflict.
        try note(
          change, reader, bytes, of: table, place, changes.key.sender, state, as: sent ?? nil,
          mayBeUntaken: mayBeUntaken, followsTaken: !isFromBackup)
      }
      guard change.operation == .delete, table.hasKey(reader.old) else { return }
      if !isWithdrawal, let place = changes.place,
        let diff = origins?.diff(of: change, reader, bytes) ?? changes.key.id
      {
        try noteDeletion(reader.old, bytes, of: table, by: diff, place, changes.key.sender)
      }
      guard try !table.finds(table.lookup, reader.old, bytes, on: connection) else {
        if let replica = changes.claims.replica, changes.claims.ownKeys.contains(table.name),
          let local = table.integerKey(of: reader.old, bytes)
        {
          let name = OriginKeys.Name(
            replica: replica, key: (sent ?? nil).flatMap { IntegerKey.decoded($0.key) } ?? local)
          let version = table.isWhole(reader.old) ? table.contentHash(reader.old, bytes) : nil
          try names.keep(name, of: local, in: table.name, deleting: version)
        }
        return
      }
      try names.markDeleted(reader.old, bytes, of: table)
      guard isWithdrawal else { return }
      try RowNotes(.withdrawn, of: table.name).note(table.key(reader.old, bytes), on: connection)
      for (share, baseline) in others where try baseline.has(reader.old, bytes, of: table) {
        try RowNotes(.takenBack, of: table.name, for: share).note(table.key(reader.old, bytes), on: connection)
      }
    }
    for (_, baseline) in unsent { try baseline.finish() }
    try provenance.flush()
    if let place = place(of: changes), place.isSnapshot { try noteSnapshot(changes, place, tables) }
    if let place = changes.place, let resent, !place.isSnapshot, !resent.isEmpty {
      try noteResent(resent, changes, place, state, schema)
    }
    try provenance.flush()
    own = [:]
    author = nil
    return try warnings(onSenderOf: changes)
      + matched.sorted { $0.key.text < $1.key.text }.map { Warning(.matchedRows, $0.key.text, "\($0.value.count)") }
      + (state?.finish(changes.claims.states) ?? [])
  }

  /// The warning for a diff that claims another sender's replica.
  private func warnings(onSenderOf changes: IncomingChanges) -> [Warning] {
    guard let signer = changes.claims.firstSigner, let replica = changes.claims.replica,
      let claimed = ReplicaSigners.claimed(by: replica)
    else { return [] }
    return [Warning(.replicaOfAnother, HexText.lowercase(claimed), senders.shown(signer))]
  }

  package func settle(at time: Int64) throws {
    try noteDependentRows()
    guard hasFinished else { return }
    hasFinished = false
    let silence = try LedgerSettings.silence(on: connection)
    try DeletionPruning(silence: silence, at: time, on: connection).run(settling)
    try settling.clear()
  }

  /// Records which rows are requested, by senders who have acknowledged the stream of these rows.
  private func noteRequests(of changes: IncomingChanges) throws {
    guard let replica = changes.claims.replica, !changes.claims.requests.isEmpty else { return }
    for share in try ShareEntry.all(on: connection) {
      let wanted = changes.claims.requests.filter { $0.stream == share.stream }
      guard !wanted.isEmpty, try share.isRead(by: changes.key.sender, senders, on: connection) != false,
        try AcknowledgementEntry.all(of: share.number, on: connection).contains(where: {
          $0.sender == changes.key.sender && $0.replica == replica
        })
      else { continue }
      let shared = Set(try BaselineEntry.all(of: share.number, on: connection).map(\.table))
      for request in wanted where shared.contains(TableName(request.table)) {
        try ResendRequest.note(TableName(request.table), request.buckets, of: share.number, on: connection)
      }
    }
  }

  /// Records the sender's acknowledgements.
  private func noteAcknowledgements(of changes: IncomingChanges) throws {
    guard let replica = changes.claims.replica, !changes.claims.acknowledgements.isEmpty else { return }
    for share in try ShareEntry.all(on: connection) {
      let through = changes.claims.acknowledged(share)
      guard through > 0, try share.isRead(by: changes.key.sender, senders, on: connection) != false else { continue }
      try AcknowledgementEntry.note(
        min(through, share.sequence), of: share.number, by: changes.key.sender, replica, on: connection)
    }
  }

  // MARK: Shares

  private func otherShares(than peers: [ShareEntry]) throws -> [(Int64, PeerBaseline)] {
    let known = Set(peers.map(\.number))
    return try ShareEntry.all(on: connection).filter { !known.contains($0.number) }.map {
      ($0.number, try PeerBaseline(of: $0, on: connection))
    }
  }
}
