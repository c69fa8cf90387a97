import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The rows that an undo removes or restores.
///
/// An undo concerns this database alone and deletes nothing at others. The recipients of a removed row get a
/// withdrawal, unless the deletion is to be propagated.
package final class UndoneRows: RowEffectObserver {
  package let wantsRows = false
  /// The complete chunks of rows. A row is the place of its table with a bit that is set if the row exists, the length
  /// of its key, and the key.
  private let stored = TemporaryBuffer()
  private var chunks: [Range<Int>] = []
  /// The rows after the last chunk.
  private var rows: [UInt8] = []
  private static let chunkSize = 256 << 10
  private var tables: [TableName] = []
  private var places: [TableName: Int] = [:]

  package init() {}

  package func didWrite(_ effect: RowEffect) throws {
    guard effect.operation != .update, !effect.key.isEmpty else { return }
    let place = places[effect.table] ?? tables.count
    if place == tables.count {
      tables.append(effect.table)
      places[effect.table] = place
    }
    for number in [place << 1 | (effect.operation == .insert ? 1 : 0), effect.key.count] {
      withUnsafeBytes(of: UInt32(number).littleEndian) { rows.append(contentsOf: $0) }
    }
    rows.append(contentsOf: effect.key)
    guard rows.count >= Self.chunkSize else { return }
    chunks.append(stored.count..<stored.count + rows.count)
    try stored.write(rows)
    rows.removeAll(keepingCapacity: true)
  }

  private func forEachRow(_ body: (TableName, _ key: [UInt8], _ isThere: Bool) throws -> Void) throws {
    for chunk in chunks {
      var rows: [UInt8] = []
      rows.reserveCapacity(chunk.count)
      try stored.forEachPiece(chunk) { rows.append(contentsOf: $0) }
      try forEachRow(in: rows, body)
    }
    try forEachRow(in: rows, body)
  }

  private func forEachRow(
    in rows: [UInt8], _ body: (TableName, _ key: [UInt8], _ isThere: Bool) throws -> Void
  ) rethrows {
    var position = 0
    func number() -> Int {
      defer { position += 4 }
      return rows[position..<position + 4].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
    while position < rows.count {
      let (table, count) = (number(), number())
      try body(tables[table >> 1], Array(rows[position..<position + count]), table & 1 == 1)
      position += count
    }
  }

  package var mark: Int { chunks.reduce(rows.count) { $0 + $1.count } }

  package func rewind(to mark: Int) {
    var surplus = self.mark - mark
    let open = min(surplus, rows.count)
    rows.removeLast(open)
    surplus -= open
    while surplus > 0, let last = chunks.popLast() {
      if surplus < last.count { chunks.append(last.dropLast(surplus)) }
      surplus -= last.count
    }
  }

  /// Records the rows for the shares whose recipients have them.
  ///
  /// - Throws: `SQLiteError`; `ByteStreamError` when the temporary file of the rows cannot be read.
  package func note(on connection: borrowing SQLiteConnection) throws {
    guard !chunks.isEmpty || !rows.isEmpty else { return }
    let schema = try SchemaReader(connection)
    let keyed = try KeyedTables([], and: tables, schema)
    // A first share does not send the withdrawal to the senders of a row either.
    let provenance = Provenance(on: connection)
    try forEachRow { name, key, isThere in
      guard let table = keyed[name] else { return }
      guard !isThere else {
        try Tombstones.remove(key, of: name, on: connection)
        return try RowNotes(.takenBack, of: name, for: RowNotes.laterShares).remove(key, on: connection)
      }
      let isBrought = try key.withRawSpan { try !provenance.found(table.row(withKey: $0), $0, of: table).isEmpty }
      if isBrought { try RowNotes(.takenBack, of: name, for: RowNotes.laterShares).note(key, on: connection) }
    }
    for share in try ShareEntry.all(on: connection) {
      let baselines = try BaselineEntry.all(of: share.number, on: connection)
      try forEachRow { name, key, isThere in
        guard let baseline = baselines.first(where: { $0.table == name }), let table = keyed[name] else { return }
        let sql = "SELECT 1 FROM main.\(baseline.name.quoted) WHERE \(table.condition(from: 1))"
        let isShared = try key.withRawSpan { try table.finds(sql, table.row(withKey: $0), $0, on: connection) }
        guard isShared else { return }
        if isThere {
          try RowNotes(.takenBack, of: name, for: share.number).remove(key, on: connection)
        } else {
          try RowNotes(.takenBack, of: name, for: share.number).note(key, on: connection)
        }
      }
    }
  }
}
