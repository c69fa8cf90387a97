import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteSchemas

/// The versions of a row in a conflict record, by the present columns of the table.
struct RowVersions {
  /// A row: a value for each column of the local layout; nil if unknown.
  typealias Row = [StoredValue?]

  let table: TableDefinition
  /// The values of the key, by their places in the layout.
  let key: [Int: StoredValue]
  let base: Row?
  let local: Row?
  let incoming: Row?
  /// Columns of the record that the table no longer has.
  let lostColumns: [String]
  private let record: RecordedConflict
  private let affinities: [Affinity]
  private let written: Row?
  /// The row after the last resolution; nil for none.
  private let resolved: Row?

  /// - Throws: `ReplicationError` if the table has another key now, or no key identifies the row.
  init(_ record: RecordedConflict, in table: TableDefinition) throws {
    self.record = record
    self.table = table
    let columns = table.changesetColumns
    affinities = table.changesetAffinities
    func place(_ name: String) -> Int? { columns.firstIndex { ASCIIName.matches($0, name) } }
    func row(_ values: RecordedConflict.Row?, _ names: [String]) -> Row? {
      guard let values else { return nil }
      var row = Row(repeating: nil, count: columns.count)
      for (name, value) in zip(names, values) {
        if let place = place(name) { row[place] = value.map { StoredValue($0) } }
      }
      return row
    }
    let names = record.columns.map(\.name)
    base = row(record.base, names)
    local = row(record.local, names)
    incoming = row(record.incoming, names)
    written = row(record.written, names)
    resolved = record.resolution.flatMap { row($0.after, $0.columns) }
    lostColumns = names.filter { place($0) == nil }
    var key: [Int: StoredValue] = [:]
    for place in table.keyIndexes { key[place] = local?[place] ?? incoming?[place] ?? base?[place] }
    self.key = key
    let recordedKey = Set(record.columns.filter(\.isKey).compactMap { place($0.name) })
    guard recordedKey == Set(table.keyIndexes), key.count == table.keyIndexes.count else {
      throw ReplicationError(
        .keyDiffers,
        "table \"\(table.name)\" has another key than when the conflict was recorded: change its row yourself, then take the "
          + "local version",
        table: table.name)
    }
    guard !key.values.contains(where: \.isNull) else {
      throw ReplicationError(
        .unresolvable, "the row has NULL in its key, so nothing but its content tells it apart", table: table.name)
    }
  }

  // MARK: Wanted versions

  /// The row that an answer asks for; nil for a deletion. Columns without a value keep theirs, or get the default.
  ///
  /// - Parameters:
  ///   - current: The present row; nil if there is none.
  ///   - isChanged: True if the row matches none of the recorded versions.
  /// - Throws: `ReplicationError` for an answer that does not apply to the conflict.
  func wanted(by answer: ConflictAnswer, current: Row?, isChanged: Bool) throws -> Row? {
    switch answer {
    case .version(.local), .same: return local
    case .both: return current
    case .version(.incoming):
      guard let operation = record.operation else {
        throw ReplicationError(
          .unresolvable,
          "the record reports a row as it stands and has no incoming version; give values, delete it, or change the row that it refers to",
          table: table.name)
      }
      // Later changes of columns that the author has not changed stay.
      return operation == .delete ? nil : incomingRow(over: isChanged ? current ?? local : local)
    case .deletion: return nil
    case .values(let values):
      return try row(current ?? local ?? incomingRow(over: nil) ?? [], with: values)
    }
  }

  /// The missing one of two rows with the same key.
  ///
  /// - Throws: `ReplicationError` if there are no two rows.
  func missing(besides current: Row?) throws -> Row {
    guard record.kind == .conflict, record.operation == .insert, let local, let incoming = incomingRow(over: nil),
      !isLike(local, incoming), isLike(current, local) || isLike(current, incoming)
    else {
      throw ReplicationError(
        .unresolvable, "there are no two rows with the same key to keep, or the row was changed since",
        table: table.name)
    }
    return isLike(current, local) ? incoming : local
  }

  /// The row of an incoming INSERT with other values in some columns; nil for other changes.
  ///
  /// - Throws: `ReplicationError` if there is no such column.
  func insertedRow(with values: [String: ChangesetValue]) throws -> Row? {
    guard record.operation == .insert, let incoming = incomingRow(over: nil) else { return nil }
    return try row(incoming, with: values)
  }

  /// The author's row; nil for a DELETE.
  private func incomingRow(over other: Row?) -> Row? {
    guard let incoming else { return nil }
    let rest = other ?? base
    return incoming.indices.map { incoming[$0] ?? rest?[$0] }
  }

  private func row(_ row: Row, with values: [String: ChangesetValue]) throws -> Row {
    var row = row.isEmpty ? Row(repeating: nil, count: table.changesetColumns.count) : row
    for (place, value) in key where row[place] == nil { row[place] = value }
    var given: Set<Int> = []
    for (column, value) in values {
      guard let place = table.changesetColumns.firstIndex(where: { ASCIIName.matches($0, column) }) else {
        throw ReplicationError(
          .columnsDiffer, "there is no column \(EscapedText.quoted(column)) in table \"\(table.name)\"",
          table: table.name, column: column)
      }
      guard given.insert(place).inserted else {
        throw ReplicationError(
          .columnsDiffer, "there are two values for column \(EscapedText.quoted(column))", table: table.name,
          column: column)
      }
      let value = StoredValue(value)
      if let own = key[place], !own.holds(value, affinities[place]) {
        throw ReplicationError(
          .columnsDiffer,
          "the key of a row cannot be changed here; for another key, insert a row of your own", table: table.name,
          column: column)
      }
      if key[place] == nil { row[place] = value }
    }
    return row
  }

