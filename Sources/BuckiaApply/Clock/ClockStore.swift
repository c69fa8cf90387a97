import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The tables of one clock: the row versions of single rows, and of runs of neighbouring rows with equal row versions.
///
/// A row's own entry takes precedence over a run that contains its key. Runs do not overlap, and apply only to rows
/// that exist.
final class ClockStore {
  private let number: Int64
  private let key: ClockKey
  private let keys: ClockKeys
  private let table: TableName
  /// The key columns of the user's table, as SQL.
  private let userKey: [String]
  private let connection: SQLiteConnection
  /// True if there may be entries of rows or runs.
  private(set) var hasRows: Bool
  private(set) var hasRuns: Bool

  /// - Parameters:
  ///   - number: The number of the clock.
  ///   - local: The user's table.
  ///   - keys: The places of the key in changes.
  init(
    _ number: Int64, _ key: ClockKey, of local: TableDefinition, _ keys: ClockKeys,
    on connection: borrowing SQLiteConnection
  ) throws {
    self.number = number
    self.key = key
    self.keys = keys
    table = TableName(local.name)
    userKey = local.keySQL
    self.connection = SQLiteConnection(sharing: connection)
    hasRows = try connection.cachedInteger("SELECT 1 FROM main.buckia_clock_\(number) LIMIT 1") != nil
    hasRuns = try connection.cachedInteger("SELECT 1 FROM main.buckia_clock_\(number)_run LIMIT 1") != nil
  }

  private var rowTable: String { "main.buckia_clock_\(number)" }
  private var runTable: String { "main.buckia_clock_\(number)_run" }

  private func parameters(from first: Int) -> [String] { (first..<(first + keys.count)).map { "?\($0)" } }
  private func equal(_ names: [String], from first: Int = 1) -> String {
    zip(names, parameters(from: first)).map { "\($0) = \($1)" }.joined(separator: " AND ")
  }

  private func prepare(_ sql: String) throws -> PreparedStatement {
    try connection.cached(sql)
  }

  private lazy var selection = Result {
    try prepare("SELECT row_versions FROM \(rowTable) WHERE \(equal(key.names()))")
  }
  private lazy var runSelection = Result {
    let (first, last) = (ClockKey.row(key.names("f")), ClockKey.row(key.names("l")))
    let parameters = ClockKey.row(parameters(from: 1))
    let order = key.names("f").map { "\($0) DESC" }.joined(separator: ", ")
    return try prepare(
      "SELECT row_versions, \(last) >= \(parameters) FROM \(runTable) WHERE \(first) <= \(parameters) ORDER BY \(order) LIMIT 1"
    )
  }
  private lazy var replacement = Result {
    let names = key.names().joined(separator: ", ")
    return try prepare(
      "REPLACE INTO \(rowTable)(\(names), row_versions) VALUES (\(parameters(from: 1).joined(separator: ", ")), ?\(keys.count + 1))"
    )
  }
  private lazy var deletion = Result { try prepare("DELETE FROM \(rowTable) WHERE \(equal(key.names()))") }
  private lazy var between = Result {
    let key = ClockKey.row(userKey)
    return try prepare(
      """
      SELECT 1 FROM main.\(table.quoted) WHERE \(key) > \(ClockKey.row(parameters(from: 1)))
        AND \(key) < \(ClockKey.row(parameters(from: keys.count + 1))) LIMIT 1
      """)
  }

  // MARK: Rows

  /// The row versions in a row's own entry.
  func row(_ change: DecodedChange, _ bytes: RawSpan) throws -> RowVersionList? {
    guard hasRows else { return nil }
    let query = try selection.get()
    defer { query.statement.reset() }
    try keys.bind(change, bytes, to: query.statement)
    return try query.statement.step() ? RowVersionList(query.statement, at: 0) : nil
  }

  /// The row versions in the own entry of the row with a key.
  func row(_ key: ClockKeyRecord) throws -> RowVersionList? {
    guard hasRows else { return nil }
    let query = try selection.get()
    defer { query.statement.reset() }
    try key.bind(to: query.statement, from: 0)
    return try query.statement.step() ? RowVersionList(query.statement, at: 0) : nil
  }

  /// The row versions of the run that contains a key.
  func run(_ key: ClockKeyRecord) throws -> RowVersionList? {
    guard hasRuns else { return nil }
    let query = try runSelection.get()
    defer { query.statement.reset() }
    try key.bind(to: query.statement, from: 0)
    guard try query.statement.step(), query.statement.integer(at: 1) != 0 else { return nil }
    return RowVersionList(query.statement, at: 0)
  }

  /// The row versions of the run that contains the key of a change.
  func run(_ change: DecodedChange, _ bytes: RawSpan) throws -> RowVersionList? {
    guard hasRuns else { return nil }
    let query = try runSelection.get()
    defer { query.statement.reset() }
    try keys.bind(change, bytes, to: query.statement)
    guard try query.statement.step(), query.statement.integer(at: 1) != 0 else { return nil }
    return RowVersionList(query.statement, at: 0)
  }

