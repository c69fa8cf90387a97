import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Maps the keys in the changes of a share to local keys.
///
/// Two replicas give the same integer key to different rows. An incoming row whose key belongs to another local row
/// gets a new one, and everything that refers to it in the sender's diffs follows, now and later. Rows that are equal
/// in every column are one row.
final class KeyMapping {
  let sender: [UInt8]
  let own: [UInt8]?
  let place: StreamPlace
  let names: OriginKeys
  let provenance: Provenance
  let connection: SQLiteConnection
  let changes: IncomingChanges
  let senders: KnownSenders
  private let naming: RowNaming
  let tables: KeyedTables
  private let columns: KeyColumns
  /// For each table of the diff and each of its columns, the table whose keys the column holds.
  let layouts: [TableName: [TableName?]]
  /// The tables for which the ledger has key mappings of the sender.
  private let known: Set<TableName>
  /// The rows of the stream that have other keys here, including rows that were deleted here.
  private let brought: [TableName: MappedRows]

  /// The local keys of rows by the sender's keys, as far as this diff determines them.
  private(set) var found: [TableName: [Int64: Int64]] = [:]
  private var entries: Set<OriginKeyEntry> = []
  /// The local keys of rows of this diff, for tables in which some are named by other replicas' keys.
  var taken: [TableName: Set<Int64>] = [:]
  /// Local keys by which the diff names rows. If such a row was deleted here, it gets its key back, and no other row
  /// does.
  private var recalled: [TableName: Set<Int64>] = [:]
  private let baselineKeys: BaselineKeys
  /// The clocks of tables, read when first needed.
  var rowVersions: [TableName: ClockedRows?] = [:]
  let newKeys: NewKeys
  private var greatest: [TableName: (regular: Int64, any: Int64)]?
  /// How to treat the first diff of a copy; nil for other diffs.
  let copies: CopyPolicy?
  var met = (equal: 0, different: 0)
  /// The shares of which the author had not applied all diffs, and how far the author had applied them.
  let unseenShares: [(share: ShareEntry, through: Int64)]
  /// The tables to which the diff may refer and of which the author may not know all deletions.
  let unseenDeletions: Set<TableName>
  /// The columns by which rows are the same that both sides have added under different keys.
  let matches: [TableName: [String]]
  /// The rows that were found so, by their keys at the sender.
  private(set) var matched: [TableName: Set<Int64>] = [:]
  /// Tables with incoming rows that were identified with local rows because they are equal.
  var equal: Set<TableName> = []

  /// - Returns: nil for a diff without keys to map.
  /// - Throws: `SQLiteError`, and the errors of a damaged diff.
  init?(
    _ changes: IncomingChanges, _ schema: SchemaReader, _ names: OriginKeys, _ provenance: Provenance,
    _ copies: CopyPolicy, _ senders: KnownSenders, matching matches: [TableName: [String]] = [:],
    on connection: borrowing SQLiteConnection
  ) throws {
    guard let sender = changes.claims.replica, let place = changes.place else { return nil }
    brought = try ProvenanceEntry.numbers(of: place.stream, from: changes.key.sender, on: connection)
      .mapValues { MappedRows(of: $0) }.filter { try $0.value.exist(on: connection) }
    let known = try OriginKeyEntry.tables(of: sender, on: connection).union(brought.keys)
    naming = try changes.naming()
    let authors = changes.definitions ?? []
    let parents =
      authors.flatMap { $0.foreignKeys.map { TableName($0.parent) } } + naming.links.map { TableName($0.key.parent) }
    let unseen = try changes.unseenShares(senders, on: connection)
    unseenDeletions = Set(try parents.filter { try Self.hasDeleted(rowsOf: $0, unseen, schema, on: connection) })
    unseenShares = unseen
    guard
      !changes.claims.ownKeys.isEmpty || !known.isEmpty || !naming.references.isEmpty || !unseenDeletions.isEmpty
    else { return nil }
    self.sender = sender
    self.place = place
    let isFirst = try place.isSnapshot && !OriginKeyEntry.hasStream(of: sender, on: connection)
    self.copies = isFirst ? copies : nil
    self.known = known
    self.matches = matches
    self.names = names
    self.provenance = provenance
    self.changes = changes
    self.senders = senders
    self.connection = SQLiteConnection(sharing: connection)
    baselineKeys = BaselineKeys(on: connection)
    newKeys = NewKeys(baselineKeys, seed: changes.key.digest, on: connection)
    self.own = try ReplicaIdentity.read(on: connection)?.replica
    let here = try schema.definitions(of: authors.map { TableName($0.name) } + parents, with: naming.links)
    // References that either side declares count.
    var merged = Dictionary(authors.map { (TableName($0.name), $0) }) { first, _ in first }
    for table in here {
      let name = TableName(table.name)
      if merged[name] == nil { merged[name] = table } else { merged[name]?.foreignKeys += table.foreignKeys }
    }
    tables = try KeyedTables(authors, and: here.map { TableName($0.name) }, schema)
    columns = KeyColumns(
      Array(merged.values),
      keyed: changes.claims.ownKeys.union(known).union(naming.references.map(\.table)).union(unseenDeletions),
      links: naming.links)
    var layouts: [TableName: [TableName?]] = [:]
    for table in authors {
      let name = TableName(table.name)
      layouts[name] = columns.tables(in: name, columns: table.changesetColumns)
    }
    self.layouts = layouts
  }

