import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// What the changes of a stream say of rows that are known here, beside those that the stream itself has brought.
///
/// A share says what its scope holds: a row that its sender has got from here, or from others who share with this database, too, is an INSERT
/// there. Its annotations name the replicas that the row came from, and the version that was taken from each where the row has changed
/// since. Here such an INSERT is nothing where nothing has changed, and an UPDATE of that version else. A deletion that names a version
/// is one of a row whose values its sender does not know any more.
///
/// A row that has left the scope and was kept here (``LeavePolicy/keep``) comes back as an INSERT, too, and so does one that the replica
/// has sent in another stream: it changes what the sender has said of it last.
///
/// A snapshot holds all rows of the scope, another diff may repeat those of some buckets. A row that has not changed since it came is left out,
/// so that it stays as it was edited or deleted here. A row that has, and was not edited here, is an UPDATE. What the stream had and has no more
/// is a DELETE.
struct MatchedChanges: ~Copyable {
  /// Which rows the diff repeats.
  let resent: ResentRows
  let place: StreamPlace
  let sender: String
  /// The replica that the diff is of; nil where it does not say.
  let author: [UInt8]?
  /// The replica that this database is.
  let own: [UInt8]?
  /// The tables of the diff.
  let tables: KeyedTables
  let vouchers: Vouchers
  let names: RowNames
  /// What was sent of each row: in the shares with the sender first.
  let sent: [PeerShadow]
  /// The tables in which a row with the key of an incoming one is that row: others have got another key.
  let identified: Set<TableName>
  /// The keys with which incoming rows were sent, by their keys here, where the two differ.
  let sentKeys: [TableName: [[UInt8]: [UInt8]]]
  /// The numbers of changes that are left out, from 1.
  let staying: Set<Int64>
  /// Finds changes that were made here.
  let returned: ReturnedChanges?
  /// Where the changes come from.
  let origins: [OriginRun]
  /// What other replicas call the rows.
  let naming: [RowNaming.Run]
  /// What the changes say of rows that only their content identifies.
  let contents: ReceivedContents?
  /// Finds changes that are older than what is here.
  let outdated: OutdatedChanges?
  /// Is told of the changes that may be; nil where none is.
  let crossing: CrossingShares?
  /// The keys of the rows that the diff inserts, and that are here.
  let rowsHere: [TableName: KeySet]
  /// True if the diff inserts a row that its sender has brought already.
  let repeatsRows: Bool
  /// Which changes are of rows that are not shared any more.
  let withdrawals: WithdrawalRuns
  /// Makes sets of keys.
  let keySets: KeySets
  let connection: SQLiteConnection
  /// Those of the rows here that their sender is not known to have, and that are not as the sender says.
  var contested: [TableName: Set<[UInt8]>] = [:]
  var hasClock: [TableName: Bool] = [:]

  /// The streams whose rows the snapshot replaces: its own, and one that it takes the place of.
  private var streams: [[UInt8]] { [place.stream] + (place.replaces.map { [$0] } ?? []) }

