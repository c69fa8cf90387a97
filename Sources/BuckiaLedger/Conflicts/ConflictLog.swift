import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Writes the conflicts of one diff into the tables `buckia_conflict`, `buckia_layout` and `buckia_layout_column`.
///
/// Rows are kept as records of the changeset format, exact to the byte, beside a layout that names their columns. There
/// can be millions of conflicts, which is why records are collected and written several at a time: ``flush()`` writes
/// the rest.
///
/// ```swift
/// let local = log.row { row.append(to: &$0) }
/// try log.record(.data, .keptLocal, layout, base: nil, local: local, incoming: nil)
/// ```
package final class ConflictLog {
  static let definition = """
    CREATE TABLE main.buckia_layout(
      layout INTEGER PRIMARY KEY,
      table_name TEXT NOT NULL
    );
    CREATE TABLE main.buckia_layout_column(
      layout INTEGER NOT NULL,
      position INTEGER NOT NULL,
      name TEXT NOT NULL,
      is_key INTEGER NOT NULL,
      PRIMARY KEY (layout, position)
    ) WITHOUT ROWID;
    CREATE TABLE main.buckia_conflict(
      conflict INTEGER PRIMARY KEY,
      entry INTEGER NOT NULL,
      layout INTEGER NOT NULL,
      kind TEXT NOT NULL,
      outcome TEXT NOT NULL,
      base BLOB,
      local BLOB,
      incoming BLOB,
      reason TEXT
    );
    """

  /// A row of the next record, encoded in the log's buffer.
  package typealias Row = Range<Int>

  /// A record that is not written yet.
  private struct Pending {
    let layout: Int64
    let kind: Row
    let outcome: Row
    let base: Row?
    let local: Row?
    let incoming: Row?
    let reason: Row?
    let details: Details?
  }

  /// Details that only a few conflicts have.
  package struct Details {
    /// The row that a resolver of the application has written.
    package var written: Row?
    /// The rule that has decided.
    package var rule: Int64?
    /// The keys of the rows in the way, one after the other.
    package var others: Row?

    /// Nothing.
    package init() {}
  }

  private struct LayoutName: Hashable {
    let table: TableName
    let columns: [String]
  }

  /// The number of records that one statement writes.
  private static let batchSize = 16
  /// The number of collected bytes that are written before a batch is complete, because rows can be large.
  private static let byteLimit = 256 << 10
  /// How much memory the buffer keeps for the next records, in bytes.
  private static let keptCapacity = 1 << 20
  /// The most bytes of large values that are copied for one diff although the local rows keep them. A small file could
  /// name any number of large rows.
  package static let copiedByteLimit = 64 << 20

  /// The number of parameters for a record.
  private static let parameters = 8
  private static let insertOne = insertion(of: 1)
  private static let insertBatch = insertion(of: batchSize)

  private let entry: Int64
  let connection: SQLiteConnection
  private var buffer = ChangesetWriter()
  private var pending: [Pending] = []
  private var layouts: [LayoutName: Int64] = [:]
  /// The number of bytes of large values that may still be copied although the local rows keep them.
  private var room: Int? = ConflictLog.copiedByteLimit
  /// The number of rewinds, which may have removed earlier layouts.
  private var rewinds = 0

  /// Begins the log of the diff with this ledger entry.
  package init(entry: Int64, on connection: borrowing SQLiteConnection) {
    self.entry = entry
    self.connection = SQLiteConnection(sharing: connection)
  }

  private static func insertion(of count: Int) -> String {
    let row = "(" + [String](repeating: "?", count: parameters).joined(separator: ", ") + ")"
    let rows = [String](repeating: row, count: count).joined(separator: ", ")
    // OR FAIL spares the statement journal that several rows would otherwise need; whatever fails here fails the whole.
    return
      "INSERT OR FAIL INTO main.buckia_conflict(entry, layout, kind, outcome, base, local, incoming, reason) VALUES \(rows)"
  }

  // MARK: Recording

  /// Encodes a row for the record that follows.
  ///
  /// - Parameter write: Appends a value for each column of the layout.
  package func row(_ write: (inout ChangesetWriter) -> Void) -> Row {
    let start = buffer.count
    write(&buffer)
    return start..<buffer.count
  }

  /// Records a conflict.
  ///
  /// - Parameters:
  ///   - kind: Why the change did not fit.
  ///   - outcome: The outcome.
  ///   - layout: The columns of the rows.
  ///   - base: The row as the author saw it.
  ///   - local: The row as it was here.
  ///   - incoming: The row as the author wants it.
  ///   - reason: More about the conflict, as UTF-8.
  ///   - details: What else is known of it; nil for most conflicts.
  package func record(
    _ kind: ConflictKind, _ outcome: ConflictOutcome, _ layout: RecordedRowLayout, base: Row?, local: Row?,
    incoming: Row?, reason: [UInt8]? = nil, details: Details? = nil
  ) throws {
    var unlimited: Int?
    let base = try base.map { try compacted($0, room: &unlimited) }
    let incoming = try incoming.map { try compacted($0, room: &unlimited) }
    let local = try local.map {
      try outcome.keepsLocalValues ? compacted($0, room: &room) : compacted($0, room: &unlimited)
    }
    pending.append(
      Pending(
        layout: try number(of: layout), kind: text(kind.rawValue), outcome: text(outcome.rawValue), base: base,
        local: local, incoming: incoming, reason: reason.map { text in row { $0.append(encoded: text) } },
        details: details))
    if pending.count == Self.batchSize || buffer.count > Self.byteLimit { try flush() }
  }

  /// The row with references to its large values, which are stored.
  private func compacted(_ row: Row, room: inout Int?) throws -> Row {
    guard row.count > LargeValues.byteLimit else { return row }
    let record = try buffer.bytes.withRawSpan { bytes in
      try LargeValues.compacted(bytes.extracting(row), room: &room, on: connection)
    }
    return self.row { $0.append(encoded: record) }
  }

  private func text(_ text: String) -> Row {
    var text = text
    return text.withUTF8 { bytes in row { $0.append(encoded: UnsafeRawBufferPointer(bytes)) } }
  }

  /// Writes what has been gathered.
  package func flush() throws {
    defer {
      pending.removeAll(keepingCapacity: true)
      if buffer.count > Self.keptCapacity { buffer = ChangesetWriter() } else { buffer.removeAll() }
    }
    guard !pending.isEmpty else { return }
    // Details belong to the record that was inserted last.
    let isBatch = pending.count == Self.batchSize && pending.allSatisfy { $0.details == nil }
    let insert = try connection.cached(isBatch ? Self.insertBatch : Self.insertOne)
    // The rows are bound without copying: the buffer does not change until all are written.
    try buffer.bytes.withUnsafeBytes { bytes in
      for index in pending.indices {
        try bind(pending[index], to: insert.statement, from: isBatch ? index * Self.parameters : 0, in: bytes)
        guard !isBatch else { continue }
        try insert.statement.run()
        if let details = pending[index].details { try write(details, from: bytes) }
      }
      if isBatch { try insert.statement.run() }
    }
    insert.statement.clearBindings()
  }

  /// Writes the details of the record that was inserted last.
  private func write(_ details: Details, from bytes: UnsafeRawBufferPointer) throws {
    let insert = try connection.cached(ConflictDetails.insertion)
    try Self.bind(details.written, to: insert.statement, at: 0, in: bytes)
    try insert.statement.bind(details.rule, at: 1)
    try Self.bind(details.others, to: insert.statement, at: 2, in: bytes)
    try insert.statement.run()
    insert.statement.clearBindings()
  }

  /// Forgets what has been recorded since the last ``flush()``, because a savepoint has been rolled back.
  package func rewind() {
    pending.removeAll(keepingCapacity: true)
    buffer.removeAll()
    layouts.removeAll()
    room = Self.copiedByteLimit
    rewinds += 1
  }

  private func bind(
    _ record: Pending, to statement: borrowing SQLiteStatement, from index: Int, in bytes: UnsafeRawBufferPointer
  ) throws(SQLiteError) {
    try statement.bind(entry, at: index)
    try statement.bind(record.layout, at: index + 1)
    try statement.bind(textNoCopy: UnsafeRawBufferPointer(rebasing: bytes[record.kind]), at: index + 2)
    try statement.bind(textNoCopy: UnsafeRawBufferPointer(rebasing: bytes[record.outcome]), at: index + 3)
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
    _ row: Row?, to statement: borrowing SQLiteStatement, at index: Int, in bytes: UnsafeRawBufferPointer
  ) throws(SQLiteError) {
    if let row {
      try statement.bind(blobNoCopy: UnsafeRawBufferPointer(rebasing: bytes[row]), at: index)
    } else {
      try statement.bindNull(at: index)
    }
  }

  // MARK: Layouts

  /// The number of a layout, which is stored where it is not yet.
  func number(of layout: RecordedRowLayout) throws -> Int64 {
    if let known = layout.known, known.rewinds == rewinds { return known.number }
    let number = try findOrMake(layout)
    layout.known = (number, rewinds)
    return number
  }

  private func findOrMake(_ layout: RecordedRowLayout) throws -> Int64 {
    let name = LayoutName(table: layout.table, columns: layout.columns)
    let key = Set(layout.key)
    if let known = layouts[name] { return known }
    let newest = "SELECT max(layout) FROM main.buckia_layout WHERE table_name = ?1"
    if let known = try connection.integer(newest, binding: [layout.table.text]),
      try ConflictRecord.columns(of: known, on: connection)
        .elementsEqual(layout.columns.indices.map { (layout.columns[$0], key.contains($0)) }, by: ==)
    {
      layouts[name] = known
      return known
    }
    try connection.run(cached: "INSERT INTO main.buckia_layout(table_name) VALUES (?1)", layout.table.text)
    let number = try connection.integer("SELECT last_insert_rowid()") ?? 0
    for (position, name) in layout.columns.enumerated() {
      try connection.run(
        cached: "INSERT INTO main.buckia_layout_column VALUES (?1, ?2, ?3, ?4)", number, Int64(position), name,
        Int64(key.contains(position) ? 1 : 0))
    }
    layouts[name] = number
    return number
  }
}

