import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Rewrites the changes of a stream for rows that are known here from elsewhere than the stream.
///
/// A share has all rows of its scope. A row that its sender got from here, or from a third replica that also shares
/// with this database, arrives as an INSERT. Its annotations name the replicas that the row came from, and the version
/// that was accepted from each if the row has changed since. Here an unchanged row needs nothing, and a changed one
/// becomes an UPDATE of that version. A deletion that names a version is that of a row whose values its sender no
/// longer has.
///
/// A row that left the scope and was kept here (``LeavePolicy/keep``) also returns as an INSERT, and so does a row that
/// the replica has sent in another stream. It becomes a change of the sender's last version.
///
/// A snapshot has all rows of the scope; other diffs may repeat the rows of some buckets. An unchanged row is left out,
/// which keeps local edits and deletions. A changed row that was not edited here becomes an UPDATE. A row that the
/// stream no longer has becomes a DELETE.
struct MatchedChanges: ~Copyable {
  /// The rows that the diff sends again.
  let resent: ResentRows
  let place: StreamPlace
  let sender: String
  /// The id of the diff; nil if it has none.
  let id: KSUID?
  /// The author's replica; nil if the diff does not name it.
  let author: [UInt8]?
  /// The local replica.
  let own: [UInt8]?
  /// The tables of the diff.
  let tables: KeyedTables
  let provenance: Provenance
  let names: OriginKeys
  /// The baselines with the rows that were sent, those of shares with the sender first.
  let sent: [PeerBaseline]
  /// The tables in which equal keys mean the same row, because colliding keys were mapped to others.
  let identified: Set<TableName>
  /// The sender's keys of incoming rows by their local keys, if the two differ.
  let sentKeys: [TableName: [[UInt8]: [UInt8]]]
  /// The numbers of changes that are left out, from 1.
  let staying: Set<Int64>
  /// Finds echoes: changes that were made here.
  let returned: ReturnedChanges?
  /// The origins of the changes.
  let origins: [OriginRun]
  /// The keys of the rows at other replicas.
  let naming: [RowNaming.Run]
  /// For each table and each of its columns, the table to whose rows the column refers by local keys.
  let references: [TableName: [TableName?]]
  /// The sender's keys of rows that are called the same elsewhere, by the numbers of changes
  /// (``KeyMapping/calledAsSent``).
  let calledAsSent: [Int64: Int64]
  /// The changes of rows that only their content identifies.
  let contents: ReceivedContents?
  /// Finds changes that are older than the local values.
  let outdated: OutdatedChanges?
  /// Collects changes that cross a later diff of this database; nil if there cannot be any.
  let crossing: CrossingShares?
  /// The keys of inserted rows that exist here.
  let rowsHere: [TableName: KeySet]
  /// The last diff of this database that the author had applied when sending a snapshot; nil for none.
  let lastApplied: KSUID?
  /// True for a snapshot of tables of which deleted rows are known here.
  let knowsDeletions: Bool
  /// For a snapshot, the shares of which its author had not applied all diffs, and how far the author had applied them.
  let unseenShares: [(share: ShareEntry, through: Int64)]
  let policies: ConflictPolicies
  /// True if the diff inserts a row that its sender has sent before.
  let repeatsRows: Bool
  /// The changes that withdraw rows.
  let withdrawals: WithdrawalRuns
  /// Creates sets of keys.
  let keySets: KeySets
  let connection: SQLiteConnection
  /// The existing rows whose content the sender has not shown to know.
  var contested: [TableName: Set<[UInt8]>] = [:]
  /// The hashes of local rows whose values the author of their deletion no longer has, by their keys.
  var deleted: [TableName: [[UInt8]: UInt64]] = [:]
  var hasClock: [TableName: Bool] = [:]
  /// The rows whose keys the diff spells differently.
  var respelled = RespelledKeys()

  /// The streams whose rows the snapshot replaces: its own, and the one that it takes the place of.
  var streams: [[UInt8]] { [place.stream] + (place.replaces.map { [$0] } ?? []) }

