import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Writes the conflicts of one diff into the database, with all versions of each row.
///
/// Rows are kept as records of the changeset format, exact to the byte, beside a layout that names their columns. Records
/// are gathered and written several at a time, because conflicts can come by the million: ``flush()`` writes the last.
final class ConflictLog {
  /// One record that waits to be written; its rows and words are ranges of the buffer.
  private struct Record {
    let layout: Int64
    let kind: StaticString
    let outcome: StaticString
    let base: Range<Int>?
    let local: Range<Int>?
    let incoming: Range<Int>?
    let reason: Range<Int>?
  }

  private struct LayoutName: Hashable {
    let table: TableName
    let columns: [String]
  }

  /// How many records one statement writes.
  private static let batchSize = 16
  /// From how many gathered bytes on nothing more is waited for: rows can be large.
  private static let byteLimit = 256 << 10
  /// Up to how much memory the buffer keeps for the next records.
  private static let keptCapacity = 1 << 20

  /// How many parameters each record takes.
  private static let parameters = 8
  private static let insertOne = insertion(of: 1)
  private static let insertBatch = insertion(of: batchSize)

  private let entry: Int64
  private var buffer = ChangesetWriter()
  private var records: [Record] = []
  private var layouts: [LayoutName: Int64] = [:]
  /// How often records have been taken back: the numbers of layouts from before may be gone.
  private var rewinds = 0

  init(entry: Int64) { self.entry = entry }

  private static func insertion(of count: Int) -> String {
    let row = "(" + [String](repeating: "?", count: parameters).joined(separator: ", ") + ")"
    let rows = [String](repeating: row, count: count).joined(separator: ", ")
    // OR FAIL spares the statement journal that several rows would otherwise need; whatever fails here fails the whole.
    return
      "INSERT OR FAIL INTO main.buckia_conflict(entry, layout, kind, outcome, base, local, incoming, reason) VALUES \(rows)"
  }

  /// Records one conflict of a change.
  func record(
    _ incident: ConflictIncident, _ outcome: ConflictOutcome, _ layout: ConflictLayout, _ bytes: RawSpan,
    on connection: borrowing SQLiteConnection
  ) throws {
    let number = try number(of: layout, on: connection)
    let base = incident.operation == .insert ? nil : append(incident.old, key: [], layout, bytes)
    let incoming = incident.operation == .delete ? nil : append(incident.new, key: incident.old, layout, bytes)
    let reason = incident.kind == .constraint ? append(incident.message) : nil
    try gather(
      Record(
        layout: number, kind: incident.kind.word, outcome: outcome.word, base: base,
        local: append(incident.local, layout),
        incoming: incoming, reason: reason), on: connection)
  }

  /// Records that a row refers to one that is not there.
  func recordViolation(
    _ row: StandingRow?, _ layout: ConflictLayout, message: String, on connection: borrowing SQLiteConnection
  ) throws {
    try gather(
      Record(
        layout: try number(of: layout, on: connection), kind: ConflictKind.foreignKey.word,
        outcome: ConflictOutcome.reported.word, base: nil, local: append(row, layout), incoming: nil,
        reason: append(Array(message.utf8))), on: connection)
  }

  /// Records what a change that was left out says of columns that are unknown here.
  func record(
    _ omission: ConflictDecider.Omission, columns: [String], key: Set<Int>, values: [UInt8],
    on connection: borrowing SQLiteConnection
  ) throws {
    let number = try layout(of: omission.table, columns: columns, key: key, on: connection)
    let incoming = append(values)
    try gather(
      Record(
        layout: number, kind: omission.kind.word, outcome: omission.outcome.word, base: nil, local: nil,
        incoming: incoming, reason: append(Array("these columns are unknown here".utf8))), on: connection)
  }

  private func append(_ row: StandingRow?, _ layout: ConflictLayout) -> Range<Int>? {
    guard let row else { return nil }
    let start = buffer.count
    row.append(layout.columns.count, to: &buffer)
    return start..<buffer.count
  }

  /// The values of a change as a local row, with those of the key from where the change has them.
  private func append(
    _ values: [ValueSlice], key: [ValueSlice], _ layout: ConflictLayout, _ bytes: RawSpan
  ) -> Range<Int> {
    let start = buffer.count
    for place in layout.columns.indices {
      buffer.append(layout.slice(at: place, of: values, key: key) ?? .undefined, of: bytes)
    }
    return start..<buffer.count
  }

