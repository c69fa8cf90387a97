import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Records which rows streams have sent, after their changes have been applied.
extension InboundShares {
  /// Records which rows a stream has sent, and which it no longer has.
  func note(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable, _ place: StreamPlace,
    _ sender: String, _ state: ReceivedState?, as sent: SentChange?, mayBeUntaken: Bool, followsTaken isFollowed: Bool
  ) throws {
    let row = change.operation == .insert ? reader.new : reader.old
    guard table.hasKey(row) else { return }
    if !table.comparesKeysByBytes, !place.isSnapshot {
      let key = table.foldedKey(row, bytes)
      if change.operation == .insert { try state?.inserted.insert(key, of: table.name, in: keySets) }
      // The diff has replaced the row by one with another spelling of the key.
      if change.operation == .delete, try state?.inserted[table.name]?.contains(key) == true { return }
    }
    let known =
      try (state == nil || place.isSnapshot) && !mayBeUntaken
      ? nil : provenance.hash(row, bytes, of: table, streams: [place.stream], from: sender)
    switch change.operation {
    case .insert:
      let isOwn = try !own.isEmpty && own[table.name]?.contains(table.key(reader.new, bytes)) == true
      try provenance.add(reader.new, bytes, of: table, stream: place.stream, from: sender, isOwn: isOwn)
    case .update:
      try provenance.update(reader, bytes, of: table, stream: place.stream, from: sender)
    case .delete:
      try provenance.remove(reader.old, bytes, of: table, stream: place.stream, from: sender)
    }
    try state?.follow(change, reader, bytes, of: table, after: place.isSnapshot ? nil : known, as: sent)
    // In most cases, the last change of each row was accepted.
    let followsTaken = try mayBeUntaken || hasUntaken ?? RowNotes.exist(.untaken, on: connection)
    hasUntaken = followsTaken
    guard followsTaken, isFollowed else { return }
    if let number = try provenance.number(of: table, stream: place.stream, from: sender) {
      try noteTaken(change, reader, bytes, of: table, number, before: known, mayBeUntaken)
    }
  }

  /// Records which version of a row was accepted last, if it is not the version of the stream.
  ///
  /// - Parameters:
  ///   - stream: The number of the stream's provenance entry for the table.
  ///   - known: The hash of the stream's previous version; nil for none.
  private func noteTaken(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable, _ stream: Int64,
    before known: UInt64?, _ mayBeUntaken: Bool
  ) throws {
    let untaken = RowNotes(untakenFrom: stream)
    guard try mayBeUntaken || untaken.exist(on: connection) else { return }
    let row = change.operation == .insert ? reader.new : reader.old
    let key = table.foldedKey(row, bytes)
    guard change.operation != .delete else { return try untaken.note(nil, of: key, on: connection) }
    let here = try LocalRow(row, bytes, of: table, on: connection)
    if change.operation == .insert, here == nil, let diff = origins?.diff(of: change, reader, bytes),
      try OutboxEntry.isMadeHere(diff, on: connection)
    {
      // The row was made here, so it is missing because it was deleted, and not because of a conflict.
      return try untaken.note(nil, of: key, on: connection)
    }
    let before = try untaken.state(of: key, on: connection) ?? RowState(known)
    let places = row.indices.filter { reader.new[$0].isDefined && !table.keyPlaces.contains($0) }
    let taken = places.filter { here?.encoded($0) == bytes.array(reader.new[$0].encoded) }
    if here != nil, taken.count == places.count, change.operation == .insert || before == known.map({ .present($0) }) {
      return try untaken.note(nil, of: key, on: connection)
    }
    guard change.operation == .update, case .present(let version) = before else {
      return try untaken.note(before, of: key, on: connection)
    }
    var hash = StreamRowHash(version)
    for place in taken where reader.old[place].isDefined {
      hash.remove(reader.old[place], bytes, table.seeds[place])
      hash.add(reader.new[place], bytes, table.seeds[place])
    }
    try untaken.note(.present(hash.value), of: key, on: connection)
  }

  /// True if the snapshot of a restored backup replaces a stream of which more was applied here than its author has.
  /// Only a restored backup continues as another replica.
  func comesFromBackup(_ changes: IncomingChanges) throws -> Bool {
    guard let (replaced, _) = try restored(by: changes) else { return false }
    // A backup from before the stream began acknowledges none of it.
    let known = changes.claims.acknowledgements.first { $0.stream == replaced }?.through ?? 0
    return try keys(of: changes).contains { try StreamEntries.last(of: replaced, from: $0, on: connection) > known }
  }

