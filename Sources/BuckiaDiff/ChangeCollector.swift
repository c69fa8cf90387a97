import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

/// Collects the changes of one table by operation, because DELETEs are written before UPDATEs, and these before
/// INSERTs.
final class ChangeCollector {
  private let encoder: ChangeEncoder
  private var deletes = SpooledChanges.ofTable
  private var updates = SpooledChanges.ofTable
  private var inserts = SpooledChanges.ofTable

  var deleted: Int { deletes.count }
  var updated: Int { updates.count }
  var inserted: Int { inserts.count }
  var isEmpty: Bool { deleted + updated + inserted == 0 }

  init(of table: TableDefinition) { encoder = ChangeEncoder(of: table) }

  /// Adds the DELETE or the INSERT of a row.
  func add<Row: RowValues & ~Copyable>(_ operation: ChangeOperation, _ row: borrowing Row) throws {
    try add(operation) { writer in try encoder.append(row, to: &writer) }
  }

  /// Adds the UPDATE from one row to another with the same key, if they differ.
  @inline(__always)
  func addUpdate<Row: RowValues & ~Copyable>(from old: borrowing Row, to new: borrowing Row) throws {
    guard try encoder.compare(old, new) else { return }
    try add(.update) { writer in try encoder.appendUpdate(from: old, to: new, in: &writer) }
  }

  /// Adds a change whose values are encoded already.
  func add(_ operation: ChangeOperation, encoded values: UnsafeRawBufferPointer) throws {
    try add(operation) { $0.append(encoded: values) }
  }

  private func add(_ operation: ChangeOperation, _ body: (inout ChangesetWriter) throws -> Void) throws {
    func add(to section: inout SpooledChanges) throws {
      section.writer.beginChange(operation)
      try body(&section.writer)
      try section.endChange()
    }
    switch operation {
    case .delete: try add(to: &deletes)
    case .update: try add(to: &updates)
    case .insert: try add(to: &inserts)
    }
  }

  /// Appends a table header and all changes.
  func finish(_ table: ChangesetTable, into output: TemporaryBuffer) throws {
    guard !isEmpty else { return }
    var header = ChangesetWriter()
    header.beginTable(table)
    try output.write(header.bytes)
    func append(_ section: inout SpooledChanges) throws {
      try section.flush()
      try output.write(contentsOf: section.buffer)
    }
    try append(&deletes)
    try append(&updates)
    try append(&inserts)
  }
}

extension SpooledChanges {
  /// No changes of a table yet. They are written by the MiB.
  fileprivate static var ofTable: SpooledChanges { SpooledChanges(in: TemporaryBuffer(), gathering: 1 << 20) }
}

/// Encodes the changes of one table: a DELETE or an INSERT with all values of a row, an UPDATE with the key and the
/// differences between two rows.
final class ChangeEncoder {
  private let columnCount: Int
  private let isKey: [Bool]
  private let otherColumns: [Int]
  /// True if an UPDATE has all old values, because a rowid alone does not identify a row for certain.
  private let hasAllOldValues: Bool
  /// The columns that differ between the rows compared last.
  private let differs: UnsafeMutableBufferPointer<Bool>

  init(of table: TableDefinition) {
    hasAllOldValues = table.isKeyedByRowID && table.module == nil
    columnCount = table.changesetColumns.count
    isKey = table.keyFlags.map { $0 != 0 }
    otherColumns = isKey.indices.filter { [isKey] in !isKey[$0] }
    differs = .allocate(capacity: columnCount)
    differs.initialize(repeating: false)
  }

  // Sound: allocated in init, with a trivial element type, and touched through indices of columns only.
  deinit { differs.deallocate() }

  /// Adds all values of a row.
  @inline(__always)
  func append<Row: RowValues & ~Copyable>(_ row: borrowing Row, to writer: inout ChangesetWriter) throws {
    for column in 0..<columnCount { try row.append(column, to: &writer) }
  }

  /// Compares two rows of one key; the next `appendUpdate` is about them.
  ///
  /// - Returns: True if they differ.
  @inline(__always)
  func compare<Row: RowValues & ~Copyable>(_ old: borrowing Row, _ new: borrowing Row) throws -> Bool {
    var isAnyDifferent = false
    for column in otherColumns {
      let isDifferent = try !old.value(column).isIdentical(to: new.value(column))
      differs[column] = isDifferent
      if isDifferent { isAnyDifferent = true }
    }
    return isAnyDifferent
  }

