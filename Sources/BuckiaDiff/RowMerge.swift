import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The `rows` method: reads the table of both sources in the order of its key, and merges the two scans.
///
/// Values are equal if their storage class and bytes are: 1 and 1.0 differ, and so do `a` and `A` in a NOCASE column. A
/// row whose key has changed in this way is a DELETE and an INSERT.
struct RowMerge {
  private let pair: TablePair
  private let collation: String
  private let changes: ChangeCollector
  private let progress: ProgressReporter
  /// The rows that may differ; nil for all.
  private let candidates: CandidateRows?
  /// The columns with text that is not valid UTF-16 in a UTF-16 database. It is sent as SQLite converts it.
  private(set) var invalidText: Set<Int> = []

  /// - Parameters:
  ///   - pair: The table in both sources.
  ///   - collation: The collating sequence that orders text: BINARY if both databases store it as UTF-8.
  ///   - candidates: The rows that may differ; nil for all.
  ///   - changes: Gets the difference.
  init(
    _ pair: TablePair, collation: String, among candidates: CandidateRows? = nil, into changes: ChangeCollector,
    _ progress: ProgressReporter
  ) {
    self.candidates = pair.older == nil ? nil : candidates
    self.pair = pair
    self.collation = collation
    self.changes = changes
    self.progress = progress
  }

  /// Writes the difference into the collector.
  mutating func run(older: DatabaseSnapshot, newer: DatabaseSnapshot) throws {
    if candidates == .some(.none) { return }
    guard let new = try scan(.keyed, of: pair.newer, in: newer) else { return }
    if let table = pair.older, let old = try scan(.keyed, of: table, in: older) {
      if case .within(let intervals) = candidates {
        for range in intervals.ranges {
          try old.restart(within: range)
          try new.restart(within: range)
          try merge(old, new)
        }
      } else {
        try merge(old, new)
      }
      invalidText.formUnion(old.invalidText)
    } else {
      var counter = RowCounter(progress)
      while try new.step() {
        try changes.add(.insert, new)
        try counter.count()
      }
      counter.finish()
    }
    invalidText.formUnion(new.invalidText)
    try compareRowsWithNullKey(older, newer)
  }

  private func scan(
    _ part: RowScan.Part, of table: SourceTable, in snapshot: DatabaseSnapshot
  ) throws -> RowScan? {
    try RowScan(
      part, of: table, in: snapshot, pair, collation: collation, among: part == .keyed ? candidates : nil)
  }

  private func merge(_ old: borrowing RowScan, _ new: borrowing RowScan) throws {
    let key = pair.identity
    let canDiffer = !pair.isIdentifiedByContent
    let changes = changes
    var counter = RowCounter(progress)
    var hasOld = try old.step()
    var hasNew = try new.step()
    while hasOld || hasNew {
      try counter.count()
      var isSameKey = true
      let order = !hasOld ? 1 : !hasNew ? -1 : Self.keyOrder(old, new, key, &isSameKey)
      if order == 0, isSameKey {
        if canDiffer { try changes.addUpdate(from: old, to: new) }
      } else {
        if order <= 0 { try changes.add(.delete, old) }
        if order >= 0 { try changes.add(.insert, new) }
      }
      if order <= 0 { hasOld = try old.step() }
      if order >= 0 { hasNew = try new.step() }
    }
    counter.finish()
  }

  /// - Parameter isSame: Is set to false for keys that are equal to SQLite, and different.
  @inline(__always)
  private static func keyOrder(
    _ old: borrowing RowScan, _ new: borrowing RowScan, _ key: [Int], _ isSame: inout Bool
  ) -> Int {
    for column in key {
      let (mine, theirs) = (old.value(column), new.value(column))
      let order = mine.order(against: theirs)
      if order != 0 { return order }
      if !mine.isIdentical(to: theirs) { isSame = false }
    }
    return 0
  }

  private mutating func compareRowsWithNullKey(_ older: DatabaseSnapshot, _ newer: DatabaseSnapshot) throws {
    var rows = RowMultiset(of: pair.definition)
    if let table = pair.older, let scan = try scan(.nullKey, of: table, in: older) {
      try countRows(of: scan, .delete, in: &rows)
    }
    if let scan = try scan(.nullKey, of: pair.newer, in: newer) { try countRows(of: scan, .insert, in: &rows) }
    try rows.write(into: changes)
  }

  private mutating func countRows(
    of scan: borrowing RowScan, _ operation: ChangeOperation, in rows: inout RowMultiset
  ) throws {
    var counter = RowCounter(progress)
    while try scan.step() {
      try rows.add(operation, scan)
      try counter.count()
    }
    counter.finish()
    invalidText.formUnion(scan.invalidText)
  }
}

/// Rows with NULL in the key, which nothing but their content identifies. A content that one side has more often than the
/// other travels as DELETEs or INSERTs of whole rows.
struct RowMultiset {
  /// The number of additional rows with each content in the newer database.
  private var surplus: [[UInt8]: Int] = [:]
  /// The contents in the order in which they were met.
  private var order: [[UInt8]] = []

  private let encoder: ChangeEncoder

  init(of table: TableDefinition) { encoder = ChangeEncoder(of: table) }

  /// Counts a row.
  ///
  /// - Parameter operation: DELETE for a row of the older database, INSERT for one of the newer.
  mutating func add<Row: RowValues & ~Copyable>(_ operation: ChangeOperation, _ row: borrowing Row) throws {
    var writer = ChangesetWriter()
    try encoder.append(row, to: &writer)
    let content = writer.bytes
    if surplus[content] == nil { order.append(content) }
    surplus[content, default: 0] += operation == .insert ? 1 : -1
  }

  /// Writes the difference when all rows have been counted.
  func write(into changes: ChangeCollector) throws {
    for content in order {
      let difference = surplus[content] ?? 0
      try content.withUnsafeBytes { values in
        for _ in 0..<abs(difference) { try changes.add(difference < 0 ? .delete : .insert, encoded: values) }
      }
    }
  }
}