  /// Rewrites the changes.
  ///
  /// - Parameter schema: The schema of the database.
  /// - Returns: The rewritten changes; nil if there is nothing to rewrite.
  /// - Throws: `SQLiteError`, `ChangesetError`, `ByteStreamError`.
  mutating func changes(of incoming: IncomingChanges, _ schema: SchemaReader) throws -> IncomingChanges? {
    var brought: [TableName] = []
    for stream in streams { brought += try ProvenanceEntry.tables(of: stream, from: sender, on: connection) }
    brought = brought.filter { resent.concern($0) }
    let isAsItIs =
      try brought.isEmpty && identified.isEmpty && naming.isEmpty && staying.isEmpty && returned == nil
      && outdated == nil && crossing == nil && rowsHere.isEmpty && !repeatsRows && !knowsDeletions
      && (author.map { try OriginKeyEntry.tables(of: $0, on: connection).isEmpty } ?? true)
    if isAsItIs { return nil }
    let result = incoming.changeset.makeEmpty()
    var present: [TableName: KeySet] = [:]
    var last: ChangesetTable?
    let kept = TemporaryBuffer()
    respelled = try RespelledKeys(in: incoming, tables, on: connection)
    var ordinal: Int64 = 0
    var origins = OriginRuns(origins)
    var naming = OriginKeyRuns(naming)
    var withdrawals = withdrawals
    try Changesets.forEachChange(of: incoming.changeset, knowing: incoming.feed.summary()) { change, reader, bytes in
      let origin = origins.next()
      ordinal += 1
      var called = naming.next()
      let isWithdrawal = withdrawals.next()
      guard !staying.contains(ordinal), let header = reader.table else { return }
      var writer = ChangesetWriter()
      var isDecided =
        try contents?.write(change, reader, bytes, header, called, isWithdrawal: isWithdrawal, into: &writer) == true
        || origin.map { returned?.write(change, reader, bytes, header, $0, into: &writer) == true } == true
      let row = change.operation == .insert ? reader.new : reader.old
      if !isDecided, let table = tables.table(of: header), table.hasKey(row) {
        if let key = table.integerKey(of: row, bytes) {
          called = called.map { $0.withVersion(of: table, named: calledAsSent[ordinal], underKey: key) }
        }
        switch change.operation {
        case .insert:
          let local = table.key(row, bytes)
          let isAnew = resent.cover(sentKeys[table.name]?[local] ?? local, of: table.name)
          if isAnew, !brought.isEmpty, let key = table.comparable(local) {
            try present.insert(key, of: table.name, in: keySets)
          }
          let met = try meet(row, bytes, of: table, isAnew: isAnew, called)
          try crossing?.look(
            at: change, reader, bytes, of: table, changing: changedPlaces(row, bytes, of: table, header, met))
          // Otherwise an INSERT that names other replicas has the origin of the row that they have sent.
          let isNew = called.isEmpty || origin.map { $0.diff == id } ?? true
          isDecided =
            try !met.followsLocal
            && outdated?.write(
              change, reader, bytes, of: table, header, origin, isEdited: called.contains { $0.version != nil },
              into: &writer) == true
            || write(row, bytes, of: table, header, met, isNew: isNew, into: &writer)
        case .delete where try respelled.keepRow(deletedAs: row, bytes, of: table, on: connection): isDecided = true
        case .delete where called.contains { $0.version != nil }:
          try writeDeletion(row, bytes, of: table, called, into: &writer)
          isDecided = true
        case .delete, .update:
          if change.operation == .update {
            try crossing?.look(at: change, reader, bytes, of: table, changing: Set(row.indices))
          }
          isDecided =
            try !isWithdrawal
            && outdated?.write(change, reader, bytes, of: table, header, origin, into: &writer) == true
        }
      }
      if !isDecided { writer.append(encoded: bytes.extracting(change.range).withUnsafeBytes { Array($0) }) }
      guard writer.count > 0 else { return }
      if last != header {
        var beginning = ChangesetWriter()
        beginning.beginTable(header)
        try kept.write(beginning.bytes)
        last = header
      }
      try kept.write(writer.bytes)
    }
    var added: [TableDefinition] = []
    for name in Set(brought).sorted(by: { $0.text < $1.text }) {
      guard let local = try schema.table(named: name) else { continue }
      let author = incoming.definitions?.first { TableName($0.name) == name }
      guard let table = KeyedTable(author ?? local, local) else { continue }
      if try writeDeletions(of: table, author ?? local, except: present[name], into: result), author == nil {
        added.append(local)
      }
    }
    try result.write(contentsOf: kept)
    return try incoming.replacing(changeset: result, adding: added)
  }

