import BuckiaApply
import BuckiaDiff
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteFiles
import SQLiteSchemas

/// Finds the rows of shared tables that may have changed since the last share, by digests of the tables' pages.
///
/// The digest of each leaf page is kept with the table's baseline. A leaf with an equal digest holds the same
/// rows, and the same of them are in the scope, as long as that depends on each row alone. Only rows on other leaves
/// are compared. `Schemas/ledger.md` gives the conditions.
package struct ScopePageDigests {
  private struct Table {
    let definition: TableDefinition
    let basis: [UInt8]
    let key: [UInt8]
    /// The digests of the leaves, by rowid; nil for a WITHOUT ROWID table.
    let leaves: [LeafDigest]?
    /// The digests of the leaves of the key index; nil if the key is the rowid, or the index cannot be read.
    let keys: (index: KeyIndex, digests: [KeyLeafDigest])?
    /// True if the key is the rowid. The leaves then give the keys that may differ.
    let isKeyedByInteger: Bool
    /// The baseline whose digests were read, and the digests.
    let known: (baseline: Int64, entry: PageDigestEntry)?

    /// The pieces for the ledger.
    var pieces: [PageDigestEntry.Place: [UInt8]] {
      var pieces: [PageDigestEntry.Place: [UInt8]] = [:]
      for (first, digests) in LeafDigestPieces.pieces(of: leaves ?? []) { pieces[.rowID(first)] = digests }
      for (first, digests) in KeyLeafDigestPieces.pieces(of: keys?.digests ?? []) { pieces[.key(first)] = digests }
      return pieces
    }
  }

  private var tables: [TableName: Table] = [:]

  /// Reads the pages of the tables that a scope names.
  ///
  /// - Parameters:
  ///   - share: The number of the share; nil if there is none yet.
  ///   - key: The secret for the hashes of tables without digests: `PageDigestEntry.keyBytes` random bytes.
  ///   - connection: A connection inside a write transaction that has not written anything yet.
  /// - Throws: `SQLiteError`, `LedgerError`.
  package init(
    of scope: ShareScope, share: Int64?, newKey key: [UInt8], on connection: borrowing SQLiteConnection
  ) throws {
    let candidates = scope.tables.filter(\.choosesByRowAlone)
    guard !candidates.isEmpty, let pages = try CommittedPages(on: connection) else { return }
    let schema = try SchemaReader(connection)
    let baselines = try share.map { try BaselineEntry.all(of: $0, on: connection) } ?? []
    for shared in candidates {
      guard let entry = schema.entry(named: shared.name), entry.kind == .table else { continue }
      let definition = try schema.definition(of: entry)
      let baseline = baselines.first { $0.table == shared.name }?.number
      let known = try baseline.flatMap { number in
        try PageDigestEntry.read(of: number, on: connection).map { (baseline: number, entry: $0) }
      }
      let secret = known?.entry.key ?? key
      let isKeyedByInteger = try definition.isKeyedByInteger(on: connection)
      let index = isKeyedByInteger ? nil : try KeyIndex(of: definition, on: connection)
      let (leaves, keyDigests) = try pages.digests(
        of: definition.isWithoutRowID ? nil : shared.name, index, key: secret)
      guard definition.isWithoutRowID ? keyDigests != nil : leaves != nil else { continue }
      let keys = index.flatMap { index in keyDigests.map { (index: index, digests: $0) } }
      let basis = "\(pages.pageSize)\n\(entry.sql)\n\(ShareScope(tables: [shared]).json)"
      tables[shared.name] = Table(
        definition: definition, basis: Array(basis.utf8), key: secret, leaves: leaves, keys: keys,
        isKeyedByInteger: isKeyedByInteger, known: known)
    }
  }

  /// The rows that may differ from a baseline. Tables that have to be compared row by row are missing.
  ///
  /// - Throws: `SQLiteError`.
  package func candidates(
    for rows: ScopeRows, _ baseline: Baseline, on connection: borrowing SQLiteConnection
  ) throws -> [TableName: CandidateRows] {
    var candidates: [TableName: CandidateRows] = [:]
    for (name, table) in tables where rows.choosesByRowAlone(name) {
      guard let known = table.known, let entry = baseline.entry(of: name), known.baseline == entry.number,
        known.entry.basis == table.basis
      else { continue }
      let older = DigestedState(known.entry.pieces)
      candidates[name] = try Self.candidates(of: table, since: older, entry, on: connection)
    }
    return candidates
  }

  private static func candidates(
    of table: Table, since older: DigestedState?, _ baseline: BaselineEntry, on connection: borrowing SQLiteConnection
  ) throws -> CandidateRows? {
    guard let older else { return nil }
    let changed = table.leaves.map { KeyIntervals(from: older.leaves, to: $0) }
    if table.isKeyedByInteger { return changed.map { $0.ranges.isEmpty ? .some(.none) : .within($0) } ?? nil }
    if let changed, changed.ranges.isEmpty, older.changedKeys.isEmpty { return .some(.none) }
    guard let (index, keys) = table.keys, !older.keys.isEmpty else { return nil }
    guard let (before, now) = KeyLeafDigest.differences(of: older.keys, keys) else { return nil }
    if table.leaves == nil, before.isEmpty, now.isEmpty, older.changedKeys.isEmpty { return .some(.none) }
    if let leaves = table.leaves {
      let known = Set(older.leaves.compactMap(\.hash))
      guard KeyLeafDigest.isFew(leaves.count { !known.contains($0.hash) }, of: leaves.count) else { return nil }
    }
    let listed = try CandidateKeys(for: baseline.number, index, on: connection)
    do {
      let name = TableName(table.definition.name)
      if let changed {
        guard let rowID = table.definition.rowIDName else { return nil }
        try listed.add(changed, by: rowID, of: name)
      }
      try listed.add(now, of: name)
      try listed.add(before, of: baseline.name)
      for key in older.changedKeys { try listed.add(key) }
    } catch is ChangesetError {
      // The record is damaged: all rows are compared.
      return nil
    }
    return .listed(in: listed.list)
  }

  /// Stores the digests with a baseline that has been moved to the present rows, and deletes those of an earlier state.
  ///
  /// - Throws: `SQLiteError`.
  package func write(for rows: ScopeRows, _ baseline: Baseline, on connection: borrowing SQLiteConnection) throws {
    for name in baseline.tables {
      guard let number = baseline.entry(of: name)?.number else { continue }
      guard let table = tables[name], rows.choosesByRowAlone(name) else {
        try PageDigestEntry.remove(of: number, on: connection)
        continue
      }
      try CandidateKeys.remove(for: number, on: connection)
      // A new baseline may have the number of a deleted one, whose digests are deleted, too.
      let known =
        try table.known?.baseline == number && PageDigestEntry.exists(of: number, on: connection) ? table.known : nil
      try PageDigestEntry(basis: table.basis, key: table.key, pieces: table.pieces)
        .write(of: number, over: known?.entry, on: connection)
      if let left = try rows.leftOutKeys(of: table.definition, isKeyedByInteger: table.isKeyedByInteger) {
        // Rows that were left out are compared again, because the rows that they refer to may change.
        try Self.forget(left, of: number, on: connection)
      }
    }
  }

  // MARK: Rows that were changed in a baseline

  /// The keys of rows that a received diff has changed in a baseline.
  struct ChangedKeys {
    /// The most keys that are kept. With more changed rows, all rows are compared.
    private static let limit = 1 << 16

    fileprivate private(set) var integers: Set<Int64> = []
    fileprivate private(set) var others: Set<[UInt8]> = []

    /// Adds a key that is the rowid.
    mutating func add(_ key: Int64) { if !areMany { integers.insert(key) } }

    /// Adds the key of a row.
    ///
    /// - Parameter key: Its values, in the format of changesets.
    mutating func add(_ key: [UInt8]) { if !areMany { others.insert(key) } }

    /// Marks all rows as changed.
    mutating func addAll() { isAll = true }

    private var isAll = false

    fileprivate var areMany: Bool { isAll || integers.count + others.count > Self.limit }
  }

  /// Clears the hashes of the leaves whose rows have been changed in a baseline without being shared, or records the keys
  /// of these rows.
  ///
  /// - Parameters:
  ///   - keys: The keys of the rows.
  ///   - baseline: The number of the baseline.
  /// - Throws: `SQLiteError`.
  static func forget(_ keys: ChangedKeys, of baseline: Int64, on connection: borrowing SQLiteConnection) throws {
    guard let known = try PageDigestEntry.read(of: baseline, on: connection) else { return }
    var pieces = known.pieces
    if !keys.integers.isEmpty {
      let leaves = LeafDigestPieces.forgetting(keys.integers, in: DigestedState.leafPieces(of: pieces))
      pieces = pieces.filter { if case .rowID = $0.key { false } else { true } }
      for (first, digests) in leaves { pieces[.rowID(first)] = digests }
    }
    for key in keys.others { pieces[.changedKey(key)] = [] }
    let isFollowed = keys.others.isEmpty || pieces.keys.contains { if case .key = $0 { true } else { false } }
    guard isFollowed, !keys.areMany else { return try PageDigestEntry.remove(of: baseline, on: connection) }
    try PageDigestEntry(basis: known.basis, key: known.key, pieces: pieces).write(
      of: baseline, over: known, on: connection)
  }
}

