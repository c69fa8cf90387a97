import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A local row, by the columns of a changeset.
struct LocalRow {
  /// The values in the format of changesets.
  let values: [UInt8]
  /// The position of each value.
  let slices: [ValueSlice]
  /// The hash, computed like those of streams.
  let hash: UInt64

  /// Reads the local row with the key of another row.
  ///
  /// - Returns: nil if there is none, or the table lacks columns.
  /// - Throws: `SQLiteError`.
  init?(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, on connection: borrowing SQLiteConnection) throws {
    guard let query = table.rowQuery else { return nil }
    let prepared = try connection.cached(query)
    defer {
      prepared.statement.reset()
      prepared.statement.clearBindings()
    }
    try table.bindKey(row, bytes, to: prepared.statement)
    guard try prepared.statement.step() else { return nil }
    values = prepared.statement.record(of: table.columns.indices)
    let read = values.withRawSpan { span in
      let slices = ValueSlice.values(table.columns.count, of: span)
      return (slices, StreamRowHash(slices, span, table.seeds).value)
    }
    (slices, hash) = read
  }

  /// True if the keys of both rows have the same bytes. Under a collating sequence, other keys can compare equal.
  func hasSameKey(as row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) -> Bool {
    table.keyPlaces.allSatisfy { encoded($0) == bytes.array(row[$0].encoded) }
  }

  /// The values of the key, in the format of changesets.
  func key(of table: KeyedTable) -> [UInt8] { table.keyPlaces.flatMap { encoded($0) } }

  /// A value, as a changeset has it.
  func encoded(_ place: Int) -> [UInt8] { Array(values[slices[place].encoded]) }

  /// The columns outside the key in which another row differs.
  func changedPlaces(_ row: [ValueSlice], _ bytes: RawSpan, _ header: ChangesetTable) -> [Int] {
    row.indices.filter { !header.isKey($0) && encoded($0) != bytes.array(row[$0].encoded) }
  }
}

/// Finds the rows whose keys a diff spells differently. It deletes and inserts such a row.
struct RespelledRows {
  /// The local keys of the deleted rows, in tables whose keys can be spelled in several ways.
  private var deleted: [TableName: Set<[UInt8]>] = [:]

  /// Examines a change.
  ///
  /// - Parameter row: The row that the change inserts or deletes.
  /// - Returns: True for the INSERT of a row that the diff has deleted and that exists here.
  /// - Throws: `SQLiteError`.
  mutating func look(
    at change: Change, of row: [ValueSlice], _ bytes: RawSpan, _ table: KeyedTable,
    on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    guard !table.comparesKeysByBytes, change.operation != .update,
      let key = try LocalRow(row, bytes, of: table, on: connection)?.key(of: table)
    else { return false }
    if change.operation == .insert { return deleted[table.name]?.contains(key) == true }
    deleted[table.name, default: []].insert(key)
    return false
  }
}

/// The present rows that a diff deletes and those that it inserts, of tables whose keys can be spelled in several ways.
struct RespelledKeys {
  /// The local keys of the rows that it deletes with their present content.
  private var deleted: [TableName: Set<[UInt8]>] = [:]
  /// The local keys of the rows that it inserts with any spelling.
  private var inserted: [TableName: Set<[UInt8]>] = [:]

  init() {}

  /// Examines all changes of a diff.
  ///
  /// - Throws: `SQLiteError`, `ChangesetError`, `ByteStreamError`.
  init(in incoming: IncomingChanges, _ tables: KeyedTables, on connection: borrowing SQLiteConnection) throws {
    guard tables.contains(where: { !$0.comparesKeysByBytes }) else { return }
    try Changesets.forEachChange(of: incoming.changeset, knowing: incoming.feed.summary()) { change, reader, bytes in
      guard change.operation != .update, let table = reader.table.flatMap({ tables.table(of: $0) }),
        !table.comparesKeysByBytes
      else { return }
      let row = change.operation == .insert ? reader.new : reader.old
      guard table.hasKey(row), let here = try LocalRow(row, bytes, of: table, on: connection) else { return }
      if change.operation == .insert {
        inserted[table.name, default: []].insert(here.key(of: table))
      } else if table.hasAllColumns, table.contentHash(row, bytes) == here.hash {
        deleted[table.name, default: []].insert(here.key(of: table))
      }
    }
  }

  /// True if the diff deletes the row as it is here and inserts it again.
  func replace(_ here: LocalRow, of table: KeyedTable) -> Bool {
    guard let deleted = deleted[table.name], let inserted = inserted[table.name] else { return false }
    let key = here.key(of: table)
    return deleted.contains(key) && inserted.contains(key)
  }

  /// True for the deletion of a row that the diff inserts with another spelling of its key, if the row does not have the
  /// deleted spelling here. Otherwise the deletion would remove the row, and the INSERT of a known row changes nothing.
  func keepRow(
    deletedAs row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    guard let inserted = inserted[table.name], let here = try LocalRow(row, bytes, of: table, on: connection) else {
      return false
    }
    return inserted.contains(here.key(of: table)) && !here.hasSameKey(as: row, bytes, of: table)
  }
}

/// An earlier version of a row, reconstructed from later ones.
///
/// Only the hash of the version is known. It is the sum of the hashes of its values (``StreamRowHash``), and a later
/// version still has each value unless all of them have changed it. The values are found by trying combinations.
struct RecoveredRow {
  /// The values by the columns of the changeset, in the format of changesets.
  let values: [[UInt8]]

  /// The most combinations that are tried.
  private static let limit = 1 << 16