  /// Writes a row's own entry. A key that no row can have, such as a text for a rowid, gets none.
  func write(_ list: RowVersionList, _ change: DecodedChange, _ bytes: RawSpan) throws {
    let statement = try replacement.get()
    try keys.bind(change, bytes, to: statement.statement)
    try list.bind(to: statement.statement, at: keys.count)
    if try statement.statement.attempt() == nil { hasRows = true }
  }

  /// Writes the own entry of the row with a key.
  func write(_ list: RowVersionList, _ key: ClockKeyRecord) throws {
    let statement = try replacement.get()
    try key.bind(to: statement.statement, from: 0)
    try list.bind(to: statement.statement, at: keys.count)
    if try statement.statement.attempt() == nil { hasRows = true }
  }

  /// Deletes the row's own entry.
  func remove(_ key: ClockKeyRecord) throws {
    let statement = try deletion.get()
    try key.bind(to: statement.statement, from: 0)
    try statement.statement.run()
  }

  // MARK: Runs

  /// True if no row of the user's table lies between a key and that of a change.
  func areNeighbours(_ first: ClockKeyRecord, _ change: DecodedChange, _ bytes: RawSpan) throws -> Bool {
    let query = try between.get()
    defer { query.statement.reset() }
    try first.bind(to: query.statement, from: 0)
    try keys.bind(change, bytes, to: query.statement, from: keys.count)
    return try !query.statement.step()
  }

  /// Writes a run in which each row has these row versions, in place of all earlier entries.
  func writeRun(_ list: RowVersionList, from first: ClockKeyRecord, to last: ClockKeyRecord) throws {
    let names = key.names()
    if hasRows {
      let same = zip(userKey, names).map { "u.\($0) = c.\($1)" }.joined(separator: " AND ")
      let row = ClockKey.row(names.map { "c.\($0)" })
      let clear = try connection.cached(
        """
        DELETE FROM \(rowTable) AS c WHERE \(row) >= \(ClockKey.row(parameters(from: 1)))
          AND \(row) <= \(ClockKey.row(parameters(from: keys.count + 1)))
          AND EXISTS (SELECT 1 FROM main.\(table.quoted) AS u WHERE \(same))
        """)
      try bind(first, last, to: clear)
      try clear.statement.run()
    }
    if hasRuns { try cut(from: first, to: last) }
    try insertRun(list, from: first, to: last)
  }

  private func bind(_ first: ClockKeyRecord, _ last: ClockKeyRecord, to prepared: PreparedStatement) throws {
    try first.bind(to: prepared.statement, from: 0)
    try last.bind(to: prepared.statement, from: keys.count)
  }

  /// Removes keys from the runs that contain them. The rest of a run ends at the next existing row, because runs apply
  /// only to existing rows.
  private func cut(from first: ClockKeyRecord, to last: ClockKeyRecord) throws {
    let (start, end) = (ClockKey.row(key.names("f")), ClockKey.row(key.names("l")))
    let (from, to) = (ClockKey.row(parameters(from: 1)), ClockKey.row(parameters(from: keys.count + 1)))
    let query = try connection.cached(
      """
      SELECT *, \(start) < \(from), \(end) > \(to) FROM \(runTable) WHERE \(start) <= \(to) AND \(end) >= \(from)
      """)
    try bind(first, last, to: query)
    var found: [(first: ClockKeyRecord, last: ClockKeyRecord, list: RowVersionList, hasHead: Bool, hasTail: Bool)] = []
    while try query.statement.step() {
      guard let list = RowVersionList(query.statement, at: 2 * keys.count) else { continue }
      found.append(
        (
          record(of: query.statement, from: 0), record(of: query.statement, from: keys.count), list,
          query.statement.integer(at: 2 * keys.count + 1) != 0, query.statement.integer(at: 2 * keys.count + 2) != 0
        ))
    }
    query.statement.reset()
    for run in found {
      let delete = try connection.cached("DELETE FROM \(runTable) WHERE \(equal(key.names("f")))")
      try run.first.bind(to: delete.statement, from: 0)
      try delete.statement.run()
    }
    for run in found {
      if run.hasHead, let before = try neighbour(of: first, isBefore: true, upTo: run.first) {
        try insertRun(run.list, from: run.first, to: before)
      }
      if run.hasTail, let after = try neighbour(of: last, isBefore: false, upTo: run.last) {
        try insertRun(run.list, from: after, to: run.last)
      }
    }
  }

