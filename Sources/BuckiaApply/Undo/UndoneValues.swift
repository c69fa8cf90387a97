import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Values of earlier diffs that have been taken back while a later diff had replaced them. Taking back the later diff must not bring
/// them back: instead of such a value comes the one before it.
struct UndoneValues {
  /// A column of a row, by names and by the values of its key.
  private struct Cell: Hashable {
    let table: TableName
    let key: [UInt8]
    let column: String
  }

  /// For each diff that has been taken back, the newest first: which values it gave, and what was there before.
  private var replaced: [[Cell: (new: [UInt8], old: [UInt8])]] = []

  /// Looks for such values.
  ///
  /// - Parameters:
  ///   - undone: The ledger entries of diffs that have been taken back, the newest first.
  ///   - changes: What takes back a later diff.
  ///   - tables: The columns of its tables.
  /// - Throws: `SQLiteError`; `LedgerError`, `ChangesetError` when what is kept is damaged.
  init(
    of undone: [Int64], for changes: [UInt8], _ tables: [AppliedEffects.Table],
    on connection: borrowing SQLiteConnection
  ) throws {
    var wanted: Set<Cell> = []
    try Self.forEachCell(of: changes, tables) { cell, _, new in if new != nil { wanted.insert(cell) } }
    var effects = EffectReader()
    for entry in undone {
      var values: [Cell: (new: [UInt8], old: [UInt8])] = [:]
      for part in try effects.parts(of: entry, on: connection) {
        try Self.forEachCell(of: part.changes, part.tables) { cell, old, new in
          guard let old, let new, wanted.contains(cell) else { return }
          // Of a column that was changed twice, what was there before the first counts.
          values[cell] = (new, values[cell]?.old ?? old)
        }
      }
      if !values.isEmpty { replaced.append(values) }
    }
  }

  /// The changes with what was there before instead of such values.
  func replaced(in changes: [UInt8], _ tables: [AppliedEffects.Table]) throws -> [UInt8] {
    var writer = ChangesetWriter()
    try Self.forEachChange(of: changes, tables) { change, reader, columns, bytes in
      guard let table = reader.table else { return }
      if change.startsTable { writer.append(reader.headerRange, of: bytes) }
      guard change.operation != .delete else { return writer.append(change.range, of: bytes) }
      let key = Self.key(reader, columns, of: change, bytes)
      writer.beginChange(change.operation, isIndirect: change.isIndirect)
      if change.operation == .update { for value in reader.old { writer.append(value, of: bytes) } }
      for (place, value) in reader.new.enumerated() {
        guard value.isDefined, !table.isKey(place) else {
          writer.append(value, of: bytes)
          continue
        }
        let cell = Cell(table: TableName(table.name), key: key, column: columns[place])
        writer.append(encoded: earlier(than: Self.encoded(value, bytes), in: cell))
      }
    }
    return writer.bytes
  }

  private func earlier(than value: [UInt8], in cell: Cell) -> [UInt8] {
    replaced.reduce(value) { value, diff in
      guard let known = diff[cell], known.new == value else { return value }
      return known.old
    }
  }

  // MARK: Reading

  /// Gives the old and the new value of each column outside the key, where there is one.
  private static func forEachCell(
    of changes: [UInt8], _ tables: [AppliedEffects.Table], _ body: (Cell, _ old: [UInt8]?, _ new: [UInt8]?) -> Void
  ) throws {
    try forEachChange(of: changes, tables) { change, reader, columns, bytes in
      guard let table = reader.table else { return }
      let key = key(reader, columns, of: change, bytes)
      for place in columns.indices where !table.isKey(place) {
        let (old, new) = (reader.old[place], reader.new[place])
        guard old.isDefined || new.isDefined else { continue }
        body(
          Cell(table: TableName(table.name), key: key, column: columns[place]),
          old.isDefined ? encoded(old, bytes) : nil, new.isDefined ? encoded(new, bytes) : nil)
      }
    }
  }

  private static func forEachChange(
    of changes: [UInt8], _ tables: [AppliedEffects.Table],
    _ body: (Change, ChangesetReader, _ columns: [String], RawSpan) throws -> Void
  ) throws {
    var columns: [TableName: [String]] = [:]
    for table in tables { columns[TableName(table.name)] = table.columns.map { ASCIIName.folded($0) } }
    try changes.withRawSpan { bytes in
      var reader = ChangesetReader()
      while let change = try reader.next(in: bytes) {
        guard let table = reader.table, let names = columns[TableName(table.name)],
          names.count == table.columnCount
        else { continue }
        try body(change, reader, names, bytes)
      }
    }
  }

  /// The values of the key, in the order of the names of its columns: not all changesets say in which order the key has them.
  private static func key(
    _ reader: ChangesetReader, _ columns: [String], of change: Change, _ bytes: RawSpan
  ) -> [UInt8] {
    guard let table = reader.table else { return [] }
    let row = change.operation == .insert ? reader.new : reader.old
    let places = columns.indices.filter { table.isKey($0) }.sorted { columns[$0] < columns[$1] }
    return places.flatMap { encoded(row[$0], bytes) }
  }

  private static func encoded(_ value: ValueSlice, _ bytes: RawSpan) -> [UInt8] {
    bytes.extracting(value.encoded).withUnsafeBytes { Array($0) }
  }
}