  /// Adds the values of an UPDATE from one row to the other: the key and the old values of changed columns, then the
  /// new ones. For a table without a primary key, all old values.
  func appendUpdate<Row: RowValues & ~Copyable>(
    from old: borrowing Row, to new: borrowing Row, in writer: inout ChangesetWriter
  ) throws {
    for column in 0..<columnCount {
      if hasAllOldValues || isKey[column] || differs[column] {
        try old.append(column, to: &writer)
      } else {
        writer.appendUndefined()
      }
    }
    for column in 0..<columnCount {
      if differs[column] { try new.append(column, to: &writer) } else { writer.appendUndefined() }
    }
  }
}

/// Sorts the changes of a table by its key. A DELETE and an INSERT of one key become an UPDATE.
final class ChangePairing {
  private let header: ChangesetTable
  private let encoder: ChangeEncoder
  private var spool = SpooledChanges.ofTable

  init(of table: TableDefinition) {
    header = ChangesetTable(name: table.name, keyFlags: table.keyFlags)
    encoder = ChangeEncoder(of: table)
  }

  /// Adds a row that is, or seems to be, in one database only: DELETE for a row of the older database, INSERT for one
  /// of the newer.
  func add<Row: RowValues & ~Copyable>(_ operation: ChangeOperation, _ row: borrowing Row) throws {
    spool.writer.beginChange(operation)
    try encoder.append(row, to: &spool.writer)
    try spool.endChange()
  }

  /// Adds two rows with the same key.
  func addUpdate<Row: RowValues & ~Copyable>(from old: borrowing Row, to new: borrowing Row) throws {
    guard try encoder.compare(old, new) else { return }
    spool.writer.beginChange(.update)
    try encoder.appendUpdate(from: old, to: new, in: &spool.writer)
    try spool.endChange()
  }

  /// Hands everything on.
  func finish(into changes: ChangeCollector, _ progress: ProgressReporter) throws {
    guard spool.count > 0 else { return }
    var counter = RowCounter(progress)
    var sorter = try spool.sorted(as: header)
    while try sorter.advance() {
      try sorter.bytes.withUnsafeBytes { try pair(&sorter, in: $0, into: changes, &counter) }
    }
  }

  private func pair(
    _ sorter: inout ChangeSorter, in bytes: UnsafeRawBufferPointer, into changes: ChangeCollector,
    _ counter: inout RowCounter
  ) throws {
    var previous = EncodedRow(of: header)
    var current = EncodedRow(of: header)
    while let place = sorter.next(in: bytes.bytes) {
      try counter.poll()
      current.read(place, in: bytes)
      if !previous.isPresent {
        swap(&previous, &current)
      } else if previous.isOtherSide(of: current), previous.hasSameKey(as: current) {
        let isOlder = previous.operation == .delete
        try changes.addUpdate(from: isOlder ? previous : current, to: isOlder ? current : previous)
        previous.isPresent = false
      } else {
        try changes.add(previous.operation, encoded: previous.encoded)
        swap(&previous, &current)
      }
    }
    if previous.isPresent { try changes.add(previous.operation, encoded: previous.encoded) }
  }
}

/// A row as a DELETE or an INSERT has it, or an UPDATE, of which only the encoded values are of use.
private struct EncodedRow: RowValues {
  private let key: [Int]
  private let walk: ChangeWalk
  private var bytes = UnsafeRawBufferPointer(start: nil, count: 0)
  private var values: [ValueSlice]
  private var range = 0..<0
  private(set) var operation = ChangeOperation.insert
  var isPresent = false

  init(of table: ChangesetTable) {
    key = table.keyFlags.indices.filter { table.isKey($0) }
    walk = ChangeWalk(0..<0, of: table)
    values = Array(repeating: .undefined, count: table.columnCount)
  }

  /// The encoded values of the change.
  var encoded: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[range]) }

  /// Reads a change of a `ChangeSorter`.
  mutating func read(_ place: ChangePlace, in bytes: UnsafeRawBufferPointer) {
    self.bytes = bytes
    operation = place.operation
    isPresent = true
    var position = place.values
    for column in values.indices { values[column] = ValueSlice(verified: bytes.bytes, at: &position) }
    range = place.values..<(operation == .update ? walk.end(of: place, in: bytes.bytes) : position)
  }

  func value(_ column: Int) -> RowValue { values[column].value(in: bytes) }

  /// True if one of the two is a DELETE and the other an INSERT.
  func isOtherSide(of other: EncodedRow) -> Bool {
    operation != .update && other.operation != .update && operation != other.operation
  }

  func hasSameKey(as other: EncodedRow) -> Bool {
    key.allSatisfy { value($0).isIdentical(to: other.value($0)) }
  }
}