  // MARK: Rows that are known here

  /// How the row of an INSERT is known here.
  private enum MetRow {
    /// The stream has sent it before, with the hash of that version.
    case brought(UInt64)
    /// The local row with its key, the name that proves that both are the same row, and the hash of the sender's last
    /// version; nil for none.
    case local(LocalRow?, OriginKeyRuns.Name?, said: UInt64?)
    /// The incoming row is a version that the local row was made from, or one that was deleted here.
    case outdated
    /// The row is unknown here.
    case unknown

    /// True if the incoming row was made from the local one, so that it is later whatever their times are.
    var followsLocal: Bool {
      if case .local(let here?, let name?, _) = self { name.version == here.hash } else { false }
    }
  }

  /// Finds the row of an INSERT. If the local row with its key is not known to be the sender's, the key is recorded as
  /// contested.
  ///
  /// - Parameters:
  ///   - isAnew: True if the diff sends the row again.
  ///   - called: The row's keys at the replicas that it came from.
  private mutating func meet(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, isAnew: Bool, _ called: [OriginKeyRuns.Name]
  ) throws -> MetRow {
    // A row that was never accepted may be one of this database's own that was deleted here.
    if isAnew, let known = try provenance.hash(row, bytes, of: table, streams: streams, from: sender),
      try wasTaken(row, bytes, of: table) || table.finds(table.lookup, row, bytes, on: connection)
    {
      return .brought(known)
    }
    let isInTheWay = try rowsHere[table.name].map { try $0.contains(table.key(row, bytes)) } ?? false
    let said = repeatsRows ? try said(row, bytes, of: table) : nil
    let taken = try takenVersions(of: row, bytes, table).filter { taken in
      taken.replica == author || called.contains { $0.replica == taken.replica && $0.version == nil }
    }
    if !taken.isEmpty, try table.finds(table.lookup, row, bytes, on: connection) {
      let hash = table.contentHash(row, bytes)
      if taken.contains(where: { $0.version == hash }) { return .outdated }
    }
    if try isDeleted(row, bytes, of: table) { return .outdated }
    guard !called.isEmpty || isInTheWay || said != nil || identified.contains(table.name) else { return .unknown }
    let here = try LocalRow(row, bytes, of: table, on: connection)
    if here == nil, try table.finds(table.lookup, row, bytes, on: connection) {
      // The table lacks columns.
      return .unknown
    }
    let name = try known(called, row, bytes, of: table, isHere: here != nil)
    let isReplaced = here.map { respelled.replace($0, of: table) } ?? false
    if let here, isInTheWay || name != nil, !isReplaced, try !showsContent(row, bytes, of: table, here, name) {
      contested[table.name, default: []].insert(table.key(row, bytes))
    }
    // A row whose key has another spelling is deleted and inserted. Without a version, the sender relays what was here
    // before the key was changed, unless the diff deletes that.
    if let here, name == nil || name?.version != nil || isReplaced, !here.hasSameKey(as: row, bytes, of: table) {
      return .unknown
    }
    return .local(here, name, said: said)
  }