  /// The key of the neighbouring row, up to another key; nil if there is none.
  private func neighbour(of key: ClockKeyRecord, isBefore: Bool, upTo limit: ClockKeyRecord) throws -> ClockKeyRecord? {
    let user = ClockKey.row(userKey)
    let order = userKey.map { isBefore ? "\($0) DESC" : $0 }.joined(separator: ", ")
    let query = try connection.cached(
      """
      SELECT \(userKey.joined(separator: ", ")) FROM main.\(table.quoted)
      WHERE \(user) \(isBefore ? "<" : ">") \(ClockKey.row(parameters(from: 1)))
        AND \(user) \(isBefore ? ">=" : "<=") \(ClockKey.row(parameters(from: keys.count + 1)))
      ORDER BY \(order) LIMIT 1
      """)
    defer { query.statement.reset() }
    try bind(key, limit, to: query)
    return try query.statement.step() ? record(of: query.statement, from: 0) : nil
  }

  private func insertRun(_ list: RowVersionList, from first: ClockKeyRecord, to last: ClockKeyRecord) throws {
    let insert = try connection.cached(
      "INSERT INTO \(runTable) VALUES (\((1...(2 * keys.count + 1)).map { "?\($0)" }.joined(separator: ", ")))")
    try bind(first, last, to: insert)
    try list.bind(to: insert.statement, at: 2 * keys.count)
    try insert.statement.run()
    hasRuns = true
  }

  private func record(of row: borrowing SQLiteStatement, from start: Int) -> ClockKeyRecord {
    ClockKeyRecord(bytes: row.record(of: start..<(start + keys.count)))
  }
}

/// The places of the key in the changes of a diff.
struct ClockKeys {
  /// The key columns of the changes, in the order of the key.
  let columns: [Int]
  /// The affinity of each key column; empty if the order of the keys is not that of their bytes.
  private let affinities: [Affinity]

  /// - Parameters:
  ///   - key: The key of the clock.
  ///   - places: The place in the local layout of each column of the changes.
  ///   - storesUTF16: True if the database stores text as UTF-16, which sorts differently.
  init(_ key: ClockKey, places: [Int], storesUTF16: Bool) {
    columns = key.places.compactMap { places.firstIndex(of: $0) }
    let hasText = key.affinities.contains { $0 == .text || $0 == .blob }
    affinities = key.sortsByBytes && !(storesUTF16 && hasText) ? key.affinities : []
  }

  /// The number of key columns.
  var count: Int { columns.count }

  /// Binds the key of a changed row.
  func bind(
    _ change: DecodedChange, _ bytes: RawSpan, to statement: borrowing SQLiteStatement, from start: Int = 0
  ) throws {
    for (index, column) in columns.enumerated() {
      try statement.bind(change.row(column), in: bytes, at: start + index)
    }
  }

  /// The key of a changed row, as a record.
  func record(of change: DecodedChange, _ bytes: RawSpan, into writer: inout ChangesetWriter) {
    writer.removeAll()
    for column in columns { writer.append(change.row(column), of: bytes) }
  }

  /// True if the order of the table is known for the key of a change: its column stores the value unchanged, and sorts
  /// it by its bytes.
  func isOrdered(_ change: DecodedChange, _ bytes: RawSpan) -> Bool {
    guard !affinities.isEmpty else { return false }
    for (index, column) in columns.enumerated() {
      let isOrdered =
        switch change.row(column).kind {
        case .integer: affinities[index] != .text && affinities[index] != .real
        case .text: affinities[index] == .text || affinities[index] == .blob
        case .blob: true
        case .real, .null, .undefined: false
        }
      guard isOrdered else { return false }
    }
    return true
  }

  /// True if a key comes before that of a change.
  func precedes(_ key: ClockKeyRecord, _ change: DecodedChange, _ bytes: RawSpan) -> Bool {
    key.bytes.withRawSpan { own in
      var position = 0
      for column in columns {
        let mine = ValueSlice(verified: own, at: &position)
        let theirs = change.row(column)
        if mine.kind != theirs.kind { return mine.kind.rank < theirs.kind.rank }
        if mine.kind == .integer {
          let (one, other) = (mine.integer(in: own), theirs.integer(in: bytes))
          if one != other { return one < other }
          continue
        }
        let order = own.extracting(mine.payloadRange).byteOrder(against: bytes.extracting(theirs.payloadRange))
        if order != 0 { return order < 0 }
      }
      return false
    }
  }

  /// True if the key of a change is the integer after another.
  func follows(_ change: DecodedChange, _ key: ClockKeyRecord, _ bytes: RawSpan) -> Bool {
    guard columns.count == 1, let last = key.integer, change.row(columns[0]).kind == .integer, last < .max else {
      return false
    }
    return change.row(columns[0]).integer(in: bytes) == last + 1
  }
}

extension ValueKind {
  /// The order of values of different classes (<https://sqlite.org/datatype3.html#sort_order>).
  fileprivate var rank: Int {
    switch self {
    case .undefined, .null: 0
    case .integer, .real: 1
    case .text: 2
    case .blob: 3
    }
  }
}
