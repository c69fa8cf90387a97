import BuckiaApply
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// What other replicas call the rows of this database.
///
/// A row is known by the replica that gave it its key, and that key. As long as nobody had to deviate, that is implied: what a
/// replica's stream has brought is called there as it is here. For everything else there is an entry.
final class RowNames {
  /// What a replica calls a row.
  struct Name: Hashable {
    let replica: [UInt8]
    let key: Int64
  }

  private let connection: SQLiteConnection
  private let vouchers: Vouchers
  private var authors: [VouchEntry: [UInt8]?] = [:]
  private var hasEntries: [TableName: Bool] = [:]

  init(_ vouchers: Vouchers, on connection: borrowing SQLiteConnection) {
    self.connection = SQLiteConnection(sharing: connection)
    self.vouchers = vouchers
  }

  /// Forgets what has been looked up: it may have been rolled back.
  func reload() {
    authors = [:]
    hasEntries = [:]
  }

  /// The replica whose stream has brought something.
  func author(of entry: VouchEntry) throws -> [UInt8]? {
    if let known = authors[entry] { return known }
    let found = try RowNameEntry.author(of: entry.stream, from: entry.sender, on: connection)
    authors[entry] = found
    return found
  }

  private func hasEntries(of table: TableName) throws -> Bool {
    if let known = hasEntries[table] { return known }
    let found = try RowNameEntry.exist(of: table, on: connection)
    hasEntries[table] = found
    return found
  }

  // MARK: From others' names

  /// The entry of a row that a replica calls something.
  func entry(of name: Name, in table: TableName) throws -> RowNameEntry? {
    guard try hasEntries(of: table) else { return nil }
    return try RowNameEntry.find(name.key, at: name.replica, in: table, on: connection)
  }

  /// The key here of a row that a replica calls something; nil where that is not known.
  ///
  /// - Parameter own: The replica that this database is.
  func local(_ name: Name, in table: KeyedTable, own: [UInt8]?) throws -> Int64? {
    if name.replica == own {
      let isHere = try table.withRow(forKey: name.key) { try table.finds(table.lookup, $0, $1, on: connection) }
      return isHere ? name.key : nil
    }
    if let found = try entry(of: name, in: table.name) { return found.local }
    // What is here under another name of the same replica is another row.
    guard try isBrought(name.key, in: table, by: name.replica) else { return nil }
    return try names(of: name.key, in: table.name).contains { $0.replica == name.replica } ? nil : name.key
  }

  private func isBrought(_ key: Int64, in table: KeyedTable, by replica: [UInt8]) throws -> Bool {
    try vouchers.entries(withKey: key, of: table).contains {
      try author(of: $0) == replica && isImplied(key, by: $0)
    }
  }

  /// An integer key in the format of changesets.
  static func encoded(_ key: Int64) -> [UInt8] {
    var writer = ChangesetWriter()
    writer.append(integer: key)
    return writer.bytes
  }

  /// The integer key that ``encoded(_:)`` has written; nil for any other key.
  static func decoded(_ key: [UInt8]) -> Int64? {
    key.withRawSpan { bytes in
      var position = 0
      let value = ValueSlice(verified: bytes, at: &position)
      return value.kind == .integer && position == bytes.byteCount ? value.integer(in: bytes) : nil
    }
  }

  /// True if what a stream has brought under a key here is called so by it. The key may have been that of another row of the stream's, and
  /// of which nobody calls anything any more.
  private func isImplied(_ key: Int64, by entry: VouchEntry) throws -> Bool {
    let rows = TranslatedRows(of: entry.number)
    guard try rows.exist(on: connection) else { return true }
    let bytes = Self.encoded(key)
    if try rows.haveRow(withLocal: bytes, otherThan: bytes, on: connection) { return false }
    guard let row = try rows.row(bytes, on: connection) else { return true }
    return row.local == bytes && row.hash != nil
  }

  private func names(of local: Int64, in table: TableName) throws -> [RowNameEntry] {
    guard try hasEntries(of: table) else { return [] }
    return try RowNameEntry.all(of: local, in: table, on: connection)
  }

