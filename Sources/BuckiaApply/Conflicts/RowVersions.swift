import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteSchemas

/// The versions of a row that a conflict record has, in the columns that the table has today.
struct RowVersions {
  /// A row: a value for each column of the local layout, nil where none is known.
  typealias Row = [StoredValue?]

  let table: TableDefinition
  /// What tells the row apart: the values of the key, by their places in the layout.
  let key: [Int: StoredValue]
  let base: Row?
  let local: Row?
  let incoming: Row?
  /// Columns of the record that the table does not have any more.
  let lostColumns: [String]
  private let record: RecordedConflict
  private let affinities: [Affinity]
  private let written: Row?
  /// How the row was left by the last resolution; nil where there was none.
  private let resolved: Row?

  /// - Throws: `ReplicationError` when the table has another key today, or the row has none that tells it apart.
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
        .keyDiffers, "table \"\(table.name)\" has another key than when the conflict was recorded", table: table.name)
    }
    guard !key.values.contains(where: \.isNull) else {
      throw ReplicationError(
        .unresolvable, "the row has NULL in its key, so nothing but its content tells it apart", table: table.name)
    }
  }

  // MARK: What is wanted

  /// The row that an answer asks for; nil when none is to be there. Columns without a value keep the one they have, or get
  /// their default.
  ///
  /// - Parameters:
  ///   - current: The row as it is now; nil when there is none.
  ///   - isChanged: True if the row is as nobody has left it that the record knows of.
  /// - Throws: `ReplicationError` for an answer that the conflict does not know.
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
      // What others have changed since, and the author has not, stays.
      return operation == .delete ? nil : incomingRow(over: isChanged ? current ?? local : local)
    case .deletion: return nil
    case .values(let values):
      return try row(current ?? local ?? incomingRow(over: nil) ?? [], with: values)
    }
  }

  /// The one of two rows with the same key that is not there now.
  ///
  /// - Throws: `ReplicationError` where there are no two of them.
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

  /// The row as the author wants it; nil for a DELETE.
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
          "the key of a row stays as it is; insert a row of your own where it is to have another", table: table.name,
          column: column)
      }
      if key[place] == nil { row[place] = value }
    }
    return row
  }

  // MARK: What is known

  /// True if a row is as it was when the conflict was met, as that has left it, or as the last resolution has.
  func isKnown(_ current: Row?) -> Bool {
    if isLike(current, local) || record.resolution != nil && isLike(current, resolved) { return true }
    switch record.outcome {
    case .tookIncoming: return isLike(current, takenRow)
    case .resolved: return written != nil && isLike(current, written)
    case .merged:
      // Each column has been taken or kept.
      guard let current, let local, let taken = takenRow else { return false }
      return current.indices.allSatisfy { place in
        isLike(current[place], local[place], at: place) || isLike(current[place], taken[place], at: place)
      }
    case .keptLocal, .omitted, .reported: return false
    }
  }

  /// The row as it was last known: where the present one is another, it was changed since.
  func lastKnown(besides current: Row?) -> Row? {
    if record.resolution != nil { return resolved }
    switch record.outcome {
    case .tookIncoming: return takenRow
    case .resolved: return written ?? local
    case .keptLocal, .omitted, .reported: return local
    case .merged:
      // Which version a column has got is not recorded. If it has neither now, it was most likely merged like this.
      guard let local, let taken = takenRow else { return local }
      return local.indices.map { place in
        if let current, isLike(current[place], taken[place], at: place) { return current[place] }
        let isTaken = base?[place].map { isLike(local[place], $0, at: place) } == true
        return isTaken ? taken[place] : local[place]
      }
    }
  }

  private var takenRow: Row? { record.operation == .delete ? nil : incomingRow(over: local) }

  /// True if a row is like another, as far as that is known.
  func isLike(_ current: Row?, _ other: Row?) -> Bool {
    guard let current, let other else { return current == nil && other == nil }
    return current.indices.allSatisfy { isLike(current[$0], other[$0], at: $0) }
  }

  private func isLike(_ current: StoredValue?, _ other: StoredValue?, at place: Int) -> Bool {
    guard let other else { return true }
    return current?.holds(other, affinities[place]) == true
  }

  /// True if a column with a value of a row holds another one.
  func holds(_ value: StoredValue?, _ other: StoredValue, at place: Int) -> Bool {
    value?.holds(other, affinities[place]) == true
  }

  /// The columns outside of the key in which the incoming version is another than the local one: all of them where either is missing.
  var disputedPlaces: [Int] {
    table.changesetColumns.indices.filter { place in
      guard key[place] == nil else { return false }
      guard let local, let incoming else { return (local ?? incoming)?[place] != nil }
      return incoming[place].map { !isLike(local[place], $0, at: place) } ?? false
    }
  }

  /// The columns in which a row is not like another.
  func differences(of current: Row?, from other: Row?) -> [Int] {
    table.changesetColumns.indices.filter { place in
      guard let other else { return current?[place] != nil }
      guard let current else { return other[place] != nil }
      return !isLike(current[place], other[place], at: place)
    }
  }

  // MARK: The question

  /// What the conflict asks, where other conflicts can ask the same: two versions of one row are there to choose from.
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

  /// Takes one whole value that has been read before.
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

  /// True if a column with an affinity makes this value of another one (<https://sqlite.org/datatype3.html#type_affinity>).
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

  /// Takes a record apart, which has a value for each column.
  static func row(_ record: [UInt8]) throws -> [StoredValue] {
    try RowCopy(record: record).values.map { StoredValue(Array(record[$0.encoded])) }
  }
}