  /// True if a snapshot has a row that was deleted here, and its author does not know of the deletion.
  ///
  /// A first share from a copy of this database has all rows that it was copied with.
  private func isDeleted(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> Bool {
    guard place.isSnapshot, try knowsDeletions || !sent.isEmpty || provenance.haveBrought(table),
      try !table.finds(table.lookup, row, bytes, on: connection)
    else { return false }
    let hash = table.contentHash(row, bytes)
    let key = table.key(row, bytes)
    if knowsDeletions, let deleted = try Tombstones.row(key, of: table.name, on: connection) {
      return deleted.hash == hash && lastApplied.map { $0 < deleted.diff } ?? true
    }
    // Under other policies, the clock decides which is later.
    if policies.policy(for: table.name) == .keepLocal,
      try TombstoneAcknowledgements.haveSent(unseenShares, deletionOf: key, hash, of: table, on: connection)
    {
      return true
    }
    // No share has sent the deletion yet.
    return try provenance.hasLost(row, bytes, of: table, hash, sent)
  }

  /// True if the author of an INSERT knows the content of the local row, or of an earlier version that a stream has
  /// brought. A key or a name alone is easily guessed.
  private func showsContent(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ here: LocalRow, _ name: OriginKeyRuns.Name?
  ) throws -> Bool {
    guard table.hasAllColumns else { return false }
    let known = name?.version ?? table.contentHash(row, bytes)
    if known == here.hash { return true }
    return try name != nil && provenance.found(row, bytes, of: table).contains { $0.row.hash == known }
  }

  /// The places of the columns that the author of an INSERT has changed since accepting the row from here; all columns
  /// if that version is unknown.
  private func changedPlaces(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ header: ChangesetTable, _ met: MetRow
  ) throws -> Set<Int> {
    switch met {
    case .unknown, .local(_, nil, said: nil): return Set(row.indices)
    case .local(let here?, let name?, _):
      guard let version = name.version else { return [] }
      guard let base = try recovered(version, namedBy: name, of: row, bytes, table, beside: here) else {
        return Set(row.indices)
      }
      return Set(base.changedPlaces(row, bytes, header).filter { base.values[$0] != here.encoded($0) })
    case .brought, .local, .outdated: return []
    }
  }

  /// Writes the changes that an INSERT means here.
  ///
  /// - Parameters:
  ///   - met: How the row is known.
  ///   - isNew: True if the sender has inserted the row, or has kept it although it was deleted elsewhere.
  /// - Returns: True if the changes are known; otherwise the INSERT stays.
  private mutating func write(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ header: ChangesetTable, _ met: MetRow,
    isNew: Bool, into writer: inout ChangesetWriter
  ) throws -> Bool {
    switch met {
    case .unknown: return false
    case .local(nil, let name, _) where isNew && (name.map { $0.replica != own } ?? true): return false
    case .outdated: return true
    case .brought(let known): return try writeAnew(row, bytes, of: table, header, since: known, into: &writer)
    case .local(let here, let name?, let said):
      return try write(row, bytes, of: table, header, over: here, called: name, said: said, into: &writer)
    case .local(let here?, nil, let said):
      if let said, try !followsClock(table),
        try writeDifference(row, bytes, of: table, header, over: here, since: said, into: &writer)
      {
        return true
      }
      // A clock needs the whole row: equal values get the later row version.
      guard try identified.contains(table.name) && !followsClock(table) else { return false }
      writer.appendUpdate(ofUnknown: here, to: row, bytes, header)
      return true
    case .local(nil, nil, _):
      guard try !followsClock(table) else { return false }
      // The sender relays a row that was deleted meanwhile, without knowing of the deletion.
      let deleted = try Tombstones.hash(of: table.key(row, bytes), in: table.name, on: connection)
      return deleted == table.contentHash(row, bytes)
    }
  }

  /// Writes the changes of a row that the stream has sent before.
  private mutating func writeAnew(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ header: ChangesetTable, since known: UInt64,
    into writer: inout ChangesetWriter
  ) throws -> Bool {
    guard let here = try LocalRow(row, bytes, of: table, on: connection) else {
      // The row was deleted here, unless it was never accepted. An edit of a deleted row is a conflict.
      let isHere = try table.finds(table.lookup, row, bytes, on: connection)
      if try isHere || !wasTaken(row, bytes, of: table) { return false }
      if known != table.contentHash(row, bytes) { writer.appendUpdate(ofMissing: row, bytes, header) }
      return true
    }
    // The next share from here sends local edits.
    if known == table.contentHash(row, bytes) { return true }
    guard here.hash == known else {
      guard try identified.contains(table.name) && !followsClock(table) else { return false }
      writer.appendUpdate(ofUnknown: here, to: row, bytes, header)
      return true
    }
    writer.appendUpdate(of: here, to: row, bytes, header)
    return true
  }

  /// The name, among those of the replicas that a row came from, that identifies the local row: a name of this
  /// database, if it has shared the row, or of a replica whose stream has sent it here, too.
  func known(
    _ called: [OriginKeyRuns.Name], _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, isHere: Bool
  ) throws -> OriginKeyRuns.Name? {
    if let own, let name = called.first(where: { $0.replica == own }) {
      // A withdrawn row was not deleted here, and may come back.
      func isDeleted() throws -> Bool {
        try !RowNotes(.withdrawn, of: table.name).contain(table.key(row, bytes), on: connection)
      }
      if try sent.contains(where: { try $0.has(row, bytes, of: table) }) || !isHere && isDeleted() { return name }
    }
    guard !called.isEmpty else { return nil }
    let brought = try provenance.found(row, bytes, of: table).filter { $0.entry.stream != place.stream }
    for name in called where name.replica != own {
      guard let found = try brought.first(where: { try names.author(of: $0.entry) == name.replica }) else {
        // Another stream has sent the version that the sender has taken from the replica, or a change of it, or the replica has
        // deleted the version and the row has stayed here.
        if isHere, let version = name.version,
          try brought.contains(where: { $0.row.hash == version })
            || takenVersions(of: row, bytes, table).contains(where: { $0.version == version })
            || keptVersion(of: row, bytes, table, called: name) == version
        {
          return name
        }
        continue
      }
      // A row that a conflict has kept out may arrive by another stream.
      if try isHere || provenance.wasTaken(row, bytes, of: table, found.entry) { return name }
    }
    return nil
  }

  /// The origin keys of a row that other senders have sent, with the version that they have taken from the named replica.
  private func takenVersions(of row: [ValueSlice], _ bytes: RawSpan, _ table: KeyedTable) throws -> [OriginKeyEntry] {
    guard let key = table.integerKey(of: row, bytes) else { return [] }
    return try names.names(of: key, in: table.name).filter { $0.version != nil }
  }

  /// The hash of the version that a replica has deleted of a row that has stayed here; nil for none.
  private func keptVersion(
    of row: [ValueSlice], _ bytes: RawSpan, _ table: KeyedTable, called name: OriginKeyRuns.Name
  ) throws -> UInt64? {
    guard let local = table.integerKey(of: row, bytes),
      let entry = try names.entry(of: OriginKeys.Name(replica: name.replica, key: name.key ?? local), in: table.name),
      entry.local == local, entry.claimant == OriginKeyEntry.deleted
    else { return nil }
    return entry.version
  }

  /// The hash of the sender's last version of a row, in this stream or another one of the same replica; nil for none.
  private func said(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> UInt64? {
    let found = try provenance.found(row, bytes, of: table).filter { $0.entry.sender == sender }
    if let same = found.first(where: { $0.entry.stream == place.stream }) { return same.row.hash }
    guard let author else { return nil }
    return try found.first { try names.author(of: $0.entry) == author }?.row.hash
  }

  /// True if a row of the stream was ever accepted.
  private func wasTaken(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> Bool {
    try provenance.found(row, bytes, of: table).contains {
      try $0.entry.sender == sender && streams.contains($0.entry.stream)
        && provenance.wasTaken(row, bytes, of: table, $0.entry)
    }
  }

  /// Writes the difference between a row and a known version of it.
  ///
  /// - Parameters:
  ///   - here: The local row; nil if it was deleted.
  ///   - name: The name, with the hash of the version; without one if the row has not changed since.
  ///   - said: The hash of the sender's last version; nil if the sender has not sent the row before.
  /// - Returns: True if the difference is known; otherwise the row stays an INSERT.
  private mutating func write(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ header: ChangesetTable, over here: LocalRow?,
    called name: OriginKeyRuns.Name, said: UInt64?, into writer: inout ChangesetWriter
  ) throws -> Bool {
    let follows = try followsClock(table)
    let isOwn = name.replica == own
    guard let version = name.version else {
      // The sender has the row from the same source, which sends newer versions itself. A clock decides by the row version of a deletion; one
      // without a row version is later, because no share has sent it yet.
      return try isOwn || !follows || here == nil && !names.wasDeleted(table.key(row, bytes), of: table)
    }
    guard let here else {
      if !isOwn, follows { return false }
      writer.appendUpdate(ofMissing: row, bytes, header)
      return true
    }
    if try writeDifference(row, bytes, of: table, header, over: here, since: version, namedBy: name, into: &writer) {
      return true
    }
    if follows { return false }
    if let said, try writeDifference(row, bytes, of: table, header, over: here, since: said, into: &writer) {
      return true
    }
    writer.appendUpdate(ofUnknown: here, to: row, bytes, header)
    return true
  }

  /// Writes the difference between a row and an earlier version of it.
  ///
  /// - Parameters:
  ///   - version: The hash of the version.
  ///   - name: The name whose replica has the version; nil for one of the sender.
  /// - Returns: False if the values of the version cannot be determined; then nothing is written.
  private func writeDifference(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ header: ChangesetTable, over here: LocalRow,
    since version: UInt64, namedBy name: OriginKeyRuns.Name? = nil, into writer: inout ChangesetWriter
  ) throws -> Bool {
    guard let base = try recovered(version, namedBy: name, of: row, bytes, table, beside: here) else { return false }
    writer.appendUpdate(of: base.changedPlaces(row, bytes, header), to: row, bytes, header) {
      if header.isKey($0) { $1.append(row[$0], of: bytes) } else { $1.append(encoded: base.values[$0]) }
    }
    return true
  }

  /// The last sent version of a row, preferably the one that was sent to the sender.
  func sentRow(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> PeerBaseline.SentRow? {
    for baseline in sent {
      if let found = try baseline.sentRow(row, bytes, of: table) { return found }
    }
    return nil
  }

  /// The version of a row from which both an incoming row, or its deletion, and the local row were made; nil if its values cannot be
  /// determined.
  ///
  /// - Parameters:
  ///   - version: Its hash, with the local key of the row and the references that the named replica has.
  ///   - name: The name whose replica has the version; nil for one with local references.
  ///   - isDeleted: True if the incoming change deletes the row.
  func recovered(
    _ version: UInt64, namedBy name: OriginKeyRuns.Name?, of row: [ValueSlice], _ bytes: RawSpan, _ table: KeyedTable,
    isDeleted: Bool = false, beside here: LocalRow
  ) throws -> RecoveredRow? {
    let targets = references[table.name] ?? []
    let key = table.integerKey(of: row, bytes)
    return try RecoveredRow(
      version, of: isDeleted ? nil : row.map { bytes.array($0.encoded) }, table, beside: here,
      sentRow(row, bytes, of: table)
    ) { place, value in
      guard let name, name.replica != own, place < targets.count, let target = targets[place],
        !table.keyPlaces.contains(place), let local = IntegerKey.decoded(value)
      else { return nil }
      if target == table.name, local == key { return name.key.map { IntegerKey.encoded($0) } }
      let named = try names.names(of: local, in: target).first { $0.replica == name.replica }
      return named.map { IntegerKey.encoded($0.key) }
    }
  }

  private mutating func followsClock(_ table: KeyedTable) throws -> Bool {
    if let known = hasClock[table.name] { return known }
    let found = try RowClocks.number(of: table.local, on: connection) != nil
    hasClock[table.name] = found
    return found
  }
}