/// The digests of a table at the state of its baseline.
private struct DigestedState {
  let leaves: [(firstRowID: Int64, hash: PageHash?)]
  let keys: [KeyLeafDigest]
  let changedKeys: [[UInt8]]

  /// - Returns: nil if the pieces are damaged.
  init?(_ pieces: [PageDigestEntry.Place: [UInt8]]) {
    var keyPieces: [[UInt8]: [UInt8]] = [:]
    var changedKeys: [[UInt8]] = []
    for (place, bytes) in pieces {
      switch place {
      case .rowID: break
      case .key(let first): keyPieces[first] = bytes
      case .changedKey(let key): changedKeys.append(key)
      }
    }
    guard let leaves = LeafDigestPieces.digests(in: Self.leafPieces(of: pieces)),
      let keys = KeyLeafDigestPieces.digests(in: keyPieces)
    else { return nil }
    self.leaves = leaves
    self.keys = keys
    self.changedKeys = changedKeys
  }

  static func leafPieces(of pieces: [PageDigestEntry.Place: [UInt8]]) -> [Int64: [UInt8]] {
    var found: [Int64: [UInt8]] = [:]
    for case (.rowID(let first), let bytes) in pieces { found[first] = bytes }
    return found
  }
}

extension SharedTable {
  /// The prefix of parameters that the comparison adds to a condition.
  private static let reservedParameters = "buckia_"