  /// Makes the next diff of each share with the owner of a restored backup a snapshot, which has what the backup lacks.
  func noteRestored(by changes: IncomingChanges) throws {
    guard let (stream, former) = try restored(by: changes) else { return }
    for var share in try changes.sharesWithAuthor(senders, on: connection) {
      let known = try AcknowledgementEntry.all(of: share.number, on: connection).filter { $0.replica == former }
      guard isFromBackup || known.contains(where: { $0.through > changes.claims.acknowledged(share) }) else { continue }
      share.last = nil
      try share.write(on: connection)
    }
    for key in keys(of: changes) {
      try AcknowledgementEntry.removeAll(by: key, former, on: connection)
      try StateEntry.remove(stream, from: key, nil, on: connection)
    }
  }

  /// The stream that the snapshot of a restored backup replaces, and its replica; nil for other changes.
  private func restored(by changes: IncomingChanges) throws -> (stream: [UInt8], replica: [UInt8])? {
    guard let replaced = changes.place?.replaces, let replica = changes.claims.replica else { return nil }
    for key in keys(of: changes) {
      guard let former = try OriginKeyEntry.author(of: replaced, from: key, on: connection) else { continue }
      return former == replica ? nil : (replaced, former)
    }
    return nil
  }

  /// The signing keys of the author of changes, in the ledger's form.
  private func keys(of changes: IncomingChanges) -> [String] {
    [changes.key.sender] + senders.keys(before: changes.key.sender)
  }

  /// Deletes the record of the rows that a stream had before its snapshot.
  func noteSnapshot(_ changes: IncomingChanges, _ place: StreamPlace, _ tables: KeyedTables) throws {
    let sender = changes.key.sender
    var earlier: [(TableName, KeyedTable)] = []
    for name in try ProvenanceEntry.tables(of: place.stream, from: sender, on: connection) {
      if let table = tables[name] {
        // Rows recorded for the first time are those of the snapshot itself.
        if try provenance.hadRows(of: table, stream: place.stream, from: sender) { earlier.append((name, table)) }
      } else {
        try provenance.forget(place.stream, from: sender, name)
      }
    }
    if !earlier.isEmpty {
      let present = try keys(in: changes, tables)
      for (name, table) in earlier {
        let kept = present[name]
        try provenance.remove(of: table, stream: place.stream, from: sender, noting: keySets.make()) { key in
          try kept?.contains(table.folded(key)) != true
        }
      }
    }
    guard let replaced = place.replaces else { return }
    for name in try ProvenanceEntry.tables(of: replaced, from: sender, on: connection) {
      try provenance.forget(replaced, from: sender, name)
    }
    try StateEntry.remove(replaced, from: sender, nil, on: connection)
  }

  /// Deletes the record of the rows that a diff sends again.
  func noteResent(
    _ resent: ResentRows, _ changes: IncomingChanges, _ place: StreamPlace, _ state: ReceivedState?,
    _ schema: SchemaReader
  ) throws {
    var present: [TableName: KeySet] = [:]
    let tables = try KeyedTables(changes.definitions ?? [], and: resent.tables, schema)
    try Changesets.forEachChange(of: changes.changeset, knowing: changes.feed.summary()) { change, reader, bytes in
      guard change.operation == .insert, let table = reader.table.flatMap({ tables[TableName($0.name)] }),
        table.hasKey(reader.new)
      else { return }
      try present.insert(table.foldedKey(reader.new, bytes), of: table.name, in: keySets)
    }
    let sender = changes.key.sender
    for name in resent.tables {
      guard let table = tables[name] else { continue }
      try provenance.remove(of: table, stream: place.stream, from: sender, noting: keySets.make()) { key in
        let key = table.folded(key)
        return try present[name]?.contains(key) != true
          && (state?.sentKeys(of: key, in: name) ?? [key]).allSatisfy { resent.cover($0, of: name) }
      }
    }
  }

  /// The keys of the rows that a snapshot holds.
  private func keys(in changes: IncomingChanges, _ tables: KeyedTables) throws -> [TableName: KeySet] {
    var present: [TableName: KeySet] = [:]
    try Changesets.forEachChange(of: changes.changeset, knowing: changes.feed.summary()) { _, reader, bytes in
      guard let table = reader.table.flatMap({ tables.table(of: $0) }), table.hasKey(reader.new) else { return }
      try present.insert(table.foldedKey(reader.new, bytes), of: table.name, in: keySets)
    }
    return present
  }
}
