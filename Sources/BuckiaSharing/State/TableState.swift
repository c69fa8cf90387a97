import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The sums of the rows that a stream has of one table, while they follow changes.
final class TableState {
  private(set) var entry: StateEntry
  private(set) var sums: StateSums
  private var isTouched = [Bool](repeating: false, count: StateSums.bucketCount)
  private let hasher: StateHasher

  /// - Parameters:
  ///   - entry: What the ledger has.
  ///   - path: The database.
  /// - Throws: `LedgerError` when the sums in the ledger are not as they are written.
  init(_ entry: StateEntry, at path: String) throws(LedgerError) {
    self.entry = entry
    guard let sums = StateSums(rowCount: entry.rowCount, encoded: entry.sums) else {
      throw LedgerError(alteredAt: path)
    }
    self.sums = sums
    hasher = StateHasher(key: entry.stream, table: entry.table.text)
  }

  /// A state without rows.
  init(_ owner: StateEntry.Owner, stream: [UInt8], _ table: TableName, columns: [String]) {
    entry = StateEntry(of: owner, stream: stream, table: table, columns: JSONValue.strings(columns).text())
    sums = StateSums()
    hasher = StateHasher(key: stream, table: table.text)
  }

  /// The columns that the stream has, as they were when the sums were written.
  ///
  /// - Throws: `JSONError` when the ledger is damaged.
  var columns: [String] {
    get throws { try JSONValue.strings(in: entry.columns) }
  }

  /// The buckets of the rows that have changed.
  var touched: [UInt8] { (0...UInt8.max).filter { isTouched[Int($0)] } }

  /// Puts a row in the place of another one with the same key.
  ///
  /// - Parameters:
  ///   - key: The values of the key, in the format of changesets.
  ///   - old: The ``StreamRowHash`` of the row that was there; nil for none.
  ///   - new: That of the row that is there now; nil for none.
  func replace(_ key: [UInt8], _ old: UInt64?, by new: UInt64?) {
    let place = hasher.place(key)
    if let old { sums.remove(hasher.row(place.key, old), from: place.bucket) }
    if let new { sums.add(hasher.row(place.key, new), to: place.bucket) }
    isTouched[Int(place.bucket)] = true
  }

  /// Adds a row that was there before, when the sums are made again.
  func restore(_ key: [UInt8], _ hash: UInt64) {
    let place = hasher.place(key)
    sums.add(hasher.row(place.key, hash), to: place.bucket)
  }

  /// The bucket of a row.
  func bucket(_ key: [UInt8]) -> UInt8 { hasher.place(key).bucket }

  /// Forgets all rows.
  func removeAll(columns: [String]) {
    sums = StateSums()
    entry.columns = JSONValue.strings(columns).text()
  }

  /// Notes whether the sender has something else.
  func note(difference: [UInt8]?, replica: [UInt8]?) {
    let known = entry.difference ?? []
    entry.difference = difference
    entry.replica = replica
    // What has been asked for is not what differs now: nothing does, other buckets do, or it is not known any more which.
    let isWhatWasAskedFor = difference.map { $0.isEmpty == known.isEmpty && $0.allSatisfy { known.contains($0) } }
    if isWhatWasAskedFor != true { entry.isRequested = false }
  }

  func write(on connection: borrowing SQLiteConnection) throws {
    entry.rowCount = sums.rowCount
    entry.sums = sums.encoded
    try entry.write(on: connection)
  }
}

/// What becomes of the hashes of rows when a stream has other columns of their table than before.
enum ColumnChange: Equatable {
  /// Nothing.
  case none
  /// Columns were added: to each hash this is added, for the values that rows get which were there before.
  case added(UInt64)
  /// Columns are gone, and nobody knows any more what they held.
  case removed

