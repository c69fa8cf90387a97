import BuckiaLedger
import SQLiteConnections
import SQLiteSchemas

/// New keys for rows of a diff whose own keys belong to other rows.
///
/// They count up from the greatest key in use below a limit. The application's keys stay below the limit, too, and
/// neither a row of a diff nor a name in it uses the keys up. If the last key below the limit is in use, any free key
/// is taken.
final class NewKeys {
  /// The upper limit of new keys.
  static let limit: Int64 = 1 << 62
  /// The start of the range for keys that are not counted up; JavaScript can represent these integers.
  private static let scattered: Int64 = 1 << 52

  private let baselineKeys: BaselineKeys
  private let hash: SipHash
  private let connection: SQLiteConnection
  private var last: [TableName: Int64] = [:]
  private var attempts: UInt64 = 0

  /// - Parameter seed: Bytes that the author of the diff cannot choose, such as a digest of it. The keys that are not
  ///   counted up follow from them.
  init(_ baselineKeys: BaselineKeys, seed: [UInt8], on connection: borrowing SQLiteConnection) {
    self.baselineKeys = baselineKeys
    hash = SipHash(key: Array(seed.prefix(16)))
    self.connection = SQLiteConnection(sharing: connection)
  }

  /// The next key.
  ///
  /// - Parameters:
  ///   - table: The table.
  ///   - others: Keys below ``limit`` in the diff, read once.
  ///   - isTaken: True for a key that a row has.
  /// - Throws: `SQLiteError`; what the closures throw.
  func next(
    in table: KeyedTable, behind others: () throws -> [Int64], unless isTaken: (Int64) throws -> Bool
  ) throws -> Int64 {
    let last = try self.last[table.name] ?? others().reduce(greatest(of: table)) { max($0, $1) }
    self.last[table.name] = last
    if last < Self.limit - 1 {
      self.last[table.name] = last + 1
      return last + 1
    }
    return try scattered(unless: isTaken)
  }

  /// A key that is not counted up, so that the application hardly gives it to a row.
  ///
  /// - Parameter isTaken: True for a key that a row has.
  /// - Throws: What the closure throws.
  func scattered(unless isTaken: (Int64) throws -> Bool) rethrows -> Int64 {
    while true {
      attempts += 1
      let key = hash.hash(Sum128(), attempts).low % UInt64(Self.scattered)
      let candidate = Self.scattered + Int64(key)
      if try !isTaken(candidate) { return candidate }
    }
  }

  /// The greatest key below ``limit`` that is in use here, or belonged to a row whose deletion is known.
  private func greatest(of table: KeyedTable) throws -> Int64 {
    let column = table.local.keySQL[0]
    let sequence = "SELECT seq FROM main.sqlite_sequence WHERE name = ?1 COLLATE NOCASE"
    let greatest = [
      table.local.isAutoIncrement ? try connection.cachedInteger(sequence, table.local.name) : 0,
      try connection.cachedInteger("SELECT max(\(column)) FROM \(table.sql) WHERE \(column) < \(Self.limit)"),
      try OriginKeyEntry.greatest(below: Self.limit, in: table.name, on: connection),
      // Keys that are not negative sort like their numbers.
      try Tombstones.last(before: IntegerKey.encoded(Self.limit), of: table.name, on: connection)
        .flatMap { IntegerKey.decoded($0) },
      try RowClocks.number(of: table.local, on: connection).flatMap {
        try connection.cachedInteger("SELECT max(k0) FROM main.buckia_clock_\($0) WHERE k0 < \(Self.limit)")
      },
      try baselineKeys.greatest(below: Self.limit, of: table),
    ]
    return greatest.reduce(0) { max($0, $1 ?? 0) }
  }
}

/// The keys in the baselines of shares. They include rows that were deleted here, until the shares have sent the
/// deletion.
final class BaselineKeys {
  private struct Baseline {
    let name: String
    let column: String
    let greatest: Int64

    var lookup: String { "SELECT 1 FROM \(name) WHERE \(column) = ?1" }
  }

  private let connection: SQLiteConnection
  private var baselines: [TableName: [Baseline]] = [:]

  init(on connection: borrowing SQLiteConnection) { self.connection = SQLiteConnection(sharing: connection) }

  /// True if recipients may name a row by an integer key because they got it from here.
  ///
  /// - Throws: `SQLiteError`.
  func contain(_ key: Int64, of table: KeyedTable) throws -> Bool {
    for baseline in try baselines(of: table) where key <= baseline.greatest {
      if try table.withRow(forKey: key, { try table.finds(baseline.lookup, $0, $1, on: connection) }) { return true }
    }
    return false
  }

  /// True if recipients have got rows of a table.
  ///
  /// - Throws: `SQLiteError`.
  func exist(of table: KeyedTable) throws -> Bool { try !baselines(of: table).isEmpty }

  /// The greatest key of a table below a limit; nil if there is none.
  ///
  /// - Throws: `SQLiteError`.
  func greatest(below limit: Int64, of table: KeyedTable) throws -> Int64? {
    try baselines(of: table).compactMap { baseline in
      guard baseline.greatest >= limit else { return baseline.greatest }
      return try connection.cachedInteger(
        "SELECT max(\(baseline.column)) FROM \(baseline.name) WHERE \(baseline.column) < \(limit)")
    }.max()
  }

  /// The baselines that have rows of a table.
  private func baselines(of table: KeyedTable) throws -> [Baseline] {
    if let known = baselines[table.name] { return known }
    var found: [Baseline] = []
    if table.local.primaryKey.count == 1 {
      let column = table.local.columns[table.local.primaryKey[0]].name
      let name = SQLText.identifier(column)
      for entry in try BaselineEntry.all(ofRowsIn: table.name, on: connection) {
        // The key may have been renamed since.
        guard try entry.hasColumn(column, on: connection) else { continue }
        let baseline = "main.\(entry.name.quoted)"
        if let greatest = try connection.cachedInteger("SELECT max(\(name)) FROM \(baseline)") {
          found.append(Baseline(name: baseline, column: name, greatest: greatest))
        }
      }
    }
    baselines[table.name] = found
    return found
  }
}