  /// Turns the changes into those.
  ///
  /// - Parameter schema: The schema of the database.
  /// - Returns: nil where they stay as they are.
  /// - Throws: `SQLiteError`, `ChangesetError`, `ByteStreamError`.
  mutating func changes(of incoming: IncomingChanges, _ schema: SchemaReader) throws -> IncomingChanges? {
    var brought: [TableName] = []
    for stream in streams { brought += try VouchEntry.tables(of: stream, from: sender, on: connection) }
    brought = brought.filter { resent.concern($0) }
    let isAsItIs =
      brought.isEmpty && identified.isEmpty && naming.isEmpty && staying.isEmpty && returned == nil && outdated == nil
      && crossing == nil && rowsHere.isEmpty && !repeatsRows
    if isAsItIs { return nil }
    let result = incoming.changeset.makeEmpty()
    var present: [TableName: KeySet] = [:]
    var last: ChangesetTable?
    let kept = TemporaryBuffer()
    var ordinal: Int64 = 0
    var origins = OriginRuns(origins)
    var naming = NameRuns(naming)
    var withdrawals = withdrawals
    try Changesets.forEachChange(of: incoming.changeset, knowing: incoming.feed.summary()) { change, reader, bytes in
      let origin = origins.next()
      let called = naming.next()
      let isWithdrawal = withdrawals.next()
      ordinal += 1
      guard !staying.contains(ordinal), let header = reader.table else { return }
      var writer = ChangesetWriter()
      var isDecided =
        try contents?.write(change, reader, bytes, header, called, isWithdrawal: isWithdrawal, into: &writer) == true
        || origin.map { returned?.write(change, reader, bytes, header, $0, into: &writer) == true } == true
      let row = change.operation == .insert ? reader.new : reader.old
      if !isDecided, let table = tables.table(of: header), table.hasKey(row) {
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
          isDecided =
            try outdated?.write(change, reader, bytes, of: table, header, origin, into: &writer) == true
            || write(row, bytes, of: table, header, met, isRelayed: !called.isEmpty, into: &writer)
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

  /// What is known here of the row of an INSERT.
  private enum MetRow {
    /// The stream has brought it before: the hash of what it was then.
    case brought(UInt64)
    /// The row with its key here, the name by which it is known to be the same, and the hash of what the sender has said of it last; nil
    /// for none.
    case local(LocalRow?, NameRuns.Name?, said: UInt64?)
    /// Nothing that tells what it is.
    case unknown
  }

  /// Looks up the row of an INSERT, and notes it where another row is here that its sender is not known to have.
  ///
  /// - Parameters:
  ///   - isAnew: True if the diff repeats the row.
  ///   - called: The replicas that the row came from.
  private mutating func meet(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, isAnew: Bool, _ called: [NameRuns.Name]
  ) throws -> MetRow {
    if isAnew, let known = try vouchers.hash(row, bytes, of: table, streams: streams, from: sender) {
      return .brought(known)
    }
    let isInTheWay = try rowsHere[table.name].map { try $0.contains(table.key(row, bytes)) } ?? false
    let said = repeatsRows ? try said(row, bytes, of: table) : nil
    guard !called.isEmpty || isInTheWay || said != nil || identified.contains(table.name) else { return .unknown }
    let here = try LocalRow(row, bytes, of: table, on: connection)
    if here == nil, try table.finds(table.lookup, row, bytes, on: connection) {
      // The table does not have all columns yet.
      return .unknown
    }
    let name = try known(called, row, bytes, of: table, isHere: here != nil)
    if isInTheWay, name == nil, let here, !table.hasAllColumns || here.hash != table.contentHash(row, bytes) {
      contested[table.name, default: []].insert(table.key(row, bytes))
    }
    // A row whose key is spelled otherwise now is deleted and inserted.
    if let here, !here.hasSameKey(as: row, bytes, of: table) { return .unknown }
    return .local(here, name, said: said)
  }

  /// The places of the columns that the author of an INSERT has changed since the version of the row that they have taken from here, and that
  /// are not as in that version; all where the version is not known.
  private func changedPlaces(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ header: ChangesetTable, _ met: MetRow
  ) throws -> Set<Int> {
    switch met {
    case .unknown, .local(_, nil, said: nil): return Set(row.indices)
    case .local(let here?, let name?, _):
      guard let version = name.version else { return [] }
      let base = RecoveredRow(
        version, of: row.map { bytes.array($0.encoded) }, table, beside: here, try sentRow(row, bytes, of: table))
      guard let base else { return Set(row.indices) }
      return Set(base.changedPlaces(row, bytes, header).filter { base.values[$0] != here.encoded($0) })
    case .brought, .local: return []
    }
  }

  /// Writes what an INSERT changes here.
  ///
  /// - Parameters:
  ///   - met: What is known of its row.
  ///   - isRelayed: True if others have brought the row to the sender.
  /// - Returns: True if that is known; otherwise it stays an INSERT.
  private mutating func write(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ header: ChangesetTable, _ met: MetRow,
    isRelayed: Bool, into writer: inout ChangesetWriter
  ) throws -> Bool {
    switch met {
    case .unknown: return false
    case .brought(let known): return try writeAnew(row, bytes, of: table, header, since: known, into: &writer)
    case .local(let here, let name?, let said):
      return try write(
        row, bytes, of: table, header, over: here, taken: name.version, isOwn: name.replica == own, said: said,
        into: &writer)
    case .local(let here?, nil, let said):
      if let said, try !followsClock(table),
        try writeDifference(row, bytes, of: table, header, over: here, since: said, into: &writer)
      {
        return true
      }
      guard identified.contains(table.name) else { return false }
      writer.appendUpdate(ofUnknown: here, to: row, bytes, header)
      return true
    case .local(nil, nil, _):
      guard isRelayed, try !followsClock(table) else { return false }
      // Who passes a row on that was deleted meanwhile has not heard of it.
      let deleted = try Tombstones.hash(of: table.key(row, bytes), in: table.name, on: connection)
      return deleted == table.contentHash(row, bytes)
    }
  }

  /// Writes what a row that the stream has brought before changes here.
  private func writeAnew(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ header: ChangesetTable, since known: UInt64,
    into writer: inout ChangesetWriter
  ) throws -> Bool {
    guard let here = try LocalRow(row, bytes, of: table, on: connection) else {
      // It was deleted here, unless it was never taken. An edit of it is a conflict.
      let isHere = try table.finds(table.lookup, row, bytes, on: connection)
      if try isHere || !wasTaken(row, bytes, of: table) { return false }
      if known != table.contentHash(row, bytes) { writer.appendUpdate(ofMissing: row, bytes, header) }
      return true
    }
    // What has been edited here since is for the next share from here to say.
    if known == table.contentHash(row, bytes) { return true }
    guard here.hash == known else {
      guard identified.contains(table.name) else { return false }
      writer.appendUpdate(ofUnknown: here, to: row, bytes, header)
      return true
    }
    writer.appendUpdate(of: here, to: row, bytes, header)
    return true
  }

  /// Which of the replicas that a row came from tells which row here it is: this database, as far as it has shared the row with somebody, or
  /// one whose stream has brought it here, too.
  private func known(
    _ called: [NameRuns.Name], _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, isHere: Bool
  ) throws -> NameRuns.Name? {
    if let own, let name = called.first(where: { $0.replica == own }) {
      // A row that its sender has withdrawn was not deleted here, and may come back.
      func isDeleted() throws -> Bool {
        try !TakenBackRows.contains(
          table.key(row, bytes), of: table.name, for: TakenBackRows.withdrawn, on: connection)
      }
      if try sent.contains(where: { try $0.has(row, bytes, of: table) }) || !isHere && isDeleted() { return name }
    }
    guard !called.isEmpty else { return nil }
    let brought = try vouchers.found(row, bytes, of: table).filter { $0.entry.stream != place.stream }
    for name in called where name.replica != own {
      guard let found = try brought.first(where: { try names.author(of: $0.entry) == name.replica }) else { continue }
      // A row that was kept out by a conflict may come by another way.
      if try isHere || wasTaken(row, bytes, of: table, found.entry) { return name }
    }
    return nil
  }

  /// The hash of what the sender has said of a row last, in this stream or else in another one of the same replica; nil where none of these
  /// has brought it.
  private func said(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> UInt64? {
    let found = try vouchers.found(row, bytes, of: table).filter { $0.entry.sender == sender }
    if let same = found.first(where: { $0.entry.stream == place.stream }) { return same.row.hash }
    guard let author else { return nil }
    return try found.first { try names.author(of: $0.entry) == author }?.row.hash
  }

  /// True if a row that the stream has brought was ever taken.
  private func wasTaken(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> Bool {
    try vouchers.found(row, bytes, of: table).contains {
      try $0.entry.sender == sender && streams.contains($0.entry.stream) && wasTaken(row, bytes, of: table, $0.entry)
    }
  }

  private func wasTaken(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ entry: VouchEntry
  ) throws -> Bool {
    try UntakenRows(of: entry.number).version(of: table.key(row, bytes), on: connection) != RowState.absent
  }

  /// Writes how a row differs from a version of a row that is known here.
  ///
  /// - Parameters:
  ///   - here: The row as it is here; nil where it is gone.
  ///   - version: The hash of the version; nil where the row is still that.
  ///   - isOwn: True if it was taken from here.
  ///   - said: The hash of what the sender has said of the row last; nil where they have not brought it.
  /// - Returns: True if that is known; otherwise the row stays an INSERT.
  private mutating func write(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ header: ChangesetTable, over here: LocalRow?,
    taken version: UInt64?, isOwn: Bool, said: UInt64?, into writer: inout ChangesetWriter
  ) throws -> Bool {
    let follows = try followsClock(table)
    guard let version else {
      // Its sender has it from the same source, and that tells of what is newer.
      return isOwn || !follows
    }
    guard let here else {
      if !isOwn, follows { return false }
      writer.appendUpdate(ofMissing: row, bytes, header)
      return true
    }
    if try writeDifference(row, bytes, of: table, header, over: here, since: version, into: &writer) { return true }
    if follows { return false }
    if let said, try writeDifference(row, bytes, of: table, header, over: here, since: said, into: &writer) {
      return true
    }
    writer.appendUpdate(ofUnknown: here, to: row, bytes, header)
    return true
  }

  /// Writes how a row differs from an earlier version of it.
  ///
  /// - Parameter version: The hash of the version.
  /// - Returns: False if the values of the version cannot be found out; then nothing is written.
  private func writeDifference(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ header: ChangesetTable, over here: LocalRow,
    since version: UInt64, into writer: inout ChangesetWriter
  ) throws -> Bool {
    let incoming = row.map { bytes.array($0.encoded) }
    guard let base = RecoveredRow(version, of: incoming, table, beside: here, try sentRow(row, bytes, of: table))
    else { return false }
    writer.appendUpdate(of: base.changedPlaces(row, bytes, header), to: row, bytes, header) {
      if header.isKey($0) { $1.append(row[$0], of: bytes) } else { $1.append(encoded: base.values[$0]) }
    }
    return true
  }

  /// A row as it was sent last, to the sender if it was.
  private func sentRow(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> PeerShadow.SentRow? {
    for shadow in sent {
      if let found = try shadow.sentRow(row, bytes, of: table) { return found }
    }
    return nil
  }

  private mutating func followsClock(_ table: KeyedTable) throws -> Bool {
    if let known = hasClock[table.name] { return known }
    let found = try RowClocks.number(of: table.local, on: connection) != nil
    hasClock[table.name] = found
    return found
  }

  /// Writes the deletion of a row whose values its sender does not know any more; nothing where the row is not known here.
  private func writeDeletion(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ called: [NameRuns.Name],
    into writer: inout ChangesetWriter
  ) throws {
    guard let here = try LocalRow(row, bytes, of: table, on: connection),
      let version = try known(called, row, bytes, of: table, isHere: true)?.version
    else { return }
    try writeDeletion(row, bytes, of: table, here, version: version, into: &writer)
  }

  /// Writes the deletion of a version of a row: a conflict where it is another one here.
  private func writeDeletion(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ here: LocalRow, version: UInt64,
    into writer: inout ChangesetWriter
  ) throws {
    writer.beginChange(.delete)
    if here.hash == version { return writer.append(encoded: here.values) }
    let base = RecoveredRow(version, of: nil, table, beside: here, try sentRow(row, bytes, of: table))
    for place in row.indices {
      if let base {
        writer.append(encoded: base.values[place])
      } else if row[place].isDefined {
        writer.append(row[place], of: bytes)
      } else {
        writer.appendNull()
      }
    }
  }

  /// The keys with which the stream has sent rows, by their keys here, where the two differ.
  private func brought(of table: KeyedTable) throws -> [[UInt8]: [[UInt8]]] {
    guard let number = try vouchers.number(of: table, stream: place.stream, from: sender) else { return [:] }
    let rows = try TranslatedRows(of: number).all(on: connection)
    return Dictionary(grouping: rows.keys) { rows[$0]?.local ?? $0 }
  }

  /// Deletes the rows that the stream had, and that are here on its account alone.
  ///
  /// - Returns: True if there are any.
  private func writeDeletions(
    of table: KeyedTable, _ author: TableDefinition, except present: KeySet?, into output: TemporaryBuffer
  ) throws -> Bool {
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: author.name, keyFlags: author.keyFlags))
    let header = writer.count
    let begin = output.count
    let sent = try resent.isPartial ? brought(of: table) : [:]
    for (number, stream) in streams.enumerated() {
      try vouchers.forEach(of: table, stream: stream, from: sender) { key, brought in
        guard (sent[key] ?? [key]).allSatisfy({ resent.cover($0, of: table.name) }),
          let comparable = table.comparable(key), try present?.contains(comparable) != true
        else { return }
        try key.withRawSpan { bytes in
          let row = table.row(withKey: bytes)
          let isWritten =
            try vouchers.hash(row, bytes, of: table, streams: Array(streams[..<number]), from: sender) != nil
          guard try !isWritten && !vouchers.stays(row, bytes, of: table, withoutStreams: streams, from: sender),
            let here = try LocalRow(row, bytes, of: table, on: connection)
          else { return }
          try writeDeletion(row, bytes, of: table, here, version: brought.hash, into: &writer)
        }
        guard writer.count > 1 << 20 else { return }
        try output.write(writer.bytes)
        writer = ChangesetWriter()
      }
    }
    guard output.count > begin || writer.count > header else { return false }
    try output.write(writer.bytes)
    return true
  }
}
