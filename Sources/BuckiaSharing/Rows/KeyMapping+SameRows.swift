import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Which local row an incoming one is.
extension KeyMapping {
  /// The key here of the one row that has the values of an incoming one in the columns by which rows are the same, and that the sender does
  /// not call otherwise; nil where there is none.
  func match(_ row: [ValueSlice], _ bytes: RawSpan, _ table: KeyedTable) throws -> Int64? {
    guard let columns = matches[table.name] else { return nil }
    let places = columns.compactMap { name in table.columns.firstIndex { ASCIIName.matches($0, name) } }
    guard places.count == columns.count, places.allSatisfy({ row[$0].kind != .null && !table.keyPlaces.contains($0) })
    else { return nil }
    let condition = columns.enumerated().map { "\(SQLText.identifier($1)) = ?\($0 + 1)" }.joined(separator: " AND ")
    let prepared = try connection.cached(
      "SELECT \(table.local.keySQL[0]) FROM \(table.sql) WHERE \(condition) LIMIT 2")
    defer {
      prepared.statement.reset()
      prepared.statement.clearBindings()
    }
    for (index, place) in places.enumerated() {
      if row[place].kind == .integer, let target = layouts[table.name]?[place] {
        try prepared.statement.bind(mapped(row[place].integer(in: bytes), target), at: index)
      } else {
        try prepared.statement.bind(row[place], in: bytes, at: index)
      }
    }
    guard try prepared.statement.step() else { return nil }
    let local = prepared.statement.integer(at: 0)
    guard try !prepared.statement.step(), taken[table.name]?.contains(local) != true,
      try !names.has(local, of: table, at: sender)
    else { return nil }
    return local
  }

  /// The deleted row that a change means, if another row has its key now: the change is of the deleted version, or its
  /// author has not applied a diff that tells of the deletion.
  ///
  /// - Parameter isReference: True if the change refers to the row, which the sender must have had.
  /// - Returns: The hash of the deleted version, and the diff that has deleted it; a table with a clock has no hash.
  func hasGivenAway(
    _ key: Int64, of version: UInt64?, _ table: KeyedTable, isReference: Bool = false
  ) throws -> (hash: UInt64?, diff: KSUID)? {
    let bytes = IntegerKey.encoded(key)
    if !unseenShares.isEmpty, let clock = try RowClocks.number(of: table.local, on: connection) {
      let deletions = try unseenShares.compactMap {
        try TombstoneAcknowledgements.sentDeletion(
          bytes, in: clock, to: $0.share.number, beyond: $0.through, on: connection)
      }
      if let diff = deletions.first, try table.hasRow(withKey: key, on: connection) {
        // A row that came back is the deleted one.
        let inserted = try insertion(of: key, table)
        return inserted.map { $0.isOwn && $0.diff > diff } ?? true ? (nil, diff) : nil
      }
    }
    guard let deleted = try Tombstones.row(bytes, of: table.name, on: connection),
      let here = try table.withRow(forKey: key, { try LocalRow($0, $1, of: table, on: connection) }),
      here.hash != deleted.hash
    else { return nil }
    let isUnaware = try lastApplied.get().map { $0 < deleted.diff } ?? isReference
    return version == deleted.hash || isUnaware ? deleted : nil
  }

  /// Maps the row that had a key before another one to a key that no row gets, so that it stays deleted.
  ///
  /// - Parameter version: The version that the change means; nil if it is unknown.
  /// - Returns: The key.
  func setAside(
    _ deleted: (hash: UInt64?, diff: KSUID), _ key: Int64, of version: UInt64?, _ table: KeyedTable
  ) throws -> Int64 {
    let gone = try newKeys.scattered { try taken[table.name]?.contains($0) == true || !isUnused($0, in: table) }
    if let clock = try RowClocks.number(of: table.local, on: connection) {
      try RowClocks.noteDeletion(of: gone, by: deleted.diff, in: clock, on: connection)
    } else if let hash = version ?? deleted.hash {
      try Tombstones.note(
        IntegerKey.encoded(gone), of: table.name, table.hash(hash, ofRowWith: key, underKey: gone), by: deleted.diff,
        on: connection)
    }
    return gone
  }

  /// Maps references to rows that were deleted here, and whose keys other rows have now, to keys that no row gets.
  func setAsideReferences() throws {
    for (name, keys) in try referredKeys(in: unseenDeletions, isOutside: true) {
      guard let table = tables[name] else { continue }
      for key in keys.sorted() where found[name]?[key] == nil {
        let local = try implied(key, in: name)
        guard let deleted = try hasGivenAway(local, of: nil, table, isReference: true) else { continue }
        try note(key, is: setAside(deleted, local, of: nil, table), in: name)
      }
    }
  }

