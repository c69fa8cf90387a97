import SQLiteConnections

/// One call of ``DatabaseManager/share(_:to:output:options:signedBy:progress:)``.
struct ShareRun {
  private let scope: ShareScope
  private let audience: String
  /// The keys that the recipients sign with.
  private let signers: Set<String>
  private let output: DiffOutput
  private let options: ShareOptions
  private let sealing: ShareSealing
  private let home: BuckiaHome
  private let progress: (DiffProgress) throws -> Void

  /// The size of SQLite's page cache meanwhile, in bytes.
  private static let pageCacheBytes = 64 << 20

  init(
    _ scope: ShareScope, _ recipients: [ShareRecipient], _ output: DiffOutput, _ options: ShareOptions,
    _ sealing: ShareSealing, _ home: BuckiaHome, _ progress: @escaping (DiffProgress) throws -> Void
  ) {
    self.scope = scope
    audience = ShareEntry.audience(of: recipients.map(\.name))
    let known = Set(recipients.map { $0.signer ?? RecipientKey.unknown })
    // Recipients of unencrypted diffs may answer without a signature.
    signers = options.isUnencrypted ? known.union([RecipientKey.unknown]) : known
    self.output = output
    self.options = options
    self.sealing = sealing
    self.home = home
    self.progress = progress
  }

  /// Makes the file in one transaction, and then delivers it.
  func run(on connection: borrowing SQLiteConnection) throws -> ShareReport {
    var report = ShareReport()
    report.isDryRun = options.isDryRun
    try requireRoom()
    if !options.isDryRun, try deliver(into: &report, on: connection), !output.takesSeveral {
      report.isIncomplete = true
      return report
    }
    // Rows and their baselines are found by key, which needs a larger page cache.
    let isDone = try connection.withPageCache(of: Self.pageCacheBytes) { try make(&report, on: connection) }
    guard isDone else { return report }
    if report.id != nil {
      try ReplicaRegistration(of: connection, in: home).noteProgress(on: connection, in: &report.warnings)
      var rest = ShareReport()
      _ = try deliver(into: &rest, on: connection)
      report.files = rest.delivered.filter { $0.id == report.id }
      report.path = report.files.first?.path
    }
    return report
  }

  // MARK: Making

  /// - Returns: True if anything was written: a dry run leaves nothing.
  private func make(_ report: inout ShareReport, on connection: borrowing SQLiteConnection) throws -> Bool {
    let before = report
    return try ScopeRows.leavingOutFailing(in: [scope]) {
      report = before
      return try make(&report, leavingOutFailing: $0, on: connection)
    }
  }

  private func make(
    _ report: inout ShareReport, leavingOutFailing: Bool, on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    let transaction = try SQLiteTransaction(.immediate, on: connection)
    // The pages are read before anything is written.
    let digests = try ScopePageDigests(
      of: scope, share: knownShare(on: connection)?.number, newKey: Self.randomBytes(PageDigestEntry.keyBytes),
      on: connection)
    try Ledger.prepare(on: connection)
    try make(&report, digests, leavingOutFailing: leavingOutFailing, on: connection)
    if options.isDryRun {
      transaction.rollback()
      return false
    }
    try transaction.commit()
    return true
  }