  /// Finds the version that precedes both an incoming row, or its deletion, and the local row.
  ///
  /// - Parameters:
  ///   - version: Its hash.
  ///   - row: The incoming row; nil for a deleted one.
  ///   - here: The local row.
  ///   - sent: The last sent version of the row; nil if it was not sent.
  ///   - named: The key that the replica with the version uses for the row to which a column with a value refers; nil if
  ///     it uses the same.
  /// - Returns: nil if a value has changed in all of them.
  init?(
    _ version: UInt64, of row: [[UInt8]]?, _ table: KeyedTable, beside here: LocalRow, _ sent: PeerBaseline.SentRow?,
    named: (Int, [UInt8]) throws -> [UInt8]?
  ) rethrows {
    var choices: [[[UInt8]]] = []
    var hashes: [[UInt64]] = []
    for place in table.columns.indices {
      let mine = here.encoded(place)
      // The version does not contain columns that were not sent.
      if let sent, sent.values[place] == nil {
        choices.append([mine])
        hashes.append([0])
        continue
      }
      var values: [[UInt8]] = []
      for value in [sent?.values[place], mine, row?[place]] {
        if let value, !values.contains(value) { values.append(value) }
      }
      var found = values.map { StreamRowHash(ofEncoded: $0, table.seeds[place]).value }
      for value in values {
        guard let named = try named(place, value) else { continue }
        values.append(value)
        found.append(StreamRowHash(ofEncoded: named, table.seeds[place]).value)
      }
      // A column that is NULL here may belong to another stream only. Then the version does not contain it either.
      if here.slices[place].kind == .null, sent == nil {
        values.append(mine)
        found.append(0)
      }
      choices.append(values)
      hashes.append(found)
    }
    var chosen = [Int](repeating: 0, count: choices.count)
    var sum = hashes.reduce(sent?.otherColumns ?? 0) { $0 &+ $1[0] }
    let open = choices.indices.filter { choices[$0].count > 1 }
    var attempts = 0
    // Counts through the combinations like an odometer.
    while sum != version {
      attempts += 1
      guard attempts < Self.limit else { return nil }
      var index = 0
      while true {
        guard index < open.count else { return nil }
        let place = open[index]
        sum &-= hashes[place][chosen[place]]
        chosen[place] = (chosen[place] + 1) % choices[place].count
        sum &+= hashes[place][chosen[place]]
        if chosen[place] != 0 { break }
        index += 1
      }
    }
    values = choices.indices.map { choices[$0][chosen[$0]] }
  }

  /// The columns outside of the key in which another row has other values.
  func changedPlaces(_ row: [ValueSlice], _ bytes: RawSpan, _ header: ChangesetTable) -> [Int] {
    row.indices.filter { !header.isKey($0) && values[$0] != bytes.array(row[$0].encoded) }
  }
}

extension ValueSlice {
  /// The first values of a well-formed record.
  static func values(_ count: Int, of record: RawSpan) -> [ValueSlice] {
    var position = 0
    return (0..<count).map { _ in ValueSlice(verified: record, at: &position) }
  }
}

extension ChangesetWriter {
  /// The key in the first columns of a row, in the format of changesets; nil if it contains NULL.
  static func key(of row: borrowing SQLiteStatement, count: Int) -> [UInt8]? {
    (0..<count).contains { row.isNull(at: $0) } ? nil : row.record(of: 0..<count)
  }

  /// Appends an UPDATE of some columns to the values of a row; nothing without columns.
  ///
  /// - Parameter old: Writes the old value of a key column or of a changed column.
  mutating func appendUpdate(
    of changed: [Int], to row: [ValueSlice], _ bytes: RawSpan, _ header: ChangesetTable, isIndirect: Bool = false,
    old: (Int, inout ChangesetWriter) -> Void
  ) {
    guard !changed.isEmpty else { return }
    let isChanged = Set(changed)
    beginChange(.update, isIndirect: isIndirect)
    for place in row.indices {
      if header.isKey(place) || isChanged.contains(place) { old(place, &self) } else { appendUndefined() }
    }
    for place in row.indices {
      if isChanged.contains(place) { append(row[place], of: bytes) } else { appendUndefined() }
    }
  }

  /// Appends an UPDATE of a local row to the values of another row.
  mutating func appendUpdate(of here: LocalRow, to row: [ValueSlice], _ bytes: RawSpan, _ header: ChangesetTable) {
    here.values.withRawSpan { mine in
      appendUpdate(of: here.changedPlaces(row, bytes, header), to: row, bytes, header) {
        $1.append(here.slices[$0], of: mine)
      }
    }
  }

  /// Appends an UPDATE of a local row whose earlier values are unknown. It is a conflict in each column that has a
  /// value.
  mutating func appendUpdate(
    ofUnknown here: LocalRow, to row: [ValueSlice], _ bytes: RawSpan, _ header: ChangesetTable
  ) {
    appendUpdate(of: here.changedPlaces(row, bytes, header), to: row, bytes, header) {
      if header.isKey($0) { $1.append(row[$0], of: bytes) } else { $1.appendNull() }
    }
  }

  /// Appends an UPDATE of a row that was deleted here, which is a conflict.
  mutating func appendUpdate(ofMissing row: [ValueSlice], _ bytes: RawSpan, _ header: ChangesetTable) {
    let places = row.indices.filter { !header.isKey($0) && row[$0].isDefined }
    appendUpdate(of: places, to: row, bytes, header) {
      if header.isKey($0) { $1.append(row[$0], of: bytes) } else { $1.appendNull() }
    }
  }
}
