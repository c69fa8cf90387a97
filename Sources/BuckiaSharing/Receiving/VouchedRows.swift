import BuckiaApply
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections

/// The rows of a table that a stream has brought, as the ledger keeps them. Each statement about them is prepared once.
final class VouchedRows {
  /// Which rows these are.
  let entry: VouchEntry
  /// Whether the ledger has had none of them before.
  let isNew: Bool

  private enum Query: Int, CaseIterable {
    case any, own, brought, hash, update, remove
  }

  private let connection: SQLiteConnection
  private let keyCount: Int
  private let condition: String
  private var statements = [PreparedStatement?](repeating: nil, count: Query.allCases.count)
  /// The statements that add so many rows at once.
  private var additions: [Int: PreparedStatement] = [:]

  /// The keys of rows that wait to be added together, one after the other in the format of changesets.
  private var waitingKeys: [UInt8] = []
  private var waiting: [(isOwn: Bool, hash: UInt64)] = []

  /// How many rows are added at once, where their keys are not of very many columns.
  private static let batchRows = 32
  private static let parameterLimit = 512

  init(_ entry: VouchEntry, of table: KeyedTable, isNew: Bool, on connection: borrowing SQLiteConnection) {
    self.entry = entry
    self.isNew = isNew
    self.connection = SQLiteConnection(sharing: connection)
    keyCount = table.keyPlaces.count
    condition = table.vouchCondition
  }

  private var batchRows: Int { (keyCount + 2) * Self.batchRows <= Self.parameterLimit ? Self.batchRows : 1 }

  private func statement(_ query: Query) throws -> PreparedStatement {
    if let known = statements[query.rawValue] { return known }
    let sql =
      switch query {
      case .any: "SELECT 1 FROM \(entry.name) WHERE \(condition)"
      case .own: "SELECT 1 FROM \(entry.name) WHERE \(condition) AND is_own"
      case .brought: "SELECT 1 FROM \(entry.name) WHERE \(condition) AND NOT is_own"
      case .hash: "SELECT hash FROM \(entry.name) WHERE \(condition)"
      case .update: "UPDATE \(entry.name) SET hash = ?\(keyCount + 1) WHERE \(condition)"
      case .remove: "DELETE FROM \(entry.name) WHERE \(condition)"
      }
    let made = PreparedStatement(try connection.prepare(sql, isPersistent: true))
    statements[query.rawValue] = made
    return made
  }

  // MARK: Looking up

  /// Runs a query about a row's key.
  ///
  /// - Returns: The first column of its result; nil where it has none.
  private func find(_ query: Query, _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> Int64? {
    try flush()
    let prepared = try statement(query)
    defer {
      prepared.statement.reset()
      prepared.statement.clearBindings()
    }
    try table.bindKey(row, bytes, to: prepared.statement)
    return try prepared.statement.step() ? prepared.statement.integer(at: 0) : nil
  }

  /// Whether it has a row.
  func has(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> Bool {
    try find(.any, row, bytes, of: table) != nil
  }

  /// Whether it has a row that was here before.
  func hasOwn(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> Bool {
    try find(.own, row, bytes, of: table) != nil
  }

  /// Whether it has a row that was not here before.
  func hasBrought(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> Bool {
    try find(.brought, row, bytes, of: table) != nil
  }

  /// The hash of a row as the stream has brought it; nil where it has not.
  func hash(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> UInt64? {
    try find(.hash, row, bytes, of: table).map { UInt64(bitPattern: $0) }
  }

  /// Adds the keys of all rows to a set, in the format of changesets.
  func addKeys(to keys: inout Set<[UInt8]>) throws {
    try flush()
    let columns = (0..<keyCount).map { "k\($0)" }.joined(separator: ", ")
    var found = keys
    try connection.forEachRow(of: "SELECT \(columns) FROM \(entry.name)") { row in
      var writer = ChangesetWriter()
      for column in 0..<keyCount { writer.append(column: column, of: row) }
      found.insert(writer.bytes)
    }
    keys = found
  }

  // MARK: Writing

  /// Adds a row, or changes its hash if it is there. It is written with others, at the latest by ``flush()``.
  func add(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, isOwn: Bool, hash: UInt64) throws {
    for place in table.keyPlaces {
      bytes.extracting(row[place].encoded).withUnsafeBytes { waitingKeys.append(contentsOf: $0) }
    }
    waiting.append((isOwn, hash))
    if waiting.count >= batchRows { try flush() }
  }

  /// Writes what waits.
  func flush() throws {
    guard !waiting.isEmpty else { return }
    defer {
      waiting.removeAll(keepingCapacity: true)
      waitingKeys.removeAll(keepingCapacity: true)
    }
    try waitingKeys.withRawSpan { bytes in
      var position = 0
      var rest = waiting[...]
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
          try prepared.statement.bind(Int64(row.isOwn ? 1 : 0), at: parameter)
          try prepared.statement.bind(Int64(bitPattern: row.hash), at: parameter + 1)
          parameter += 2
        }
        try prepared.statement.run()
        rest = rest.dropFirst(count)
      }
    }
  }

  private func addition(of rows: Int) throws -> PreparedStatement {
    if let known = additions[rows] { return known }
    let row = "(\(Array(repeating: "?", count: keyCount + 2).joined(separator: ", ")))"
    let made = PreparedStatement(
      try connection.prepare(
        """
        INSERT INTO \(entry.name) VALUES \(Array(repeating: row, count: rows).joined(separator: ", ")) \
        ON CONFLICT DO UPDATE SET hash = excluded.hash
        """, isPersistent: true))
    additions[rows] = made
    return made
  }

  /// Sets the hash of a row.
  func setHash(_ hash: UInt64, of row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws {
    try flush()
    let prepared = try statement(.update)
    defer { prepared.statement.clearBindings() }
    try table.bindKey(row, bytes, to: prepared.statement)
    try prepared.statement.bind(Int64(bitPattern: hash), at: keyCount)
    try prepared.statement.run()
  }

  /// Removes a row.
  func remove(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws {
    try flush()
    let prepared = try statement(.remove)
    defer { prepared.statement.clearBindings() }
    try table.bindKey(row, bytes, to: prepared.statement)
    try prepared.statement.run()
  }
}
