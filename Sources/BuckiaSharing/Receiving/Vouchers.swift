import BuckiaApply
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Which rows the streams of others have brought, and which of them were here before.
///
/// A row that one of them withdraws goes only when it is here on account of that stream alone.
final class Vouchers {
  private let connection: SQLiteConnection
  private var known: [TableName: [VouchEntry]] = [:]

  init(on connection: borrowing SQLiteConnection) { self.connection = SQLiteConnection(sharing: connection) }

  private func entries(of table: KeyedTable) throws -> [VouchEntry] {
    if let found = known[table.name] { return found }
    let found = try VouchEntry.all(of: table.local, on: connection)
    known[table.name] = found
    return found
  }

  /// Whether a row that is about to be inserted is here already, and not only because streams have brought it.
  func isOwn(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> Bool {
    let isHere = "SELECT 1 FROM \(table.sql) WHERE \(table.condition(from: 1))"
    guard try table.finds(isHere, row, bytes, on: connection) else { return false }
    var isBrought = false
    for entry in try entries(of: table) {
      let own = "SELECT 1 FROM \(entry.name) WHERE \(table.vouchCondition(from: 1))"
      guard try table.finds(own, row, bytes, on: connection) else { continue }
      if try table.finds("\(own) AND is_own", row, bytes, on: connection) { return true }
      isBrought = true
    }
    return !isBrought
  }

  /// Whether a row stays when a stream withdraws it: it was here before, or another stream has it, too.
  func stays(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, withoutStream stream: [UInt8], from sender: String
  ) throws -> Bool {
    for entry in try entries(of: table) {
      let isOfStream = entry.stream == stream && entry.sender == sender
      let query = "SELECT 1 FROM \(entry.name) WHERE \(table.vouchCondition(from: 1))\(isOfStream ? " AND is_own" : "")"
      if try table.finds(query, row, bytes, on: connection) { return true }
    }
    return false
  }

  /// Whether a row is here on account of a sender's streams.
  func brought(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, by senders: Set<String>) throws -> Bool {
    for entry in try entries(of: table) where senders.contains(entry.sender) {
      let query = "SELECT 1 FROM \(entry.name) WHERE \(table.vouchCondition(from: 1)) AND NOT is_own"
      if try table.finds(query, row, bytes, on: connection) { return true }
    }
    return false
  }

  /// Notes that a stream has brought a row.
  func add(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, stream: [UInt8], from sender: String, isOwn: Bool
  ) throws {
    let entry = try entry(of: table, stream: stream, from: sender)
    let values = (1...table.keyPlaces.count).map { "?\($0)" }.joined(separator: ", ")
    let prepared = try connection.cached(
      "INSERT INTO \(entry.name) VALUES (\(values), \(isOwn ? 1 : 0)) ON CONFLICT DO NOTHING")
    defer { prepared.statement.clearBindings() }
    try table.bindKey(row, bytes, to: prepared.statement)
    try prepared.statement.run()
  }

  /// Notes that a stream does not have a row any more.
  func remove(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, stream: [UInt8], from sender: String
  ) throws {
    guard let entry = try entries(of: table).first(where: { $0.stream == stream && $0.sender == sender }) else {
      return
    }
    let prepared = try connection.cached("DELETE FROM \(entry.name) WHERE \(table.vouchCondition(from: 1))")
    defer { prepared.statement.clearBindings() }
    try table.bindKey(row, bytes, to: prepared.statement)
    try prepared.statement.run()
  }

  private func entry(of table: KeyedTable, stream: [UInt8], from sender: String) throws -> VouchEntry {
    if let found = try entries(of: table).first(where: { $0.stream == stream && $0.sender == sender }) { return found }
    let made = try VouchEntry.make(for: table.local, sender: sender, stream: stream, on: connection)
    known[table.name, default: []].append(made)
    return made
  }
}