  /// Compares the columns.
  ///
  /// - Parameters:
  ///   - known: Those that the hashes are of.
  ///   - definition: The table as it travels now.
  /// - Throws: `SQLiteError`.
  init(from known: [String], to definition: TableDefinition) throws {
    let names = definition.changesetColumns
    guard known.allSatisfy({ name in names.contains { ASCIIName.matches($0, name) } }) else {
      self = .removed
      return
    }
    let added = names.filter { name in !known.contains { ASCIIName.matches($0, name) } }
    guard !added.isEmpty else {
      self = .none
      return
    }
    var hash = StreamRowHash()
    for name in added {
      guard let place = definition.column(named: name) else { continue }
      let value = try definition.columns[place].encodedAddedValue(isStrict: definition.isStrict)
      value.withRawSpan { bytes in
        var position = 0
        hash.add(ValueSlice(verified: bytes, at: &position), bytes, StreamRowHash.Seed(of: name))
      }
    }
    self = .added(hash.value)
  }

  /// What is added to each hash.
  var shift: UInt64 { if case .added(let shift) = self { shift } else { 0 } }
}

extension ColumnDefinition {
  /// The value that rows get which do not say it, in the format of changesets: as those get it that were there before the column was added.
  ///
  /// - Parameter isStrict: True if the table is strict.
  /// - Throws: `SQLiteError`.
  func encodedAddedValue(isStrict: Bool) throws -> [UInt8] {
    let literal = try AddedColumnValue.literal(of: self, isStrict: isStrict)
    let scratch = try SQLiteConnection(opening: ":memory:", as: .create)
    var writer = ChangesetWriter()
    try scratch.forEachRow(of: "SELECT \(literal)") { writer.append(column: 0, of: $0) }
    return writer.bytes
  }
}

extension KeyedTable {
  /// The hash of a row of a changeset.
  func contentHash(_ row: [ValueSlice], _ bytes: RawSpan) -> UInt64 { StreamRowHash(row, bytes, seeds).value }

  /// What an UPDATE adds to the hash of its row.
  func contentChange(_ reader: ChangesetReader, _ bytes: RawSpan) -> UInt64 {
    var difference = StreamRowHash()
    for (place, seed) in seeds.enumerated() where reader.new[place].isDefined {
      if reader.old[place].isDefined { difference.remove(reader.old[place], bytes, seed) }
      difference.add(reader.new[place], bytes, seed)
    }
    return difference.value
  }
}

/// Which rows a diff holds again, in the place of all that its stream has had of them: all for a snapshot, else those of some buckets.
struct ResentRows {
  private let isSnapshot: Bool
  private var hashers: [TableName: StateHasher] = [:]
  /// The buckets of each table; nil for all.
  private var buckets: [TableName: Set<UInt8>?] = [:]

  init(_ claims: [StreamClaims.Rows], of stream: [UInt8], isSnapshot: Bool) {
    self.isSnapshot = isSnapshot
    for claim in claims {
      let name = TableName(claim.table)
      buckets.updateValue(claim.buckets, forKey: name)
      hashers[name] = StateHasher(key: stream, table: claim.table)
    }
  }

  /// True if they are those of some tables or buckets alone.
  var isPartial: Bool { !isSnapshot && !buckets.isEmpty }
  /// True if there are none.
  var isEmpty: Bool { !isSnapshot && buckets.isEmpty }
  /// The tables, but for a snapshot, which may have any.
  var tables: [TableName] { buckets.keys.sorted { $0.text < $1.text } }

  /// True if rows of a table may be among them.
  func concern(_ table: TableName) -> Bool { isSnapshot || buckets[table] != nil }

  /// True if all rows of a table are among them.
  func coverAll(of table: TableName) -> Bool {
    guard !isSnapshot, let known = buckets[table] else { return isSnapshot }
    return known == nil
  }

  /// True if the row with a key is among them.
  func cover(_ key: [UInt8], of table: TableName) -> Bool {
    guard !isSnapshot, let known = buckets[table] else { return isSnapshot }
    guard let wanted = known, let hasher = hashers[table] else { return true }
    return wanted.contains(hasher.place(key).bucket)
  }
}