/// The table and the columns of the rows in conflict records. Made once for a table.
package final class RecordedRowLayout {
  /// The table.
  package let table: TableName
  /// The names of the columns, in the order of a row's values.
  package let columns: [String]
  /// The places of the key among them.
  package let key: [Int]
  /// The layout's number in the database, once it is known, and the rewind count of the log at that time.
  var known: (number: Int64, rewinds: Int)?

  /// Creates a layout.
  package init(table: TableName, columns: [String], key: [Int]) {
    self.table = table
    self.columns = columns
    self.key = key
  }
}

extension ConflictLog {
  /// Records how a conflict was resolved; at once.
  ///
  /// - Parameters:
  ///   - conflict: The number of the conflict.
  ///   - answer: The answer.
  ///   - name: Who has decided.
  ///   - time: When, in milliseconds since 1970.
  ///   - layout: The columns of the rows.
  ///   - before: The row before, a value for each column; nil if there was none.
  ///   - after: The row afterwards; nil if there is none.
  package func recordResolution(
    of conflict: Int64, _ answer: ConflictAnswer.Kind, by name: String, at time: Int64, _ layout: RecordedRowLayout,
    before: [UInt8]?, after: [UInt8]?
  ) throws {
    func compacted(_ record: [UInt8]?) throws -> [UInt8]? {
      guard let record, record.count > LargeValues.byteLimit else { return record }
      var unlimited: Int?
      return try record.withRawSpan { try LargeValues.compacted($0, room: &unlimited, on: connection) }
    }
    try connection.run(
      cached: """
        INSERT INTO main.buckia_resolution(conflict, answer, decided_by, decided_at, layout, before, after)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
        """, conflict, answer.rawValue, name, time, try number(of: layout), try compacted(before),
      try compacted(after))
  }
}