  private func append(_ words: [UInt8]) -> Range<Int> {
    let start = buffer.count
    buffer.append(encoded: words)
    return start..<buffer.count
  }

  private func gather(_ record: Record, on connection: borrowing SQLiteConnection) throws {
    records.append(record)
    if records.count == Self.batchSize || buffer.count > Self.byteLimit { try flush(on: connection) }
  }

  /// Writes what has been gathered.
  func flush(on connection: borrowing SQLiteConnection) throws {
    defer {
      records.removeAll(keepingCapacity: true)
      if buffer.count > Self.keptCapacity { buffer = ChangesetWriter() } else { buffer.removeAll() }
    }
    guard !records.isEmpty else { return }
    let isBatch = records.count == Self.batchSize
    let insert = try connection.cached(isBatch ? Self.insertBatch : Self.insertOne)
    // The rows are bound where they lie in the buffer, which stays as it is until all are written.
    try buffer.bytes.withUnsafeBytes { bytes in
      for index in records.indices {
        try bind(records[index], to: insert.statement, from: isBatch ? index * Self.parameters : 0, in: bytes)
        if !isBatch { try insert.statement.run() }
      }
      if isBatch { try insert.statement.run() }
    }
    insert.statement.clearBindings()
  }

  /// Forgets what has been recorded since the last ``flush(on:)``, because a savepoint has been rolled back.
  func rewind() {
    records.removeAll(keepingCapacity: true)
    buffer.removeAll()
    layouts.removeAll()
    rewinds += 1
  }

  private func bind(
    _ record: Record, to statement: borrowing SQLiteStatement, from index: Int, in bytes: UnsafeRawBufferPointer
  ) throws(SQLiteError) {
    try statement.bind(entry, at: index)
    try statement.bind(record.layout, at: index + 1)
    try statement.bind(textNoCopy: record.kind.bytes, at: index + 2)
    try statement.bind(textNoCopy: record.outcome.bytes, at: index + 3)
    try Self.bind(record.base, to: statement, at: index + 4, in: bytes)
    try Self.bind(record.local, to: statement, at: index + 5, in: bytes)
    try Self.bind(record.incoming, to: statement, at: index + 6, in: bytes)
    if let reason = record.reason {
      try statement.bind(textNoCopy: UnsafeRawBufferPointer(rebasing: bytes[reason]), at: index + 7)
    } else {
      try statement.bindNull(at: index + 7)
    }
  }

  private static func bind(
    _ range: Range<Int>?, to statement: borrowing SQLiteStatement, at index: Int, in bytes: UnsafeRawBufferPointer
  ) throws(SQLiteError) {
    if let range {
      try statement.bind(blobNoCopy: UnsafeRawBufferPointer(rebasing: bytes[range]), at: index)
    } else {
      try statement.bindNull(at: index)
    }
  }

  private func number(of layout: ConflictLayout, on connection: borrowing SQLiteConnection) throws -> Int64 {
    if let known = layout.record, known.rewinds == rewinds { return known.number }
    let number = try self.layout(
      of: layout.name, columns: layout.columns, key: Set(layout.key), on: connection)
    layout.record = (number, rewinds)
    return number
  }

  private func layout(
    of table: TableName, columns: [String], key: Set<Int>, on connection: borrowing SQLiteConnection
  ) throws -> Int64 {
    let name = LayoutName(table: table, columns: columns)
    if let known = layouts[name] { return known }
    let newest = "SELECT max(layout) FROM main.buckia_layout WHERE table_name = ?1"
    if let known = try connection.integer(newest, binding: [table.text]),
      try Self.columns(of: known, on: connection)
        .elementsEqual(columns.indices.map { (columns[$0], key.contains($0)) }, by: ==)
    {
      layouts[name] = known
      return known
    }
    let statement = try connection.prepare("INSERT INTO main.buckia_layout(table_name) VALUES (?1)")
    try statement.bind(table.text, at: 0)
    try statement.run()
    let layout = try connection.integer("SELECT last_insert_rowid()") ?? 0
    let column = try connection.prepare("INSERT INTO main.buckia_layout_column VALUES (?1, ?2, ?3, ?4)")
    for (position, text) in columns.enumerated() {
      try column.bind(layout, at: 0)
      try column.bind(Int64(position), at: 1)
      try column.bind(text, at: 2)
      try column.bind(Int64(key.contains(position) ? 1 : 0), at: 3)
      try column.run()
    }
    layouts[name] = layout
    return layout
  }