  // MARK: Deciding

  /// Determines the local keys of all rows, and rewrites the changes.
  ///
  /// - Throws: `SQLiteError`, `ChangesetError`, `ByteStreamError`.
  func mapped() throws -> IncomingChanges {
    // Most diffs meet no colliding rows and name no keys of other replicas.
    let mayMeet = try changes.claims.ownKeys.contains { name in
      try tables[name].map { try mayMeetOthers(in: $0) } ?? false
    }
    guard
      try mayMeet || !known.isEmpty || !naming.runs.isEmpty || !naming.references.isEmpty || !unseenDeletions.isEmpty
        || reachEnd()
    else { return changes }
    try recall()
    let referred = try referredKeys(in: Set(naming.references.map(\.table)))
    for (name, rows) in Dictionary(grouping: naming.references, by: \.table) {
      guard let table = tables[name] else { continue }
      for (key, called) in Dictionary(grouping: rows, by: \.key).sorted(by: { $0.key < $1.key })
      where referred[name]?.contains(key) == true {
        try take(key, called.map { OriginKeys.Name(replica: $0.replica, key: $0.name) }, table)
      }
    }
    try setAsideReferences()
    // Rows that were identified as equal differ after all if the row that they refer to got another key.
    while true {
      let before = found.mapValues(\.count)
      equal = []
      taken = found.mapValues { Set($0.values) }
      try decideAll()
      // In the first pass no row has a new key.
      if copies == .ask, let refusal = Refusal(ofCopyWithEqual: met.equal, different: met.different) { throw refusal }
      let moved = Set(found.keys.filter { found[$0]?.count != before[$0] })
      guard
        equal.contains(where: {
          !columns.referred(by: $0).subtracting([$0]).isDisjoint(with: moved) || moved.contains($0)
        })
      else { break }
    }
    guard !found.isEmpty || !known.isEmpty, let result = try rewritten() else { return changes }
    hasChanges = true
    return result
  }

  /// True if any value of the changes is mapped to another one.
  private(set) var hasChanges = false

  /// The sender's keys of rows with another local key that other replicas call the same and of which the diff names a
  /// version, by the numbers of the changes, from 1.
  private(set) var calledAsSent: [Int64: Int64] = [:]

  /// The sender's keys of inserted rows by their local keys, if the two differ; only for tables of which the diff sends
  /// rows again.
  private(set) var sentKeys: [TableName: [[UInt8]: [UInt8]]] = [:]

  /// The tables with mapped values.
  var mappedTables: Set<TableName> {
    let moved = known.union(found.keys)
    return Set(layouts.filter { $0.value.contains { target in target.map { moved.contains($0) } ?? false } }.keys)
  }

  /// True if rows of a table may collide with other rows: local ones, received ones, or ones that recipients got from
  /// here.
  private func mayMeetOthers(in table: KeyedTable) throws -> Bool {
    try provenance.isHere(table) || provenance.haveBrought(table) || baselineKeys.exist(of: table)
      || RowClocks.number(of: table.local, on: connection) != nil
      || Tombstones.exist(of: table.name, on: connection)
  }

  /// Collects the local keys by which the diff names rows.
  private func recall() throws {
    guard let own else { return }
    for row in naming.references where row.replica == own { recalled[row.table, default: []].insert(row.name) }
    guard naming.runs.contains(where: { $0.names.contains { $0.replica == own } }) else { return }
    var runs = OriginKeyRuns(naming.runs)
    try Changesets.forEachChange(of: changes.changeset, knowing: changes.feed.summary()) { change, reader, bytes in
      let names = runs.next()
      guard let mine = names.first(where: { $0.replica == own }),
        let table = reader.table.flatMap({ tables.table(of: $0) }),
        let key = mine.key ?? table.integerKey(of: change.operation == .insert ? reader.new : reader.old, bytes)
      else { return }
      recalled[table.name, default: []].insert(key)
    }
  }