  private static func randomBytes(_ count: Int) -> [UInt8] {
    var random = SystemRandomNumberGenerator()
    return (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
  }

  private func make(
    _ report: inout ShareReport, _ digests: ScopePageDigests, leavingOutFailing: Bool,
    on connection: borrowing SQLiteConnection
  ) throws {
    let registration = try ReplicaRegistration(of: connection, in: home).settle(on: connection)
    report.warnings = registration.warnings + sealing.warnings
    guard let replica = registration.replica else {
      throw BuckiaError(
        .unwritable, "it cannot be settled which replica this database is, and nothing is shared before",
        path: connection.path)
    }
    let former = try knownShare(on: connection)?.audience
    var (share, replaced) = try share(of: replica, on: connection)
    report.warnings += try warnings(
      onOthersThan: share, since: former == share.audience ? nil : former, on: connection)
    try RecipientKey.set(signers, of: share.number, on: connection)
    let senders = try senders(of: share, on: connection)
    // Tables that have been made since have no range yet.
    try KeyRanges.move(on: connection)
    let schema = try SchemaReader(connection)
    let rows = try ScopeRows(
      scope, for: try mayWiden(share, on: connection) ? nil : (share.number, senders),
      leavesOutFailing: leavingOutFailing, on: connection, schema)
    let baseline = try Baseline(of: share.number, on: connection)
    let isSnapshot = share.sequence == 0 || share.last == nil || options.resyncs
    let state = try SentState(of: share, on: connection)
    if isSnapshot {
      try TombstoneAcknowledgements.prepareSnapshot(of: share, isOtherStream: share.sequence == 0, on: connection)
      try baseline.setAside()
      try state.clear()
    }
    let requested = try ResendRequest.all(of: share.number, on: connection)
    let resent = isSnapshot ? [] : try state.resend(requested, from: baseline, schema)
    let unsentDeletions = try UnsentDeletions(
      of: share, from: senders, isSnapshot: isSnapshot, baseline, rows, schema, on: connection)
    var selections = rows.selections
    // Of tables that were shared, and are not any more, all rows have left the scope.
    let left = baseline.tables.filter { !rows.tables.contains($0) && schema.entry(named: $0) != nil }
    for table in left { selections[table] = RowSelection(where: "0") }
    let newer = RowSource(on: connection, selecting: selections)
    var comparison = DiffOptions(tables: rows.tables + left, method: .rows, keyless: .content)
    if !isSnapshot {
      comparison.candidates = try digests.candidates(for: rows, baseline, on: connection)
      // Their baseline has been changed, not they.
      for table in resent.map(\.table) + unsentDeletions.tables { comparison.candidates[table] = nil }
    }
    let isFromNothing = isSnapshot && unsentDeletions.tables.isEmpty
    let compared = try DatabaseComparison.run(
      from: isFromNothing ? .empty() : baseline.source, to: newer, options: comparison, progress: progress)
    let held = try HeldDeletions(in: compared, leavingOut: rows, schema, on: connection)
    let found = try held.removed(from: compared)
    report.leftOut = try rows.leftOut()
    report.warnings += report.leftOut.map(\.warning)
    // The baseline has no constraints, so none of the tables' is new.
    let constraints: Set<SkipReason.Code> = [.newForeignKey, .newCheck, .changedCheck]
    report.skipped = found.skipped.filter { isFromNothing || !constraints.contains($0.reason.code) }
    report.isSnapshot = isSnapshot
    report.warnings += laterColumns(of: found, isSnapshot: isSnapshot)
    if options.isDryRun || isSnapshot {
      report.warnings += rows.parentTables.filter { !$0.omitted.isEmpty }.map {
        Warning(.parentColumnsLeftOut, $0.name.text, $0.omitted.joined(separator: ", "))
      }
    }
    let contents = try SentContents(
      found.tables.map(\.definition), of: share, by: replica.incarnation.bytes, selections, schema, on: connection)
    let departed = try DepartedRows(
      in: found.changeset, of: found.tables.map(\.definition), share, readBy: senders,
      propagating: options.propagates, contents, schema, on: connection)
    let keeps = options.onLeave == .keep
    let leftOut = departed.leftOut(keeping: keeps)
    let states = try state.follow(found, leavingOut: leftOut, resending: resent, unsentDeletions, schema)
    let sent = leftOut.contains { $0.isLeftOut } ? try found.leavingOut(deletions: leftOut) : found
    report.tables = try ShareReport.tables(
      sent, departed, onLeave: options.onLeave, listingChanges: options.isDryRun)
    share.scope = scope.json
    try share.write(on: connection)
    // Recipients that have rows may need the news that none are left.
    let asked = try StateEntry.toAskFor(share, repeating: isSnapshot, on: connection)
    let hasContents =
      !sent.isEmpty || !resent.isEmpty || !asked.isEmpty || isSnapshot && (share.sequence > 0 || replaced != nil)
    let acknowledges =
      try !hasContents && options.acknowledges && OutboxEntry.hasAppliedSince(share.number, on: connection)
    if hasContents || acknowledges {
      let names = try SentOriginKeys(
        in: sent.changeset, of: sent.tables.map(\.definition), share, unsentDeletions, contents, scope, schema,
        on: connection)
      let claims = ShareClaims(states: states, resent: resent, asked: asked)
      try send(
        sent, departed.withdrawals(keeping: keeps), claims, names, of: &share, replacing: replaced,
        as: acknowledges ? .ack : isSnapshot ? .snapshot : .delta, from: newer, by: replica, schema, &report)
      if isSnapshot { try TombstoneAcknowledgements.noteLeftOut(by: share, schema, on: connection) }
      for var state in asked {
        state.isRequested = true
        try state.write(on: connection)
      }
    }
    try ResendRequest.clear(for: share.number, on: connection)
    try RowNotes.removeAll(.takenBack, for: share.number, on: connection)
    try RowNotes.removeAll(.unsent, for: share.number, on: connection)
    if isSnapshot {
      try baseline.clear()
      try baseline.removeFormer()
    }
    // Rows that stay at the recipients are not tracked any more.
    try baseline.move(by: found, to: selections, keeping: held, schema)
    try digests.write(for: rows, baseline, on: connection)
    try LeftOutEntry.replace(of: share.number, with: report.leftOut.entries(of: share.number), on: connection)
    // After an error the rollback does it.
    try rows.removeTables()
  }

  /// True if the recipients may get rows by changes of their own.
  private func mayWiden(_ share: ShareEntry, on connection: borrowing SQLiteConnection) throws -> Bool {
    switch options.widening {
    case .hold: return try WideningChanges.areAllowed(in: share.number, on: connection)
    case .once: return true
    case .always, .never:
      try WideningChanges.allow(options.widening == .always, in: share.number, on: connection)
      return options.widening == .always
    }
  }

  /// The recipients' signing keys in the ledger's form, with replaced ones.
  private func senders(of share: ShareEntry, on connection: borrowing SQLiteConnection) throws -> Set<String> {
    let known = try home.knownSenders()
    let acknowledging = try AcknowledgementEntry.all(of: share.number, on: connection).map(\.sender)
    let keys = signers.union(acknowledging)
    let theirs = keys.union(keys.flatMap { known.keys(before: $0) })
    // Shares that another person made from the original are continued there.
    let own = [sealing.signerKey] + known.keys(before: sealing.signerKey)
    guard share.signer.map({ own.contains($0) }) ?? true else { return theirs }
    return theirs.union([CopiedRows.sender(of: share.number)])
  }

  /// Warnings about columns that the scope shares because it does not name them: new ones, and in a dry run tables that
  /// may get new ones.
  private func laterColumns(of difference: DatabaseDifference, isSnapshot: Bool) -> [Warning] {
    let tables = scope.tables.filter { !$0.omittedColumns.isEmpty }
    let later = options.isDryRun ? tables.map { Warning(.laterColumns, $0.name.text) } : []
    let changed = isSnapshot ? [] : difference.tables
    return later
      + changed.filter { table in tables.contains { $0.name == TableName(table.definition.name) } }.flatMap { table in
        table.newColumns.map { Warning(.newColumnShared, table.definition.name, $0) }
      }
  }

  /// The share of this scope with these people, or the sent share with most of them, which this one replaces; nil for
  /// none.
  private func knownShare(on connection: borrowing SQLiteConnection) throws -> ShareEntry? {
    let shares = try sharesOfScope(on: connection)
    if let share = shares.first(where: { $0.audience == audience }) { return share }
    let all = Set(try ShareEntry.recipients(in: audience))
    let narrower = try shares.filter { try $0.sequence > 0 && all.isSuperset(of: $0.recipients) }
    return try narrower.max { try $0.recipients.count < $1.recipients.count }
  }

  private func sharesOfScope(on connection: borrowing SQLiteConnection) throws -> [ShareEntry] {
    let document = scope.json
    return try ShareEntry.all(on: connection).filter { entry in
      entry.name == scope.name && (scope.name != nil || entry.scope == document)
    }
  }

  /// Warnings about earlier shares of the scope with some of the same people, which a new share replaces or leaves
  /// unchanged.
  private func warnings(
    onOthersThan share: ShareEntry, since former: String?, on connection: borrowing SQLiteConnection
  ) throws -> [Warning] {
    guard share.sequence == 0 else { return [] }
    func names(_ recipients: [String]) -> String { recipients.map { "\"\($0)\"" }.joined(separator: ", ") }
    let all = Set(try share.recipients)
    let others = try sharesOfScope(on: connection).filter { other in
      try other.number != share.number && other.sequence > 0 && !all.isDisjoint(with: other.recipients)
    }
    let replaced = try former.map { Warning(.shareReplaced, names(try ShareEntry.recipients(in: $0))) }
    return try (replaced.map { [$0] } ?? []) + others.map { Warning(.shareBeside, names(try $0.recipients)) }
  }

  /// The first stream that an incarnation makes of this scope for these people. A restored database that lacks the share
  /// names the stream by it.
  private func firstStream(of incarnation: IncarnationID) -> StreamID {
    let parts = JSONValue.strings(["\(incarnation)", scope.name ?? "", scope.name == nil ? scope.json : "", audience])
    let digest = ContentDigest(of: Array(parts.text().utf8))
    return StreamID(checked: Array(digest.bytes.prefix(StreamID.byteCount)))
  }

  /// The share of this scope with these people: the one that there is, or a new one.
  ///
  /// - Returns: The share, and the stream that it replaces because that belongs to an earlier incarnation, to another
  ///   key, or to fewer people, with the number of its last known diff.
  private func share(
    of replica: Replica, on connection: borrowing SQLiteConnection
  ) throws -> (ShareEntry, replaced: Manifest.Acknowledgement?) {
    let document = scope.json
    let known = try knownShare(on: connection)
    guard var share = known else {
      // A share with fewer people may have begun that stream before it became one with more people.
      let all = Set(try ShareEntry.recipients(in: audience))
      let mayBeUsed = try sharesOfScope(on: connection).contains { try all.isSubset(of: $0.recipients) }
      let stream =
        mayBeUsed ? Self.randomBytes(StreamID.byteCount) : firstStream(of: replica.incarnation).bytes
      var share = ShareEntry(
        stream: stream, incarnation: replica.incarnation.bytes, name: scope.name, scope: document, audience: audience)
      try share.write(on: connection)
      // A restored database may lack a share that it had begun.
      let former = try ReplicaIdentity.former(on: connection).flatMap { IncarnationID($0) }
      return (
        share,
        former.map { Manifest.Acknowledgement(stream: firstStream(of: $0), incarnation: $0, through: 0) }
      )
    }
    // A restored or copied database does not know what was sent in its name. And a stream belongs to a key: the holder
    // of a stolen former key may have continued it. Recipients get everything again, in another stream.
    let isWider = share.audience != audience
    guard
      isWider || share.incarnation != replica.incarnation.bytes
        || share.sequence > 0 && sealing.isOther(than: share.signer)
    else { return (share, nil) }
    var replaced: Manifest.Acknowledgement?
    if share.sequence > 0, let stream = StreamID(share.stream), let incarnation = IncarnationID(share.incarnation) {
      replaced = Manifest.Acknowledgement(stream: stream, incarnation: incarnation, through: share.sequence)
    }
    share.stream = Self.randomBytes(StreamID.byteCount)
    share.incarnation = replica.incarnation.bytes
    share.sequence = 0
    share.last = nil
    if isWider {
      share.audience = audience
      // Permissions for changes by some people do not extend to others.
      try WideningChanges.allow(false, in: share.number, on: connection)
    }
    return (share, replaced)
  }

  /// Writes the file into the outbox.
  private func send(
    _ difference: DatabaseDifference, _ withdrawals: [(count: Int64, isWithdrawal: Bool)],
    _ claims: ShareClaims, _ names: SentOriginKeys, of share: inout ShareEntry,
    replacing replaced: Manifest.Acknowledgement?,
    as kind: Manifest.Kind, from source: RowSource, by replica: Replica, _ schema: SchemaReader,
    _ report: inout ShareReport
  ) throws {
    let id = try nextID(from: source, &report)
    guard let stream = StreamID(share.stream) else {
      throw BuckiaError(
        .alteredLedger, "the shares in the ledger are not as Buckia makes them", path: source.connection.path)
    }
    let follows = share.last.flatMap { last in
      ContentDigest(last.digest).map { Manifest.Chain.Predecessor(id: last.id, manifestSHA256: $0) }
    }
    let chain = Manifest.Chain(
      stream: stream, sequence: share.sequence + 1, follows: kind == .snapshot ? nil : follows,
      replaces: replaced?.stream)
    var manifest = Manifest(
      id: id, kind: kind,
      sender: Manifest.Sender(replica: replica.id, incarnation: replica.incarnation),
      audience: sealing.audience(), chain: chain,
      acknowledgements: try Self.acknowledgements(on: source.connection)
        + (replaced.map { $0.through > 0 ? [$0] : [] } ?? []),
      ownKeys: names.ownKeys)
    if !names.ownKeys.isEmpty {
      let others = try RecipientKey.all(besidesOnlyRecipientOf: share.number, on: source.connection)
      manifest.sharedWith = Audience(of: others.compactMap { SigningKey(hex: $0)?.bytes })
    }
    claims.write(into: &manifest, of: difference)
    let relayed = try ChangeOrigins(
      in: difference.changeset, of: difference.tables.map(\.definition), withdrawals: withdrawals, by: id,
      names.naming.runs, in: share.number, goesBack: share.recipients.count > 1, schema, on: source.connection)
    let origins =
      relayed.exist
      ? relayed.runs
      : withdrawals.map { OriginRun(count: $0.count, diff: id, isWithdrawal: $0.isWithdrawal) }
    let draft = DiffFileDraft(
      manifest: manifest, schema: .included(difference.tables.map(\.definition)),
      tablesInKeyOrder: Set(difference.tables.map { TableName($0.definition.name) }),
      annotations: try Annotations(origins, naming: names.naming, origin: id))
    let file = sealing.name(of: id)
    var part = 0
    let written = try sealing.write(draft, changeset: difference.changeset) { group, contents in
      part += 1
      if part == 1 { report.bytes = contents.count }
      guard !options.isDryRun else { return }
      try OutboxPart(part, of: id, named: file, for: ShareEntry.audience(of: group.names))
        .write(contents, on: source.connection)
    }
    share.sequence += 1
    share.last = (id, written.manifestDigest.bytes)
    share.signer = sealing.signerKey
    try share.write(on: source.connection)
    report.sequence = share.sequence
    guard !options.isDryRun else { return }
    try OutboxEntry(
      id: id, share: share.number, sequence: share.sequence, digest: written.manifestDigest.bytes, file: file
    ).write(at: WallClock.unixMilliseconds, on: source.connection)
    report.id = id
    if let warning = DatabaseManager.rowVersion(difference, by: id, origins, in: source) {
      report.warnings.append(warning)
    }
    try TombstoneAcknowledgements.noteSent(
      in: difference.changeset, of: difference.tables.map(\.definition), withdrawals: withdrawals, share,
      isSnapshot: kind == .snapshot, schema, on: source.connection)
  }

  /// The acknowledgements of other streams: the newest ones, as many as a manifest may have.
  private static func acknowledgements(on connection: borrowing SQLiteConnection) throws -> [Manifest.Acknowledgement] {
    try StreamEntries.newest(64, on: connection).compactMap { entry in
      guard let stream = StreamID(entry.stream), let incarnation = IncarnationID(entry.incarnation) else { return nil }
      return Manifest.Acknowledgement(stream: stream, incarnation: incarnation, through: entry.through)
    }
  }

  /// The id of the new diff. A dry run takes one that means nothing.
  private func nextID(from source: RowSource, _ report: inout ShareReport) throws -> KSUID {
    if options.isDryRun { return .maximum }
    let (id, warning) = try home.next(after: LedgerProgress.knownIDs(on: source.connection))
    if let warning { report.warnings.append(warning) }
    let origin = try home.begin(id, from: source)
    report.warnings += origin.warnings.filter { !report.warnings.contains($0) }
    return id
  }

  // MARK: Delivering

  /// Requires that all files of a diff fit the output, before anything is made.
  private func requireRoom() throws {
    let count = sealing.groups.count
    guard count > 1, !options.isDryRun, !output.takesSeveral else { return }
    throw BuckiaError(
      .misuse,
      "\(count) files are needed, since one can be encrypted for at most \(Encryption.recipientLimit) recipients; name a folder for them "
        + "instead of a file or standard output")
  }

  /// Delivers the files of the share that are not delivered yet.
  ///
  /// - Returns: True if there were any.
  private func deliver(into report: inout ShareReport, on connection: borrowing SQLiteConnection) throws -> Bool {
    guard let share = try knownShare(on: connection) else { return false }
    for part in try OutboxPart.undelivered(of: share.number, on: connection) {
      if !report.delivered.isEmpty, !output.takesSeveral { break }
      let file = try output.file(named: part.file, part: part.number)
      let contents = try part.contents(on: connection)
      try file.write(contents, madeFrom: connection.path)
      let transaction = try SQLiteTransaction(on: connection)
      try part.markDelivered(on: connection)
      try transaction.commit()
      report.delivered.append(
        ShareReport.Delivery(
          id: part.id, path: file.path, bytes: contents.count,
          recipients: try ShareEntry.recipients(in: part.recipients)))
    }
    return !report.delivered.isEmpty
  }
}