  /// True if each row of the table is in the scope or not regardless of other rows.
  fileprivate var choosesByRowAlone: Bool {
    guard parents.isEmpty else { return false }
    return condition.map { SQLReferences.areRowAlone(in: $0, withoutParameters: Self.reservedParameters) } ?? true
  }
}

extension TableDefinition {
  /// True if the key is the rowid under another name.
  fileprivate func isKeyedByInteger(on connection: borrowing SQLiteConnection) throws -> Bool {
    guard !isKeyedByRowID, !isWithoutRowID, primaryKey.count == 1 else { return false }
    // All other keys have an index, even that of `INTEGER PRIMARY KEY DESC`.
    return try connection.integer(
      "SELECT 1 FROM pragma_index_list(?1, 'main') WHERE origin = 'pk'", binding: [name]) == nil
  }
}

/// Lists the keys of the rows of a table that may differ from its baseline, in a TEMP table.
final class CandidateKeys {
  let list: KeyList
  private let connection: SQLiteConnection
  private let names: [String]

  /// The name of the list for a baseline.
  static func name(for baseline: Int64) -> String { "\(SQLiteConnection.temporaryPrefix)candidates_\(baseline)" }

  /// Creates an empty list.
  ///
  /// - Throws: `SQLiteError`.
  init(for baseline: Int64, _ index: KeyIndex, on connection: borrowing SQLiteConnection) throws {
    list = KeyList(name: Self.name(for: baseline), columnCount: index.columns.count)
    self.connection = SQLiteConnection(sharing: connection)
    names = index.columns.map { SQLText.identifier($0) }
    // Keys that are equal in the table must be equal in the list.
    let columns = zip(list.columns, index.collations).map { "\($0) COLLATE \(SQLText.identifier($1)) NOT NULL" }
    try Self.remove(for: baseline, on: connection)
    try connection.execute(
      """
      CREATE TABLE \(list.sql)(\(columns.joined(separator: ", ")), PRIMARY KEY (\(list.columns.joined(separator: ", ")))) \
      WITHOUT ROWID
      """)
  }