  /// Records the sender's key of a row to which others refer.
  private func take(_ key: Int64, _ called: [OriginKeys.Name], _ table: KeyedTable) throws {
    for name in called {
      if let local = try local(name, table) { return try note(key, is: local, in: table.name) }
    }
    // The row was deleted here, and no other one takes its place. Rows of others may still arrive by other ways.
    if try called.contains(where: { $0.replica == own }) && isOfAnother(key, called, table) {
      try note(key, is: newKey(in: table), in: table.name)
    }
  }

  /// True if the row with a key here is not the one that the sender means, whose names are unknown here: the sender has
  /// not sent it under that key, or calls it otherwise.
  private func isOfAnother(_ key: Int64, _ called: [OriginKeys.Name], _ table: KeyedTable) throws -> Bool {
    if try names.isOther(key, than: OriginKeys.Name(replica: sender, key: key), in: table.name) { return true }
    guard !called.isEmpty, try !names.has(key, of: table, at: sender) else { return false }
    return try !called.contains { $0.replica == own && $0.key == key }
      || names.wasDeleted(IntegerKey.encoded(key), of: table)
  }

  /// The local key of a row that a replica names; nil if it is unknown. A key of this database counts only for rows
  /// that it has shared.
  private func local(_ name: OriginKeys.Name, _ table: KeyedTable) throws -> Int64? {
    if name.replica == own, try !baselineKeys.contain(name.key, of: table) { return nil }
    return try names.local(name, in: table, own: own)
  }

  /// Records the local key of a row of the sender.
  func note(_ key: Int64, is local: Int64, in table: TableName) throws {
    // Implied and recorded mappings need no entry.
    let entry = try names.entry(of: OriginKeys.Name(replica: sender, key: key), in: table)
    guard try entry?.claimant != nil || implied(key, in: table) != local else { return }
    found[table, default: [:]][key] = local
    entries.insert(OriginKeyEntry(table: table, replica: sender, key: key, local: local))
  }

  /// An inserted row, and the diff that has inserted it first; nil for the diff itself.
  typealias InsertedRow = (values: [ValueSlice], bytes: RawSpan, origin: KSUID?)

  private func decideAll() throws {
    var runs = OriginKeyRuns(naming.runs)
    var origins = try OriginRuns(changes.origins())
    try Changesets.forEachChange(of: changes.changeset, knowing: changes.feed.summary()) { change, reader, bytes in
      let called = runs.next()
      let origin = origins.next()?.diff
      guard let table = reader.table.flatMap({ tables.table(of: $0) }), changes.claims.ownKeys.contains(table.name)
      else { return }
      let row = change.operation == .insert ? reader.new : reader.old
      guard let key = table.integerKey(of: row, bytes) else { return }
      // An empty table has no colliding rows.
      guard
        try !naming.runs.isEmpty || self.known.contains(table.name) || key > AutoIncrement.greatestIncomingID
          || mayMeetOthers(in: table)
      else { return }
      try decide(key, called, change.operation == .insert ? (row, bytes, origin) : nil, table)
    }
  }

