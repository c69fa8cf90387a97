import BuckiaApply
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The key mappings of other replicas: by which keys they name the rows of this database.
///
/// A row is named by a replica and its key there. A row that a replica's stream has sent has the same key there as here
/// unless an entry says otherwise; only deviations have entries.
final class OriginKeys {
  /// A name of a row: a replica, and the row's key there.
  struct Name: Hashable {
    let replica: [UInt8]
    let key: Int64
  }

  private let connection: SQLiteConnection
  private let provenance: Provenance
  private var authors: [ProvenanceEntry: [UInt8]?] = [:]
  private var hasEntries: [TableName: Bool] = [:]

  init(_ provenance: Provenance, on connection: borrowing SQLiteConnection) {
    self.connection = SQLiteConnection(sharing: connection)
    self.provenance = provenance
  }

  /// Discards cached entries, which may have been rolled back.
  func reload() {
    authors = [:]
    hasEntries = [:]
  }

  /// The replica that is the author of a stream.
  func author(of entry: ProvenanceEntry) throws -> [UInt8]? {
    if let known = authors[entry] { return known }
    let found = try OriginKeyEntry.author(of: entry.stream, from: entry.sender, on: connection)
    authors[entry] = found
    return found
  }

  private func hasEntries(of table: TableName) throws -> Bool {
    if let known = hasEntries[table] { return known }
    let found = try OriginKeyEntry.exist(of: table, on: connection)
    hasEntries[table] = found
    return found
  }

  // MARK: From others' names

  /// The entry for a row that a replica names.
  func entry(of name: Name, in table: TableName) throws -> OriginKeyEntry? {
    guard try hasEntries(of: table) else { return nil }
    return try OriginKeyEntry.find(name.key, at: name.replica, in: table, on: connection)
  }

  /// The local key of a row that a replica names; nil if it is unknown.
  ///
  /// - Parameter own: The local replica.
  func local(_ name: Name, in table: KeyedTable, own: [UInt8]?) throws -> Int64? {
    if name.replica == own {
      return try table.hasRow(withKey: name.key, on: connection) ? name.key : nil
    }
    if let found = try entry(of: name, in: table.name) { return found.local }
    // A local row with another name of the same replica is another row.
    guard try isBrought(name.key, in: table, by: name.replica) else { return nil }
    return try isOther(name.key, than: name, in: table.name) ? nil : name.key
  }

  /// True if a replica calls the row with a key here otherwise.
  func isOther(_ local: Int64, than name: Name, in table: TableName) throws -> Bool {
    try names(of: local, in: table).contains { $0.replica == name.replica && $0.key != name.key }
  }

  /// True if a replica is known to call a row of this database something.
  func has(_ local: Int64, of table: KeyedTable, at replica: [UInt8]) throws -> Bool {
    try names(of: local, in: table.name).contains { $0.replica == replica } || isBrought(local, in: table, by: replica)
  }

  private func isBrought(_ key: Int64, in table: KeyedTable, by replica: [UInt8]) throws -> Bool {
    try provenance.entries(withKey: key, of: table).contains {
      try author(of: $0) == replica && isImplied(key, by: $0)
    }
  }

  /// True if a stream's row has the same key at its author as here. The key may have belonged to another row of the
  /// stream, which no replica names any more.
  private func isImplied(_ key: Int64, by entry: ProvenanceEntry) throws -> Bool {
    let rows = MappedRows(of: entry.number)
    guard try rows.exist(on: connection) else { return true }
    let bytes = IntegerKey.encoded(key)
    if try rows.haveRow(withLocal: bytes, otherThan: bytes, on: connection) { return false }
    guard let row = try rows.row(bytes, on: connection) else { return true }
    return row.local == bytes && row.hash != nil
  }

  /// What replicas call a row, as far as there are entries.
  ///
  /// - Parameter isGone: True to find also the names of deleted rows.
  func names(of local: Int64, in table: TableName, isGone: Bool = false) throws -> [OriginKeyEntry] {
    guard try hasEntries(of: table) else { return [] }
    return try OriginKeyEntry.all(of: local, in: table, isGone: isGone, on: connection)
  }