  /// Removes the list for a baseline.
  ///
  /// - Throws: `SQLiteError`.
  static func remove(for baseline: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.execute("DROP TABLE IF EXISTS temp.\(name(for: baseline))")
  }

  /// Adds the keys of the rows with some rowids, except keys with NULL.
  ///
  /// - Parameter rowID: A name of the rowid in queries.
  /// - Throws: `SQLiteError`.
  func add(_ rows: KeyIntervals, by rowID: String, of table: TableName) throws {
    let adding = try connection.prepare("\(insertion(of: table)) WHERE \(rowID) BETWEEN ?1 AND ?2")
    for range in rows.ranges {
      try adding.bind(range.lowerBound, at: 0)
      try adding.bind(range.upperBound, at: 1)
      try adding.run()
    }
  }

  /// Adds the keys of a table within spans.
  ///
  /// - Throws: `SQLiteError`; `ChangesetError` if the keys of a span are malformed.
  func add(_ spans: [KeySpan], of table: TableName) throws {
    for span in spans {
      var terms: [String] = []
      var bounds: [[UInt8]] = []
      for (bound, comparison) in [(span.lower, ">="), (span.upper, "<")] {
        guard let bound else { continue }
        let parameters = names.indices.map { "?\(bounds.count * names.count + $0 + 1)" }.joined(separator: ", ")
        terms.append("(\(names.joined(separator: ", "))) \(comparison) (\(parameters))")
        bounds.append(bound)
      }
      let condition = terms.isEmpty ? "" : " WHERE \(terms.joined(separator: " AND "))"
      try run(insertion(of: table) + condition, bounds)
    }
  }

  /// Adds a key.
  ///
  /// - Parameter key: Its values, in the format of changesets.
  /// - Throws: `SQLiteError`; `ChangesetError` if the key is malformed.
  func add(_ key: [UInt8]) throws {
    try run(
      "INSERT OR IGNORE INTO \(list.sql) VALUES (\(names.indices.map { "?\($0 + 1)" }.joined(separator: ", ")))", [key])
  }

  private func insertion(of table: TableName) -> String {
    "INSERT OR IGNORE INTO \(list.sql) SELECT \(names.joined(separator: ", ")) FROM main.\(table.quoted)"
  }

  private func run(_ sql: String, _ keys: [[UInt8]]) throws {
    let prepared = try connection.cached(sql)
    defer { prepared.statement.clearBindings() }
    for (index, key) in keys.enumerated() {
      let bytes = key.span.bytes
      var position = 0
      for column in names.indices {
        try prepared.statement.bind(
          ValueSlice(reading: bytes, at: &position), in: bytes, at: index * names.count + column)
      }
    }
    try prepared.statement.run()
  }
}