  /// Determines the local key of one row.
  ///
  /// - Parameters:
  ///   - key: Its key at the sender.
  ///   - called: The row's keys at other replicas, if the sender names them.
  ///   - row: The whole row, for an INSERT.
  private func decide(
    _ key: Int64, _ called: [OriginKeyRuns.Name], _ row: InsertedRow?, _ table: KeyedTable
  ) throws {
    if let local = found[table.name]?[key] {
      taken[table.name, default: []].insert(local)
      return
    }
    // Replicas whose rows the sender relays may be unknown here, while the sender's own name is known.
    let others = called.map { OriginKeys.Name(replica: $0.replica, key: $0.key ?? key) }
    var hash: UInt64?
    if let (values, bytes, _) = row { hash = table.contentHash(values, bytes) }
    // Each hash with the key that the row has in it.
    let versions =
      zip(called, others).map { name, other in name.version.map { ($0, other.key) } ?? hash.map { ($0, key) } }
      + [hash.map { ($0, key) }]
    let senders = OriginKeys.Name(replica: sender, key: key)
    // What is known of the sender's own key counts more than the names that the row has elsewhere.
    let isKnown = try names.entry(of: senders, in: table.name).map { $0.claimant == nil } ?? false
    for (name, sent) in (isKnown ? [(senders, versions.last ?? nil)] : []) + zip(others + [senders], versions) {
      guard let local = try local(name, table) else { continue }
      let version = sent.map { table.hash($0.0, ofRowWith: $0.1, underKey: local) }
      if let deleted = try hasGivenAway(local, of: version, table) {
        let gone = try setAside(deleted, local, of: version, table)
        // Others who have the row by this name get the same key for it.
        if name.replica != own {
          entries.insert(OriginKeyEntry(table: table.name, replica: name.replica, key: name.key, local: gone))
        }
        return try note(key, is: gone, in: table.name)
      }
      guard try isSame(name, version, local, row, table) else { continue }
      if !naming.runs.isEmpty { taken[table.name, default: []].insert(local) }
      try note(key, is: local, in: table.name)
      return
    }
    guard let (values, bytes, origin) = row else {
      if try isOfAnother(key, others, table) { try note(key, is: newKey(in: table), in: table.name) }
      return
    }
    if let same = try match(values, bytes, table) {
      taken[table.name, default: []].insert(same)
      if same != key { matched[table.name, default: []].insert(key) }
      return try note(key, is: same, in: table.name)
    }
    func canHave(_ candidate: Int64) throws -> Bool {
      let isMeant = others.contains { $0.replica == own && $0.key == candidate }
      return try taken[table.name]?.contains(candidate) != true
        && (isMeant || recalled[table.name]?.contains(candidate) != true)
        && isFree(candidate, for: values, bytes, table, isMeant: isMeant, called: others, origin: origin)
    }
    let candidates = others.map(\.key) + (others.contains { $0.key == key } ? [] : [key])
    // Rows that are equal under one key at two replicas are one row wherever they meet.
    let local =
      try candidates.first(where: canHave)
      ?? names.locals(called: key, in: table).first { try !names.has($0, of: table, at: sender) && canHave($0) }
      ?? newKey(in: table)
    if !naming.runs.isEmpty || local != key { taken[table.name, default: []].insert(local) }
    try note(key, is: local, in: table.name)
    for (name, version) in zip(others, versions).prefix(OriginKeys.limit)
    where name.replica != sender && name.replica != own {
      entries.insert(
        OriginKeyEntry(
          table: table.name, replica: name.replica, key: name.key, local: local, claimant: changes.key.sender,
          version: version.map { table.hash($0.0, ofRowWith: $0.1, underKey: local) }))
    }
  }

  /// The last diff of this database that the author claims to have applied.
  lazy var lastApplied = Result<KSUID?, any Error> { try changes.lastApplied(on: connection) }

  /// The baselines of all shares.
  lazy var baselines = Result<[PeerBaseline], any Error> {
    try ShareEntry.all(on: connection).map { try PeerBaseline(of: $0, on: connection) }
  }

  /// A key that is unused here and in the diff.
  private func newKey(in table: KeyedTable) throws -> Int64 {
    try newKeys.next(
      in: table,
      behind: {
        [try greatestIncoming()[table.name]?.regular ?? 0]
          + (recalled[table.name] ?? []).filter { $0 < NewKeys.limit }
      },
      unless: { key in try taken[table.name]?.contains(key) == true || !isUnused(key, in: table) })
  }

  /// True if no row is known to have, or have had, a key.
  func isUnused(_ key: Int64, in table: KeyedTable) throws -> Bool {
    try !table.hasRow(withKey: key, on: connection) && !wasUsed(key, in: table)
  }

  /// True if a row is known to have had a key: others have got it or sent it, or its deletion is recorded.
  func wasUsed(_ key: Int64, in table: KeyedTable) throws -> Bool {
    try baselineKeys.contain(key, of: table) || names.wasDeleted(IntegerKey.encoded(key), of: table)
      || !provenance.entries(withKey: key, of: table).isEmpty
      || !names.names(of: key, in: table.name, isGone: true).isEmpty
  }

  /// The greatest key of each table in the diff, and the greatest below ``NewKeys/limit``.
  private func greatestIncoming() throws -> [TableName: (regular: Int64, any: Int64)] {
    if let greatest { return greatest }
    var found: [TableName: (regular: Int64, any: Int64)] = [:]
    try Changesets.forEachChange(of: changes.changeset, knowing: changes.feed.summary()) { change, reader, bytes in
      guard let table = reader.table.flatMap({ tables.table(of: $0) }),
        let key = table.integerKey(of: change.operation == .insert ? reader.new : reader.old, bytes)
      else { return }
      let known = found[table.name] ?? (0, key)
      found[table.name] = (key < NewKeys.limit ? max(known.regular, key) : known.regular, max(known.any, key))
    }
    greatest = found
    return found
  }

