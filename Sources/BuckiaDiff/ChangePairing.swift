import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

/// Takes the changes of a table in any order and hands them on in the order of its key. A DELETE and an INSERT of one key
/// become an UPDATE.
final class ChangePairing {
  private let header: ChangesetTable
  private let encoder: ChangeEncoder
  private let spool = TemporaryBuffer()
  private var writer = ChangesetWriter()

  private static let flushLimit = 1 << 20

  init(of table: TableDefinition) {
    header = ChangesetTable(name: table.name, keyFlags: table.keyFlags)
    encoder = ChangeEncoder(of: table)
  }

  /// Takes a row that is in one database, or seems to be: DELETE for one of the older database, INSERT for one of the newer.
  func add<Row: RowValues & ~Copyable>(_ operation: ChangeOperation, _ row: borrowing Row) throws {
    writer.beginChange(operation)
    try encoder.append(row, to: &writer)
    try flush(atLeast: Self.flushLimit)
  }

  /// Takes two rows of one key.
  func addUpdate<Row: RowValues & ~Copyable>(from old: borrowing Row, to new: borrowing Row) throws {
    guard try encoder.compare(old, new) else { return }
    writer.beginChange(.update)
    try encoder.appendUpdate(from: old, to: new, in: &writer)
    try flush(atLeast: Self.flushLimit)
  }

  private func flush(atLeast limit: Int) throws {
    guard writer.count >= limit else { return }
    try spool.write(writer.bytes)
    writer.removeAll()
  }

  /// Hands everything on.
  func finish(into changes: ChangeCollector, _ progress: ProgressReporter) throws {
    try flush(atLeast: 1)
    guard !spool.isEmpty else { return }
    var counter = RowCounter(progress)
    var sorter = try ChangeSorter(header, sections: [0..<spool.count], of: spool)
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

  /// The values of the change as they are written.
  var encoded: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[range]) }

  /// Takes a change that a `ChangeSorter` has given.
  mutating func read(_ place: ChangePlace, in bytes: UnsafeRawBufferPointer) {
    self.bytes = bytes
    operation = place.operation
    isPresent = true
    var position = place.values
    for column in values.indices { values[column] = ValueSlice(verified: bytes.bytes, at: &position) }
    range = place.values..<(operation == .update ? walk.end(of: place, in: bytes.bytes) : position)
  }

  func value(_ column: Int) -> RowValue { values[column].value(in: bytes) }

  /// Whether one of the two is a DELETE and the other an INSERT.
  func isOtherSide(of other: EncodedRow) -> Bool {
    operation != .update && other.operation != .update && operation != other.operation
  }

  func hasSameKey(as other: EncodedRow) -> Bool {
    key.allSatisfy { value($0).isIdentical(to: other.value($0)) }
  }
}
