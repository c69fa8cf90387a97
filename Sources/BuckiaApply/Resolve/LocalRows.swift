import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Reads and writes single rows of one table by key, through the writer that applies changes.
final class LocalRows {
  let table: TableDefinition
  private let header: ChangesetTable
  private let writer: RowWriter

  /// - Parameters:
  ///   - table: The table.
  ///   - session: The session of the transaction.
  ///   - indexes: Maintains the indexes over the table in place of triggers.
  ///   - observer: An observer of written rows.
  init(
    _ table: TableDefinition, in session: ApplySession, keeping indexes: IndexMaintenance?,
    reportingTo observer: (any RowEffectObserver)?
  ) throws {
    self.table = table
    // A patchset identifies rows by their keys alone.
    header = ChangesetTable(name: table.name, format: .patchset, keyFlags: table.keyFlags)
    let match = TableMatch(unchanged: table)
    writer = RowWriter(
      try session.statements(for: match, header: header), header, keeping: indexes,
      searching: ContentSearches(session.contentPolicy, storesUTF16: session.storesUTF16, progress: { _ in }),
      reportingTo: observer)
    writer.keepsMessages = true
  }

  /// The present row with a key; nil if there is none.
  func row(with key: [Int: StoredValue]) throws -> RowVersions.Row? {
    try withChange(.delete, RowVersions.Row(repeating: nil, count: header.columnCount), key) { bytes in
      guard let row = try writer.currentRow(bytes) else { return nil }
      defer { row.release() }
      var record = ChangesetWriter()
      row.append(header.columnCount, to: &record)
      return try StoredValue.row(record.bytes)
    }
  }

  /// Writes the wanted version of a row.
  ///
  /// - Parameters:
  ///   - key: The values of the key.
  ///   - current: The present row; nil if there is none.
  ///   - wanted: The wanted row; nil to delete it. Columns without a value keep theirs, or get the default.
  /// - Returns: The reason if a constraint or a trigger refuses the row, which is then unchanged; nil on success.
  /// - Throws: `SQLiteError` for anything but a refusal of the row.
  func write(_ key: [Int: StoredValue], from current: RowVersions.Row?, to wanted: RowVersions.Row?) throws -> String? {
    guard let wanted else {
      guard let current else { return nil }
      return try withChange(.delete, current, key) { try refusal(writer.delete($0, guardedBy: .none)) }
    }
    guard let current else {
      return try withChange(.insert, wanted, key) { bytes in
        try writer.insert([:], bytes) == nil ? nil : String(decoding: writer.lastMessage, as: UTF8.self)
      }
    }
    var changed = wanted
    for place in wanted.indices where key[place] != nil || wanted[place] == current[place] { changed[place] = nil }
    guard changed.contains(where: { $0 != nil }) else { return nil }
    return try withChange(.update, changed, key) { try refusal(writer.update($0, guardedBy: .none)) }
  }

  private func refusal(_ result: RowWriter.Result) -> String? {
    switch result {
    case .written: nil
    case .noRow: "a trigger keeps the row from being written"
    case .refused: String(decoding: writer.lastMessage, as: UTF8.self)
    }
  }

  /// Calls `body` with a change of the row with a key.
  private func withChange<Value>(
    _ operation: ChangeOperation, _ row: RowVersions.Row, _ key: [Int: StoredValue],
    _ body: (RawSpan) throws -> Value
  ) throws -> Value {
    var change = ChangesetWriter()
    change.beginChange(operation)
    for (place, value) in row.enumerated() {
      if let part = key[place], operation != .insert || value == nil {
        change.append(encoded: part.bytes)
      } else if operation != .delete {
        if let value { change.append(encoded: value.bytes) } else { change.appendUndefined() }
      }
    }
    return try change.bytes.withRawSpan { bytes in
      guard let place = ChangePlace(at: 0, in: bytes) else { throw ChangesetError(.truncated, offset: 0) }
      writer.change.read(place, in: bytes)
      return try body(bytes)
    }
  }
}

/// Finds missing rows to which a row refers.
final class ParentLookup {
  private let links: [(link: ReferenceLink, query: PreparedStatement)]
  private let table: TableDefinition

  /// - Throws: `SQLiteError` when the schema cannot be read.
  init(of table: TableDefinition, in session: ApplySession) throws {
    self.table = table
    links = try ReferenceLink.all(of: .init(unchanged: table), in: session.schema()).map { link in
      // The parent's column decides how values compare, as in SQLite.
      let terms = link.parentColumns.enumerated().map { index, column in
        "\(SQLText.identifier(link.parent.columns[column].name)) = ?\(index + 1)"
      }
      let parent = "main.\(SQLText.identifier(link.parent.name))"
      let query = "SELECT 1 FROM \(parent) WHERE \(terms.joined(separator: " AND "))"
      return (link, PreparedStatement(try session.connection.prepare(query)))
    }
  }

  /// The first missing row to which a row refers, for people; nil for none.
  func missingParent(of row: RowVersions.Row) throws -> String? {
    for (link, query) in links {
      let values = link.childColumns.map { row[$0] }
      guard values.allSatisfy({ $0?.isNull == false }) else { continue }
      let isItself =
        link.child == TableName(link.parent.name)
        && link.parentColumns.map { row[$0 + link.parent.columnOffset] } == values
      if isItself { continue }
      for (index, value) in values.enumerated() { try query.statement.bind(value?.value ?? .null, at: index) }
      defer { query.statement.reset() }
      guard try !query.statement.step() else { continue }
      let names = link.parentColumns.map { link.parent.columns[$0].name }
      return RowName(table: link.parent.name, columns: names, values: values.map { $0?.value }).description
    }
    return nil
  }
}