  /// True if rows of a table were deleted here, which the author of a diff may not know.
  ///
  /// - Parameter unseen: The shares of which the author had not applied all diffs.
  static func hasDeleted(
    rowsOf name: TableName, _ unseen: [(share: ShareEntry, through: Int64)], _ schema: SchemaReader,
    on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    if try Tombstones.exist(of: name, on: connection) { return true }
    guard !unseen.isEmpty, let local = try schema.table(named: name),
      let clock = try RowClocks.number(of: local, on: connection)
    else { return false }
    for (share, through) in unseen
    where try TombstoneAcknowledgements.sentDeletion(in: clock, to: share.number, beyond: through, on: connection)
      != nil
    { return true }
    return false
  }

  /// The keys of rows that the changes have, and to which they refer.
  ///
  /// - Parameters:
  ///   - named: The tables of the rows.
  ///   - isOutside: True for rows that the changes only refer to.
  func referredKeys(in named: Set<TableName>, isOutside: Bool = false) throws -> [TableName: Set<Int64>] {
    var keys: [TableName: Set<Int64>] = [:]
    var changed: [TableName: Set<Int64>] = [:]
    guard !named.isEmpty else { return keys }
    try Changesets.forEachChange(of: changes.changeset, knowing: changes.feed.summary()) { change, reader, bytes in
      guard let header = reader.table, let targets = layouts[TableName(header.name)] else { return }
      for row in isOutside ? [reader.new] : [reader.old, reader.new] {
        for (value, target) in zip(row, targets) where value.kind == .integer {
          if let target, named.contains(target) { keys[target, default: []].insert(value.integer(in: bytes)) }
        }
      }
      let row = change.operation == .insert ? reader.new : reader.old
      if isOutside, let table = tables.table(of: header), let key = table.integerKey(of: row, bytes) {
        changed[table.name, default: []].insert(key)
      }
    }
    return keys.reduce(into: [:]) { $0[$1.key] = $1.value.subtracting(changed[$1.key] ?? []) }
  }

  /// True if the local row can be the one that a name means.
  ///
  /// The key may belong to another row meanwhile: if another replica has sent the origin key, if the row's replica has
  /// deleted the row since, or if another stream has sent the row that has a key of this database now. An inserted row
  /// then has to be of the version that the senders of the origin key have taken, or to share a value with the local row that
  /// two rows hardly share by chance, unless the sender states that it shares with the senders of the origin key. If the
  /// replica itself sends the row, a shared value proves nothing, but the diff that has inserted both does.
  func isSame(
    _ name: OriginKeys.Name, _ version: UInt64?, _ local: Int64, _ row: InsertedRow?, _ table: KeyedTable
  ) throws -> Bool {
    guard let (values, bytes, origin) = row else { return true }
    var isClaimed = false
    if name.replica == own {
      let brought = try table.withRow(forKey: local) { try provenance.found($0, $1, of: table) }
        .filter { $0.entry.stream != place.stream }
      guard !brought.isEmpty, !brought.contains(where: { $0.row.isOwn }) else { return true }
    } else {
      guard let entry = try names.entry(of: name, in: table.name), let claimant = entry.claimant,
        name.replica != sender || !isSharedWith(claimant)
      else { return true }
      // Both have taken the same version from the replica.
      if entry.version == version { return true }
      // Unsigned diffs may be by the same person.
      isClaimed = name.replica == sender && claimant != OriginKeyEntry.deleted && !changes.key.sender.isEmpty
    }
    let here = try table.withRow(forKey: local) { try LocalRow($0, $1, of: table, on: connection) }
    guard let here else {
      // Other replicas may not know of the deletion, and the row's replica may have reused its key. The hash of a row
      // with references depends on the keys that the referenced rows have here.
      let refers = layouts[table.name]?.enumerated().contains { $1 != nil && !table.keyPlaces.contains($0) } ?? false
      guard name.replica == sender, !refers else { return true }
      let deleted = try Tombstones.hash(of: IntegerKey.encoded(local), in: table.name, on: connection)
      return deleted.map { $0 == table.contentHash(values, bytes, underKey: local) } ?? true
    }
    let equal = try equalPlaces(values, bytes, table, here)
    if equal.count == values.count - table.keyPlaces.count { return true }
    guard !isClaimed else { return try origin != nil && insertion(of: local, table)?.diff == origin }
    return equal.contains { values[$0].kind != .integer && values[$0].encoded.count > Self.commonLength }
  }

  /// True if the author of the diff shares with a person, by any of the person's keys.
  private func isSharedWith(_ key: String) -> Bool {
    ([key] + senders.otherKeys(of: key) + senders.keys(before: key)).contains { changes.claims.isSharedWith($0) }
  }

  /// The size of an encoded value up to which many rows may share it, such as NULL or a word of two letters.
  private static let commonLength = 4

