import BuckiaApply
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections

/// The rows of a table with a key of any kind: a row of the ledger for each. Each statement about them is prepared once.
final class VouchedKeys: VouchedRows {
  let entry: VouchEntry
  let isNew: Bool

  private let connection: SQLiteConnection
  private let keyCount: Int
  private let condition: String
  private var finding: PreparedStatement?
  private var removing: PreparedStatement?
  /// The statements that add so many rows at once.
  private var adding: [Int: PreparedStatement] = [:]

  /// The keys of rows that wait to be added together, one after the other in the format of changesets.
  private var waitingKeys: [UInt8] = []
  private var waiting: [VouchedRow] = []

  /// How many rows are added at once, where their keys are not of very many columns.
  private static let batchRows = 32
  private static let parameterLimit = 512

  init(_ entry: VouchEntry, of table: KeyedTable, isNew: Bool, on connection: borrowing SQLiteConnection) {
    self.entry = entry
    self.isNew = isNew
    self.connection = SQLiteConnection(sharing: connection)
    keyCount = table.keyPlaces.count
    condition = "\(table.vouchCondition) AND vouch = ?\(table.keyPlaces.count + 1)"
  }

  func find(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> VouchedRow? {
    try flush()
    let prepared = try finding ?? connection.cached("SELECT is_own, hash FROM \(entry.name) WHERE \(condition)")
    finding = prepared
    defer {
      prepared.statement.reset()
      prepared.statement.clearBindings()
    }
    try table.bindKey(row, bytes, to: prepared.statement)
    try prepared.statement.bind(entry.number, at: keyCount)
    guard try prepared.statement.step() else { return nil }
    return VouchedRow(prepared.statement, at: 0)
  }

  func forEach(_ body: ([UInt8], VouchedRow) throws -> Void) throws {
    try flush()
    let columns = (0..<keyCount).map { "k\($0)" }.joined(separator: ", ")
    let query = try connection.prepare(
      "SELECT \(columns), is_own, hash FROM \(entry.name) WHERE vouch = \(entry.number)")
    while try query.step() {
      var writer = ChangesetWriter()
      for column in 0..<keyCount { writer.append(column: column, of: query) }
      try body(writer.bytes, VouchedRow(query, at: keyCount))
    }
  }

  func remove(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws {
    try flush()
    let prepared = try removing ?? connection.cached("DELETE FROM \(entry.name) WHERE \(condition)")
    removing = prepared
    defer { prepared.statement.clearBindings() }
    try table.bindKey(row, bytes, to: prepared.statement)
    try prepared.statement.bind(entry.number, at: keyCount)
    try prepared.statement.run()
  }

  // MARK: Adding

  private var batchRows: Int { (keyCount + 3) * Self.batchRows <= Self.parameterLimit ? Self.batchRows : 1 }

  func add(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, _ found: VouchedRow) throws {
    for place in table.keyPlaces {
      bytes.extracting(row[place].encoded).withUnsafeBytes { waitingKeys.append(contentsOf: $0) }
    }
    waiting.append(found)
    if waiting.count >= batchRows { try flush() }
  }

  func flush() throws {
    guard !waiting.isEmpty else { return }
    let (rows, keys) = (waiting, waitingKeys)
    waiting.removeAll()
    waitingKeys.removeAll()
    try keys.withRawSpan { bytes in
      var position = 0
      var rest = rows[...]
      while !rest.isEmpty {
        let count = rest.count >= batchRows ? batchRows : 1
        let prepared = try addition(of: count)
        defer { prepared.statement.clearBindings() }
        var parameter = 0
        for row in rest.prefix(count) {
          for _ in 0..<keyCount {
            try prepared.statement.bind(ValueSlice(verified: bytes, at: &position), in: bytes, at: parameter)
            parameter += 1
          }
          try prepared.statement.bind(entry.number, at: parameter)
          try prepared.statement.bind(Int64(row.isOwn ? 1 : 0), at: parameter + 1)
          try prepared.statement.bind(Int64(bitPattern: row.hash), at: parameter + 2)
          parameter += 3
        }
        try prepared.statement.run()
        rest = rest.dropFirst(count)
      }
    }
  }

  private func addition(of rows: Int) throws -> PreparedStatement {
    if let known = adding[rows] { return known }
    let row = "(\(Array(repeating: "?", count: keyCount + 3).joined(separator: ", ")))"
    let made = try connection.cached(
      """
      INSERT INTO \(entry.name) VALUES \(Array(repeating: row, count: rows).joined(separator: ", ")) \
      ON CONFLICT DO UPDATE SET hash = excluded.hash
      """)
    adding[rows] = made
    return made
  }
}