  // MARK: Known versions

  /// True if the row matches a recorded version: the one before the conflict, the one after it, or that of the last
  /// resolution.
  func isKnown(_ current: Row?) -> Bool {
    if isLike(current, local) || record.resolution != nil && isLike(current, resolved) { return true }
    switch record.outcome {
    case .tookIncoming: return isLike(current, takenRow)
    case .resolved: return written != nil && isLike(current, written)
    case .merged:
      // Each column has the local or the incoming value.
      guard let current, let local, let taken = takenRow else { return false }
      return current.indices.allSatisfy { place in
        isLike(current[place], local[place], at: place) || isLike(current[place], taken[place], at: place)
      }
    case .keptLocal, .omitted, .reported: return false
    }
  }

  /// The last known version of the row. If the present row differs, it was changed since.
  func lastKnown(besides current: Row?) -> Row? {
    if record.resolution != nil { return resolved }
    switch record.outcome {
    case .tookIncoming: return takenRow
    case .resolved: return written ?? local
    case .keptLocal, .omitted, .reported: return local
    case .merged:
      // The record does not say which version a column got. If it has neither now, the two were most likely merged like
      // this.
      guard let local, let taken = takenRow else { return local }
      return local.indices.map { place in
        if let current, isLike(current[place], taken[place], at: place) { return current[place] }
        let isTaken = base?[place].map { isLike(local[place], $0, at: place) } == true
        return isTaken ? taken[place] : local[place]
      }
    }
  }

  private var takenRow: Row? { record.operation == .delete ? nil : incomingRow(over: local) }

  /// True if two rows are equal in all known columns.
  func isLike(_ current: Row?, _ other: Row?) -> Bool {
    guard let current, let other else { return current == nil && other == nil }
    return current.indices.allSatisfy { isLike(current[$0], other[$0], at: $0) }
  }

  private func isLike(_ current: StoredValue?, _ other: StoredValue?, at place: Int) -> Bool {
    guard let other else { return true }
    return current?.holds(other, affinities[place]) == true
  }

  /// True if storing a value in a column gives the other value.
  func holds(_ value: StoredValue?, _ other: StoredValue, at place: Int) -> Bool {
    value?.holds(other, affinities[place]) == true
  }

  /// The columns outside the key in which the incoming and the local version differ; all columns if either is missing.
  var disputedPlaces: [Int] {
    table.changesetColumns.indices.filter { place in
      guard key[place] == nil else { return false }
      guard let local, let incoming else { return (local ?? incoming)?[place] != nil }
      return incoming[place].map { !isLike(local[place], $0, at: place) } ?? false
    }
  }

  /// The columns in which two rows differ.
  func differences(of current: Row?, from other: Row?) -> [Int] {
    table.changesetColumns.indices.filter { place in
      guard let other else { return current?[place] != nil }
      guard let current else { return other[place] != nil }
      return !isLike(current[place], other[place], at: place)
    }
  }

  // MARK: The question

  /// The question of the conflict, for a rule; nil unless there are two versions of one row to choose from.
  var question: ConflictQuestion? {
    guard record.kind == .data || record.kind == .conflict, record.reason == nil, let operation = record.operation,
      let local
    else { return nil }
    let other = operation == .delete ? base : incoming
    let columns = table.changesetColumns.indices.filter { place in
      guard key[place] == nil, let value = other?[place] else { return false }
      return !isLike(local[place], value, at: place)
        && (operation == .delete || base?[place].map { isLike(local[place], $0, at: place) } != true)
    }
    guard !columns.isEmpty else { return nil }
    return ConflictQuestion(
      table: TableName(table.name), kind: record.kind, operation: operation,
      columns: columns.map { table.changesetColumns[$0] })
  }
}

/// A value as a changeset encodes it, exact to the byte.
struct StoredValue: Equatable {
  let bytes: [UInt8]

  /// Creates a value from its encoding, which must be whole.
  init(_ bytes: [UInt8]) { self.bytes = bytes }

  init(_ value: ChangesetValue) {
    bytes = ChangesetWriter.record(of: [value])
  }

  /// The value for people; text that is not valid UTF-8 is repaired.
  var value: ChangesetValue {
    bytes.withRawSpan { span in
      var position = 0
      return ChangesetValue(ValueSlice(verified: span, at: &position), in: span) ?? .null
    }
  }

  var isNull: Bool { bytes.first == ValueKind.null.rawValue }

  /// True if a column with an affinity stores another value as this one
  ///
  /// Text that looks like a number counts as another value: a column of another type refuses it when it comes in.
  func holds(_ other: StoredValue, _ affinity: Affinity) -> Bool {
    if bytes == other.bytes { return true }
    return switch (value, other.value, affinity) {
    case (.integer(let mine), .real(let its), .integer), (.integer(let mine), .real(let its), .numeric):
      Int64(exactly: its) == mine
    case (.real(let mine), .integer(let its), .real): mine == Double(its)
    case (.real(let mine), .real(let its), .real): mine == its
    default: false
    }
  }

  /// Splits a record, which has a value for each column.
  static func row(_ record: [UInt8]) throws -> [StoredValue] {
    try RowCopy(record: record).values.map { StoredValue(Array(record[$0.encoded])) }
  }
}
