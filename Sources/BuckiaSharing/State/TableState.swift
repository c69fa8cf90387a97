import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The sums of a stream's rows of one table, while they follow changes.
final class TableState {
  private(set) var entry: StateEntry
  private(set) var sums: StateSums
  private var isTouched = [Bool](repeating: false, count: StateSums.bucketCount)
  private let hasher: StateHasher

  /// - Parameters:
  ///   - entry: The ledger's entry.
  ///   - path: The database.
  /// - Throws: `LedgerError` when the sums in the ledger are malformed.
  init(_ entry: StateEntry, at path: String) throws(LedgerError) {
    self.entry = entry
    guard let sums = StateSums(rowCount: entry.rowCount, encoded: entry.sums) else {
      throw LedgerError(alteredAt: path)
    }
    self.sums = sums
    hasher = StateHasher(key: entry.stream, table: entry.table.text)
  }

  /// Creates a state without rows.
  init(_ owner: StateEntry.Owner, stream: [UInt8], _ table: TableName, columns: [String]) {
    entry = StateEntry(of: owner, stream: stream, table: table, columns: JSONValue.strings(columns).text())
    sums = StateSums()
    hasher = StateHasher(key: stream, table: table.text)
  }

  /// The columns of the stream when the sums were stored.
  ///
  /// - Throws: `JSONError` when the ledger is damaged.
  var columns: [String] {
    get throws { try JSONValue.strings(in: entry.columns) }
  }

  /// The buckets with changed rows.
  var touched: [UInt8] { (0...UInt8.max).filter { isTouched[Int($0)] } }

  /// Replaces a row by another one with the same key.
  ///
  /// - Parameters:
  ///   - key: The values of the key, in the format of changesets.
  ///   - old: The ``StreamRowHash`` of the old row; nil for none.
  ///   - new: The ``StreamRowHash`` of the new row; nil for none.
  func replace(_ key: [UInt8], _ old: UInt64?, by new: UInt64?) {
    let place = hasher.place(key)
    if let old { sums.remove(hasher.row(place.key, old), from: place.bucket) }
    if let new { sums.add(hasher.row(place.key, new), to: place.bucket) }
    isTouched[Int(place.bucket)] = true
  }

  /// Adds an existing row, while the sums are computed again.
  func restore(_ key: [UInt8], _ hash: UInt64) {
    let place = hasher.place(key)
    sums.add(hasher.row(place.key, hash), to: place.bucket)
  }

  /// The bucket of a row.
  func bucket(_ key: [UInt8]) -> UInt8 { hasher.place(key).bucket }

  /// Removes all rows.
  func removeAll(columns: [String]) {
    sums = StateSums()
    entry.columns = JSONValue.strings(columns).text()
  }

  /// Records in which buckets the sender's rows differ; nil if they do not.
  func note(difference: [UInt8]?, replica: [UInt8]?) {
    let known = entry.difference ?? []
    entry.difference = difference
    entry.replica = replica
    // The requested rows are not those that differ now: nothing does, other buckets do, or it is unknown which do.
    let isWhatWasAskedFor = difference.map { $0.isEmpty == known.isEmpty && $0.allSatisfy { known.contains($0) } }
    if isWhatWasAskedFor != true { entry.isRequested = false }
  }

  func write(on connection: borrowing SQLiteConnection) throws {
    entry.rowCount = sums.rowCount
    entry.sums = sums.encoded
    try entry.write(on: connection)
  }
}

/// The effect on the hashes of rows when a stream's table gets or loses columns.
enum ColumnChange: Equatable {
  /// Nothing.
  case none
  /// Columns were added. This number is added to each hash, for the values of existing rows in these columns.
  case added(UInt64)
  /// Columns were dropped, and their values are unknown.
  case removed

  /// Compares the columns.
  ///
  /// - Parameters:
  ///   - known: The columns that the hashes cover.
  ///   - definition: The definition in the diff.
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

  /// The number that is added to each hash.
  var shift: UInt64 { if case .added(let shift) = self { shift } else { 0 } }
}

extension ColumnDefinition {
  /// The value of existing rows in an added column, in the format of changesets.
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

  /// The hash that a row would have under another integer key.
  func contentHash(_ row: [ValueSlice], _ bytes: RawSpan, underKey key: Int64) -> UInt64 {
    let hash = contentHash(row, bytes)
    return integerKey(of: row, bytes).map { self.hash(hash, ofRowWith: $0, underKey: key) } ?? hash
  }

  /// The hash of a row with an integer key as it would be under another one; 0 for 0, which stands for no version.
  func hash(_ hash: UInt64, ofRowWith key: Int64, underKey other: Int64) -> UInt64 {
    guard key != other, hash != 0, let place = keyPlaces.first else { return hash }
    let (before, after) = (IntegerKey.encoded(key), IntegerKey.encoded(other))
    return hash &- StreamRowHash(ofEncoded: before, seeds[place]).value
      &+ StreamRowHash(ofEncoded: after, seeds[place]).value
  }

  /// The difference between the hashes of a row after and before an UPDATE.
  func contentChange(_ reader: ChangesetReader, _ bytes: RawSpan) -> UInt64 {
    var difference = StreamRowHash()
    for (place, seed) in seeds.enumerated() where reader.new[place].isDefined {
      if reader.old[place].isDefined { difference.remove(reader.old[place], bytes, seed) }
      difference.add(reader.new[place], bytes, seed)
    }
    return difference.value
  }
}

/// The rows that a diff sends again, in the place of all earlier ones of its stream: all rows for a snapshot, otherwise
/// those of some buckets.
struct ResentRows {
  private let isSnapshot: Bool
  private var hashers: [TableName: StateHasher] = [:]
  /// The buckets of each table; nil for all buckets.
  private var buckets: [TableName: Set<UInt8>?] = [:]

  init(_ claims: [StreamClaims.Rows], of stream: [UInt8], isSnapshot: Bool) {
    self.isSnapshot = isSnapshot
    for claim in claims {
      let name = TableName(claim.table)
      buckets.updateValue(claim.buckets, forKey: name)
      hashers[name] = StateHasher(key: stream, table: claim.table)
    }
  }

  /// True if the diff sends only some tables or buckets again.
  var isPartial: Bool { !isSnapshot && !buckets.isEmpty }
  /// True if the diff sends nothing again.
  var isEmpty: Bool { !isSnapshot && buckets.isEmpty }
  /// The tables; empty for a snapshot, which may have any.
  var tables: [TableName] { buckets.keys.sorted { $0.text < $1.text } }

  /// True if rows of a table may be sent again.
  func concern(_ table: TableName) -> Bool { isSnapshot || buckets[table] != nil }

  /// True if all rows of a table are sent again.
  func coverAll(of table: TableName) -> Bool {
    guard !isSnapshot, let known = buckets[table] else { return isSnapshot }
    return known == nil
  }

  /// True if the row with a key is sent again.
  func cover(_ key: [UInt8], of table: TableName) -> Bool {
    guard !isSnapshot, let known = buckets[table] else { return isSnapshot }
    guard let wanted = known, let hasher = hashers[table] else { return true }
    return wanted.contains(hasher.place(key).bucket)
  }
}