  /// Notes that a row is gone.
  func markDeleted(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws {
    guard let key = table.integerKey(of: row, bytes), try hasEntries(of: table.name) else { return }
    try RowNameEntry.markDeleted(key, of: table.name, on: connection)
  }

  /// Notes that a row is gone, where that is so.
  func markDeleted(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, unlessHereOn connection: borrowing SQLiteConnection
  ) throws {
    guard try hasEntries(of: table.name) else { return }
    guard try !table.finds(table.lookup, row, bytes, on: connection) else { return }
    try markDeleted(row, bytes, of: table)
  }

  /// Notes that a row is still here that a replica has deleted. Others who pass it on have not heard of that; for the replica it is a new row.
  func keep(_ name: Name, of local: Int64, in table: TableName) throws {
    let entry = RowNameEntry(
      table: table, replica: name.replica, key: name.key, local: local,
      claimant: RowNameEntry.deleted)
    try entry.write(on: connection)
    hasEntries[table] = true
  }

  // MARK: To others' names

  /// True if others may call rows of a table anything.
  func mayName(_ table: KeyedTable) throws -> Bool {
    try hasEntries(of: table.name) || vouchers.haveBrought(table)
  }

  /// How many replicas' names of a row are sent: any that a reader knows will do.
  static let limit = 4

  /// What others call a row, so that a reader who has it knows which it is.
  struct Sent: Equatable {
    let name: Name
    /// The hash of the row as it was last taken from that replica: 0 where none was taken, nil where it has not changed since.
    var version: UInt64?
  }

  /// What others call a row.
  ///
  /// - Parameters:
  ///   - key: Its integer key; nil for a key that is the same at every replica.
  ///   - readers: The replicas that will read it, whose own names come first.
  ///   - version: Says what was taken of the row, as the stream of a replica has it that has brought it; nil where it has not changed since.
  /// - Returns: None for a row that only this database has given a key.
  func names(
    of row: [ValueSlice], _ bytes: RawSpan, key: Int64?, in table: KeyedTable, for readers: [[UInt8]],
    version: (VouchEntry, VouchedRow) throws -> UInt64? = { _, _ in nil }
  ) throws -> [Sent] {
    var found =
      try key.map { try names(of: $0, in: table.name) }?.map {
        Sent(name: Name(replica: $0.replica, key: $0.key))
      } ?? []
    for (entry, brought) in try vouchers.found(row, bytes, of: table) {
      guard let author = try author(of: entry) else { continue }
      let version = try version(entry, brought)
      if let place = found.firstIndex(where: { $0.name.replica == author }) {
        found[place].version = version
      } else if try key.map({ try isImplied($0, by: entry) }) ?? true {
        found.append(Sent(name: Name(replica: author, key: key ?? 0), version: version))
      }
    }
    return Self.best(found, for: readers)
  }

  /// The names that are sent: one of each replica.
  private static func best(_ names: [Sent], for readers: [[UInt8]]) -> [Sent] {
    var seen: Set<[UInt8]> = []
    let once = names.filter { seen.insert($0.name.replica).inserted }.compactMap { told($0, to: readers) }
    return Array(
      (once.filter { readers.contains($0.name.replica) } + once.filter { !readers.contains($0.name.replica) })
        .prefix(limit))
  }

  /// A name as readers know it; nil where it tells them nothing. A reader who is not believed to be the replica that they claim to be knows
  /// their own names under that replica, and those of the other who is under none.
  private static func told(_ sent: Sent, to readers: [[UInt8]]) -> Sent? {
    guard let claimed = ReplicaSigners.claimed(by: sent.name.replica) else {
      return readers.contains { ReplicaSigners.claimed(by: $0) == sent.name.replica } ? nil : sent
    }
    guard readers.contains(sent.name.replica) else { return nil }
    return Sent(name: Name(replica: claimed, key: sent.name.key), version: sent.version)
  }
}

/// Goes through the names of the rows of a diff, change by change.
struct NameRuns {
  /// What a replica calls a row.
  struct Name {
    let replica: [UInt8]
    /// Its integer key there, where it is another one than in the change.
    let key: Int64?
    /// The hash of the row as it was last taken from there; nil where it has not changed since.
    let version: UInt64?
    /// The counts of rows with its content; nil for a row with a key.
    let copies: CopyCounts.Count?
  }

  private let runs: [RowNaming.Run]
  private var index = 0
  private var place = 0

  init(_ runs: [RowNaming.Run]) { self.runs = runs }

  /// What the row of the next change is called.
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