  private static func columns(
    of layout: Int64, on connection: borrowing SQLiteConnection
  ) throws -> [(name: String, isKey: Bool)] {
    var columns: [(String, Bool)] = []
    let query = "SELECT name, is_key FROM main.buckia_layout_column WHERE layout = \(layout) ORDER BY position"
    try connection.forEachRow(of: query) { columns.append(($0.text(at: 0) ?? "", $0.integer(at: 1) != 0)) }
    return columns
  }

  /// A value of a row; nil where the row is not there, or shorter than it should be in a damaged record.
  private static func value(_ index: Int, of row: [ConflictRecord.Cell]?) -> ChangesetValue? {
    guard let row, row.indices.contains(index) else { return nil }
    return row[index].value
  }

  /// All recorded conflicts, oldest first.
  static func records(on connection: borrowing SQLiteConnection) throws -> [ConflictRecord] {
    var layouts: [Int64: [(name: String, isKey: Bool)]] = [:]
    var records: [ConflictRecord] = []
    let statement = try connection.prepare(
      """
      SELECT conflict, coalesce(diff, lower(hex(digest))), layout, table_name, kind, outcome, base, local, incoming,
             c.reason
      FROM main.buckia_conflict AS c JOIN main.buckia_ledger USING (entry) JOIN main.buckia_layout USING (layout)
      ORDER BY conflict
      """)
    while try statement.step() {
      let layout = statement.integer(at: 2)
      let columns = try layouts[layout] ?? Self.columns(of: layout, on: connection)
      layouts[layout] = columns
      func row(_ index: Int) throws -> [ConflictRecord.Cell]? {
        guard !statement.isNull(at: index) else { return nil }
        let values = try ChangesetValue.record(statement.blob(at: index))
        return zip(columns, values).map { ($0.0.name, $0.1) }
      }
      let rows = (base: try row(6), local: try row(7), incoming: try row(8))
      let whole = rows.local ?? rows.incoming ?? rows.base ?? []
      let known = whole.enumerated().map { index, cell in
        (cell.column, cell.value ?? Self.value(index, of: rows.incoming) ?? Self.value(index, of: rows.base))
      }
      records.append(
        ConflictRecord(
          id: statement.integer(at: 0), diff: statement.text(at: 1) ?? "", table: statement.text(at: 3) ?? "",
          key: zip(columns, known).filter { $0.0.isKey }.map { $0.1 },
          kind: ConflictKind(rawValue: statement.text(at: 4) ?? "") ?? .data,
          outcome: ConflictOutcome(rawValue: statement.text(at: 5) ?? "") ?? .omitted, base: rows.base,
          local: rows.local, incoming: rows.incoming, reason: statement.text(at: 9)))
    }
    return records
  }
}

extension Ledger {
  /// All recorded conflicts, oldest first.
  ///
  /// - Throws: `SQLiteError`; `ChangesetError` when a record is damaged.
  public static func conflicts(on connection: borrowing SQLiteConnection) throws -> [ConflictRecord] {
    try ConflictLog.records(on: connection)
  }
}

extension StaticString {
  /// The UTF-8 of the literal, which stays for as long as the program runs.
  fileprivate var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: utf8Start, count: utf8CodeUnitCount) }
}

extension ConflictKind {
  /// The raw value, to be bound without a copy.
  fileprivate var word: StaticString {
    switch self {
    case .data: "data"
    case .notFound: "not-found"
    case .conflict: "conflict"
    case .constraint: "constraint"
    case .foreignKey: "foreign-key"
    }
  }
}

extension ConflictOutcome {
  /// The raw value, to be bound without a copy.
  fileprivate var word: StaticString {
    switch self {
    case .keptLocal: "kept-local"
    case .tookIncoming: "took-incoming"
    case .omitted: "omitted"
    case .reported: "reported"
    }
  }
}