  /// True if a row of a table with local keys has a key above which too few are left.
  private func reachEnd() throws -> Bool {
    try changes.claims.ownKeys.contains {
      try greatestIncoming()[$0].map { $0.any > AutoIncrement.greatestIncomingID } ?? false
    }
  }

  // MARK: Rewriting

  /// The local key of a row of the sender.
  func mapped(_ key: Int64, _ table: TableName) throws -> Int64 {
    if let local = found[table]?[key] { return local }
    return try known.contains(table) ? implied(key, in: table) : key
  }

  /// The local key of a row of the sender, unless this diff determines another one. A deleted row keeps its key, so
  /// that later changes of it do not meet another row.
  func implied(_ key: Int64, in table: TableName) throws -> Int64 {
    if let entry = try names.entry(of: OriginKeys.Name(replica: sender, key: key), in: table) { return entry.local }
    guard let row = try brought[table]?.row(IntegerKey.encoded(key), on: connection), row.hash != nil else {
      return key
    }
    return IntegerKey.decoded(row.local) ?? key
  }

  /// The changes with local keys.
  private func rewritten() throws -> IncomingChanges? {
    let moved = known.union(found.keys)
    let output = changes.changeset.makeEmpty()
    var last: ChangesetTable?
    var targets: [TableName?] = []
    var isChanged = false
    var writer = ChangesetWriter()
    let resent = Set(changes.claims.resent.map { TableName($0.table) })
    var names = OriginKeyRuns(naming.runs)
    var ordinal: Int64 = 0
    try Changesets.forEachChange(of: changes.changeset, knowing: changes.feed.summary()) { change, reader, bytes in
      let called = names.next()
      ordinal += 1
      guard let header = reader.table else { return }
      writer.removeAll()
      if last != header {
        writer.beginTable(header)
        last = header
        targets = (layouts[TableName(header.name)] ?? []).map { $0.flatMap { moved.contains($0) ? $0 : nil } }
        if targets.allSatisfy({ $0 == nil }) || targets.count != header.columnCount { targets = [] }
      }
      if targets.isEmpty {
        writer.append(change.range, of: bytes)
      } else {
        writer.beginChange(change.operation, isIndirect: change.isIndirect)
        if change.operation != .insert { isChanged = try write(reader.old, bytes, targets, to: &writer) || isChanged }
        if change.operation != .delete { isChanged = try write(reader.new, bytes, targets, to: &writer) || isChanged }
        if let table = tables.table(of: header) {
          if change.operation == .insert, resent.contains(table.name) {
            try noteSentKey(of: reader.new, bytes, targets, table)
          }
          let row = change.operation == .insert ? reader.new : reader.old
          if called.contains(where: { $0.version != nil && $0.key == nil }), let key = table.integerKey(of: row, bytes),
            try mapped(key, table.name) != key
          {
            calledAsSent[ordinal] = key
          }
        }
      }
      try output.write(writer.bytes)
    }
    guard isChanged else { return nil }
    var result = try changes.replacing(changeset: output)
    result.withdrawals = changes.withdrawals
    result.naming = changes.naming
    return result
  }

  private func noteSentKey(
    of row: [ValueSlice], _ bytes: RawSpan, _ targets: [TableName?], _ table: KeyedTable
  ) throws {
    guard table.hasKey(row) else { return }
    var writer = ChangesetWriter()
    for place in table.keyPlaces { _ = try write([row[place]], bytes, [targets[place]], to: &writer) }
    let sent = table.key(row, bytes)
    if writer.bytes != sent { sentKeys[table.name, default: [:]][writer.bytes] = sent }
  }

  /// - Returns: True if any value was mapped to another one.
  private func write(
    _ row: [ValueSlice], _ bytes: RawSpan, _ targets: [TableName?], to writer: inout ChangesetWriter
  ) throws -> Bool {
    var isChanged = false
    for (value, target) in zip(row, targets) {
      guard let target, value.kind == .integer else {
        writer.append(value, of: bytes)
        continue
      }
      let key = value.integer(in: bytes)
      let local = try mapped(key, target)
      if local != key { isChanged = true }
      writer.append(integer: local)
    }
    return isChanged
  }

  // MARK: Afterwards

  /// Records the mapping after the changes have been applied.
  ///
  /// - Throws: `SQLiteError`.
  func finish() throws {
    for entry in entries { try entry.write(on: connection) }
    if !entries.isEmpty { names.reload() }
  }
}