  /// Records that a row was deleted.
  func markDeleted(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws {
    guard let key = table.integerKey(of: row, bytes), try hasEntries(of: table.name) else { return }
    try OriginKeyEntry.markDeleted(key, of: table.name, on: connection)
  }

  /// True if the deletion of the row with a key is recorded. Changes of that row must not meet another one.
  ///
  /// - Parameter key: The key in the format of changesets.
  func wasDeleted(_ key: [UInt8], of table: KeyedTable) throws -> Bool {
    // A snapshot that leaves out the row says so without a row version in the clock.
    if try Tombstones.hash(of: key, in: table.name, on: connection) != nil { return true }
    guard let clock = try RowClocks.number(of: table.local, on: connection) else { return false }
    return try RowClocks.deletion(of: key, in: clock, on: connection) != nil
  }

  /// Records that a row stays here although a replica has deleted it. Replicas that relay it do not know of the
  /// deletion; for the deleting replica it is a new row.
  ///
  /// - Parameter version: The hash of the deleted version, with the local key; nil if it is unknown. What was made from it is of this row.
  func keep(_ name: Name, of local: Int64, in table: TableName, deleting version: UInt64? = nil) throws {
    let entry = OriginKeyEntry(
      table: table, replica: name.replica, key: name.key, local: local, claimant: OriginKeyEntry.deleted,
      version: version)
    try entry.write(on: connection)
    hasEntries[table] = true
  }

  /// The keys here of the rows that any replica names by a key, as far as there are entries and the rows exist.
  func locals(called key: Int64, in table: KeyedTable) throws -> [Int64] {
    guard try hasEntries(of: table.name) else { return [] }
    return try OriginKeyEntry.locals(called: key, in: table.name, on: connection).filter {
      try table.hasRow(withKey: $0, on: connection)
    }
  }

  // MARK: To others' names

  /// True if other replicas may name rows of a table.
  func mayName(_ table: KeyedTable) throws -> Bool {
    try hasEntries(of: table.name) || provenance.haveBrought(table)
  }

  /// The most names of a row that are sent. A receiver needs only one that it knows.
  static let limit = 4

  /// A name of a row for receivers, by which they find the row if they have it.
  struct Sent: Equatable {
    let name: Name
    /// The hash of the version that was last accepted from that replica: 0 if none was, nil if the row has not changed
    /// since.
    var version: UInt64?
  }

  /// The names of a row at other replicas.
  ///
  /// - Parameters:
  ///   - key: The integer key; nil for a key that is the same at every replica.
  ///   - readers: The receiving replicas, whose own names come first.
  ///   - isGone: True for a deleted row: the names that it had count.
  ///   - version: Computes the version that was accepted from a replica's stream; nil if the row has not changed since.
  /// - Returns: An empty list for a row that only this database has given a key.
  func names(
    of row: [ValueSlice], _ bytes: RawSpan, key: Int64?, in table: KeyedTable, for readers: [[UInt8]],
    isGone: Bool = false, version: (ProvenanceEntry, RowProvenance) throws -> UInt64? = { _, _ in nil }
  ) throws -> [Sent] {
    var found =
      try key.map { try names(of: $0, in: table.name, isGone: isGone) }?.map {
        Sent(name: Name(replica: $0.replica, key: $0.key))
      } ?? []
    for (entry, brought) in try provenance.found(row, bytes, of: table) {
      guard let author = try author(of: entry) else { continue }
      let version = try version(entry, brought)
      if let place = found.firstIndex(where: { $0.name.replica == author }) {
        found[place].version = version
      } else if try key.map({ key in
        try isImplied(key, by: entry) && self.entry(of: Name(replica: author, key: key), in: table.name) == nil
      }) ?? true {
        found.append(Sent(name: Name(replica: author, key: key ?? 0), version: version))
      }
    }
    return Self.best(found, for: readers)
  }

  /// The names to send, one for each replica.
  private static func best(_ names: [Sent], for readers: [[UInt8]]) -> [Sent] {
    var seen: Set<[UInt8]> = []
    let once = names.filter { seen.insert($0.name.replica).inserted }.compactMap { disclosed($0, to: readers) }
    return Array(
      (once.filter { readers.contains($0.name.replica) } + once.filter { !readers.contains($0.name.replica) })
        .prefix(limit))
  }

  /// A name in the form that receivers know; nil if it does not help them. A receiver whose claim to a replica is not
  /// believed knows its own names under that replica, and no names of the other claimant.
  private static func disclosed(_ sent: Sent, to readers: [[UInt8]]) -> Sent? {
    guard let claimed = ReplicaSigners.claimed(by: sent.name.replica) else {
      return readers.contains { ReplicaSigners.claimed(by: $0) == sent.name.replica } ? nil : sent
    }
    guard readers.contains(sent.name.replica) else { return nil }
    return Sent(name: Name(replica: claimed, key: sent.name.key), version: sent.version)
  }
}

/// Iterates over the names of rows, change by change.
struct OriginKeyRuns {
  /// A name of a row in a diff.
  struct Name {
    let replica: [UInt8]
    /// The integer key there, if it differs from the one in the change.
    let key: Int64?
    /// The hash of the version that was last accepted from there, with the key that the row has there; nil if the row has
    /// not changed since.
    let version: UInt64?
    /// The counts for the row's content; nil for a row with a key.
    let copies: CopyCounts.Count?

    /// The name with the key there, unless that is the local one, and with the hash that the version has under the local key.
    ///
    /// - Parameters:
    ///   - sent: The sender's key, if it is not the local one.
    ///   - local: The local key.
    func withVersion(of table: KeyedTable, named sent: Int64?, underKey local: Int64) -> Name {
      Name(
        replica: replica, key: key ?? sent,
        version: version.map { table.hash($0, ofRowWith: key ?? sent ?? local, underKey: local) }, copies: copies)
    }
  }

  private let runs: [RowNaming.Run]
  private var index = 0
  private var place = 0

  init(_ runs: [RowNaming.Run]) { self.runs = runs }

  /// The names of the next change's row.
  mutating func next() -> [Name] {
    while index < runs.count, Int64(place) == runs[index].count {
      index += 1
      place = 0
    }
    guard index < runs.count else { return [] }
    defer { place += 1 }
    return runs[index].names.map {
      Name(
        replica: $0.replica, key: $0.keys.isEmpty ? nil : $0.keys[place],
        version: $0.versions.isEmpty ? nil : $0.versions[place], copies: $0.copies)
    }
  }
}
