import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Rows that a UNIQUE constraint keeps out of their table: all of their columns wait for them, beside those that have
/// arrived since.
extension TableClock {
  /// A row that is kept.
  struct KeptRow {
    /// What is kept of it, by the stamps that have set it.
    let items: [PendingColumns.Item]
    /// Its values outside the key, by place in the local layout.
    let values: [Int: ChangesetValue]
    /// What has happened to it.
    let stamps: RowStamps
  }

  /// Keeps the stamps of a row that is here and will not be: runs say something only of rows that are here.
  func hold(_ key: ClockKeyRecord) throws {
    if let list = try list(of: key) { try store.write(list, key) }
  }

  /// Keeps a row that is here and will not be.
  func keep(_ row: [UInt8], for key: ClockKeyRecord) throws {
    let before = try list(of: key)
    let stamps = try before.map { try self.stamps($0) } ?? RowStamps()
    let places = try placesOfColumns()
    let row = try ChangesetValue.record(row).map { $0 ?? .null }
    var unset = ColumnSet()
    for position in places.keys where stamps.setter(of: position) == nil { unset.insert(position) }
    for stamp in stamps.stamps where stamp.operation != .delete {
      try pending.keep(
        values(of: stamp, among: stamps) { row[$0] }, by: stamp.number, isOfInsert: stamp.operation == .insert, for: key
      )
    }
    if stamps.insertion == nil || !unset.isEmpty {
      // What all began with is as old as anything can be.
      let origin = try RowClocks.stamp(in: number, by: .minimum, .insert, unset, .applied, on: connection)
      var values = ChangesetWriter()
      for position in unset.positions { values.append(places[position].map { row[$0] } ?? .null) }
      try pending.keep(values.bytes, by: origin.number, isOfInsert: true, for: key)
    }
    // Runs say something of rows only that are here.
    if let before { try store.write(before, key) }
  }

  /// A row that is kept; nil where nothing but columns are that wait for an INSERT.
  func keptRow(_ key: ClockKeyRecord) throws -> KeptRow? {
    let items = try pending.items(for: key)
    guard items.contains(where: \.isOfInsert) else { return nil }
    var stamps = RowStamps()
    for item in items {
      if let stamp = try RowClocks.stamp(item.stamp, on: connection) { stamps.add(stamp) }
    }
    return KeptRow(items: items, values: try pendingValues(items, beside: RowStamps()), stamps: stamps)
  }

  /// What has happened to the row with a key, which is here.
  func stamps(ofRow key: ClockKeyRecord) throws -> RowStamps {
    try list(of: key).map { try stamps($0) } ?? RowStamps()
  }
}