  /// True if no other row has a local key: there is no row, or an equal one. A deleted row keeps its key until the
  /// recipients know of the deletion; otherwise their changes of it would meet the next row.
  ///
  /// - Parameters:
  ///   - isMeant: True if the diff names the row by this key of this database.
  ///   - called: What replicas call the row.
  ///   - origin: The diff that has inserted the row first; nil for the diff itself.
  func isFree(
    _ key: Int64, for row: [ValueSlice], _ bytes: RawSpan, _ table: KeyedTable, isMeant: Bool,
    called: [OriginKeys.Name], origin: KSUID?
  ) throws -> Bool {
    let here = try table.withRow(forKey: key) { own, keyBytes in
      guard try table.finds(table.lookup, own, keyBytes, on: connection) else {
        return (isHere: false, row: LocalRow?.none)
      }
      return (true, try LocalRow(own, keyBytes, of: table, on: connection))
    }
    guard here.isHere else {
      guard key <= AutoIncrement.greatestIncomingID else { return false }
      if try isMeant || !wasUsed(key, in: table) { return true }
      if try (place.isSnapshot || origin != nil) && wasDeletedUnnoticed(key, row, bytes, table) { return true }
      return try wasDeletedSince(origin ?? changes.key.id, key, called, table)
    }
    guard let local = here.row else { return false }
    let equalPlaces = try equalPlaces(row, bytes, table, local).count
    let places = row.count - table.keyPlaces.count
    guard equalPlaces == places else {
      guard copies != nil else { return false }
      // Rows that share few values are different rows, whatever policy a person has chosen, and so are rows that were added since.
      guard try 2 * equalPlaces >= places && !wasSentLater(key, table) else { return false }
      met.different += 1
      return copies == .same
    }
    met.equal += 1
    equal.insert(table.name)
    return true
  }

  /// True if a row equals the one that had a key here before it was deleted, and the author does not know of the
  /// deletion. If it is no new row, it stays deleted then.
  private func wasDeletedUnnoticed(
    _ key: Int64, _ row: [ValueSlice], _ bytes: RawSpan, _ table: KeyedTable
  ) throws -> Bool {
    let hash = table.contentHash(row, bytes, underKey: key)
    if let deleted = try Tombstones.row(IntegerKey.encoded(key), of: table.name, on: connection) {
      return try deleted.hash == hash && lastApplied.get().map { $0 < deleted.diff } ?? true
    }
    if try TombstoneAcknowledgements.haveSent(
      unseenShares, deletionOf: IntegerKey.encoded(key), hash, of: table, on: connection)
    {
      return true
    }
    // No share has sent the deletion yet.
    return try table.withRow(forKey: key) { try provenance.hasLost($0, $1, of: table, hash, baselines.get()) }
  }

  /// True if a replica has deleted the row that it calls by a key, and that it has by the same key here, later than a diff has inserted it. The
  /// clock of the table then leaves out the INSERT.
  private func wasDeletedSince(
    _ insertion: KSUID?, _ key: Int64, _ called: [OriginKeys.Name], _ table: KeyedTable
  ) throws -> Bool {
    let replicas = called.filter { $0.key == key }.map(\.replica)
    guard let insertion, !replicas.isEmpty, let clock = try RowClocks.number(of: table.local, on: connection)
    else { return false }
    let bytes = IntegerKey.encoded(key)
    guard let deletion = try RowClocks.deletion(of: bytes, in: clock, on: connection), insertion < deletion
    else { return false }
    return try replicas.contains {
      try TombstoneAcknowledgements.hasReceived(bytes, in: clock, from: $0, on: connection)
    }
  }

  /// True if a share has sent a row for the first time after its first diff. The row was added after the database was copied then, since the
  /// copy does not know the share.
  private func wasSentLater(_ key: Int64, _ table: KeyedTable) throws -> Bool {
    if try SentColumns.hasInserted(IntegerKey.encoded(key), into: table.name, on: connection) { return true }
    guard let insertion = try insertion(of: key, table), insertion.isOwn else { return false }
    return try OutboxEntry.isLater(insertion.diff, on: connection)
  }

  /// The diff that has inserted a row here, by the clock of its table; nil if that has none.
  private func insertion(of key: Int64, _ table: KeyedTable) throws -> ClockedRows.Setter? {
    let rows = try rowVersions[table.name] ?? ClockedRows(of: table.local, includingOwn: true, on: connection)
    rowVersions[table.name] = .some(rows)
    return try rows?.row(IntegerKey.encoded(key), isHere: true).insertion
  }

  /// The columns outside the key in which a row of the sender equals a local one.
  private func equalPlaces(
    _ row: [ValueSlice], _ bytes: RawSpan, _ table: KeyedTable, _ local: LocalRow
  ) throws -> [Int] {
    let targets = layouts[table.name] ?? []
    return try row.indices.filter { place in
      guard !table.keyPlaces.contains(place) else { return false }
      guard row[place].kind == .integer, place < targets.count, let target = targets[place] else {
        return local.encoded(place) == bytes.array(row[place].encoded)
      }
      return try local.encoded(place) == IntegerKey.encoded(mapped(row[place].integer(in: bytes), target))
    }
  }
}
