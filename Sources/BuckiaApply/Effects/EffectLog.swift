import BuckiaLedger
import Dispatch
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Gathers what applying one diff does to the rows here, as a changeset from which the one that takes it back is made.
///
/// Most changes do exactly what they say: those are copied. Of all others the rows before and afterwards are looked up.
final class EffectLog {
  /// How many bytes of changes are compressed together.
  private static let pieceSize = 1 << 20

  private let entry: Int64
  private let isResumed: Bool
  /// How many bytes are gathered.
  let byteLimit: Int
  /// The changes that are not compressed yet, after those that are.
  private var writer = ChangesetWriter()
  private var compressor: EffectCompressor?
  private var compressedSize = 0
  /// True if everything has been gathered: it was not too much, and could be told.
  private(set) var isComplete = true
  /// True if it was given up because there was no room for all of it.
  private(set) var isTooLarge = false
  private(set) var tables: [AppliedEffects.Table] = []
  private var places: Set<TableName> = []
  /// The table whose header was written last.
  private var current: TableName?

  /// - Parameters:
  ///   - entry: The diff's ledger entry.
  ///   - isResumed: True if it is a part of a diff that was held.
  ///   - byteLimit: How many bytes are gathered. Beyond them nothing is.
  init(of entry: Int64, isResumed: Bool, byteLimit: Int) {
    self.entry = entry
    self.isResumed = isResumed
    self.byteLimit = byteLimit
  }

  /// What was gathered: the changes, in the order in which they were made.
  func record() throws -> EffectRecord {
    var record = EffectRecord(entry: entry, isResumed: isResumed, tables: isComplete ? tables : nil)
    if isComplete {
      record.blocks = try compressor?.finish() ?? []
      record.changes = writer.bytes
    }
    return record
  }

  /// Gives up: something was done that cannot be told as changes of rows.
  func abandon() {
    isComplete = false
    writer = ChangesetWriter()
    compressor = nil
  }

  /// Gives up: there is no room for all of it.
  func abandonAsTooLarge() {
    isTooLarge = isTooLarge || isComplete
    abandon()
  }

  /// Has the changes so far compressed, when they are many.
  private func compressIfMany() {
    guard writer.count >= Self.pieceSize else { return }
    let compressor = compressor ?? EffectCompressor()
    self.compressor = compressor
    let beginning: EffectBlock.Piece.Beginning = compressedSize > 0 ? .none : isResumed ? .part : .diff
    compressor.add(EffectBlock.Piece(entry: entry, beginning, of: nil, changes: writer.bytes))
    compressedSize += writer.count
    writer = ChangesetWriter()
  }

  // MARK: Rolled-back savepoints

  /// How much has been gathered.
  var mark: Int { compressedSize + writer.count }

  /// Forgets what has been gathered since a mark.
  func rewind(to mark: Int) throws {
    guard isComplete else { return }
    if mark < compressedSize, let compressor {
      let rest = try compressor.rewind(to: mark)
      writer = ChangesetWriter()
      writer.append(encoded: rest)
      compressedSize = mark - rest.count
    } else {
      writer.removeLast(self.mark - mark)
    }
    current = nil
  }

  // MARK: Writing

  /// Writes what became of a row, as an observer is told of it.
  func write(_ effect: RowEffect, of table: TableDefinition) throws {
    guard isComplete else { return }
    // Tables that only triggers write are laid out as they are.
    let layout = EffectTable(table, places: nil, keyFlags: table.keyFlags, in: self)
    try layout.write(before: effect.before, after: effect.after)
  }

  /// How many bytes there is still room for.
  var room: Int { byteLimit - mark }

  /// Writes a change of a table.
  ///
  /// - Parameter size: About how many bytes it takes. If there is no room for it, it is never copied.
  func write(_ table: EffectTable, size: Int, _ body: (inout ChangesetWriter) -> Void) {
    guard isComplete else { return }
    guard size <= room else { return abandonAsTooLarge() }
    if current != table.name {
      if places.insert(table.name).inserted {
        tables.append(AppliedEffects.Table(name: table.name.text, columns: table.columns))
      }
      writer.beginTable(table.header)
      current = table.name
    }
    body(&writer)
    compressIfMany()
  }
}

/// How the changes of one table are laid out in an ``EffectLog``: as those of the diff where these name all local columns, else as the
/// local rows.
final class EffectTable {
  let name: TableName
  let header: ChangesetTable
  let columns: [String]
  /// True if a change of the diff says all there is to say of a row.
  let isOfDiff: Bool
  /// For each column its place in the local layout.
  private let places: [Int]
  private let log: EffectLog

  /// The table of changes of a diff.
  convenience init(_ statements: TableStatements, _ header: ChangesetTable, in log: EffectLog) {
    let local = statements.match.local
    let isOfDiff = header.format == .changeset && statements.match.isComplete
    self.init(
      local, places: isOfDiff ? statements.match.columns : nil, keyFlags: isOfDiff ? header.keyFlags : local.keyFlags,
      in: log)
  }

  /// - Parameter places: For each column of the diff its place in the local layout; nil for the layout itself.
  fileprivate init(_ local: TableDefinition, places: [Int]?, keyFlags: [UInt8], in log: EffectLog) {
    self.log = log
    name = TableName(local.name)
    isOfDiff = places != nil
    let names = local.changesetColumns
    self.places = places ?? Array(names.indices)
    columns = self.places.map { names[$0] }
    header = ChangesetTable(name: local.name, keyFlags: keyFlags)
  }

  var isWanted: Bool { log.isComplete }
  /// How many bytes of a row there is room for.
  var room: Int { log.room }
  /// Gives up: a row is too large.
  func abandon() { log.abandonAsTooLarge() }
  var mark: Int { log.mark }
  func rewind(to mark: Int) throws { try log.rewind(to: mark) }

  /// True if a change that does exactly what it says tells all of it.
  func tells(_ change: DecodedChange) -> Bool {
    isOfDiff && (change.operation != .update || change.changed == change.compared)
  }

  /// Writes a change that did exactly what it says.
  func write(_ change: DecodedChange, _ bytes: RawSpan) {
    var size = 0
    for column in columns.indices { size += change.old(column).count + change.new(column).count }
    log.write(self, size: size) { writer in
      writer.beginChange(change.operation)
      if change.operation != .insert {
        for column in columns.indices { writer.append(change.old(column), of: bytes) }
      }
      if change.operation != .delete {
        for column in columns.indices { writer.append(change.new(column), of: bytes) }
      }
    }
  }

  /// Writes an INSERT of the diff that did exactly what it says.
  ///
  /// - Parameter start: Where it stands.
  func writeInsert(at start: Int, in bytes: RawSpan) {
    let values = start + 2
    var end = values
    for _ in columns.indices { _ = ValueSlice(verified: bytes, at: &end) }
    log.write(self, size: end - values) { writer in
      writer.beginChange(.insert)
      writer.append(values..<end, of: bytes)
    }
  }

  /// Writes what became of a row.
  ///
  /// - Parameters:
  ///   - before: The local row before, as a record of the layout; nil where there was none.
  ///   - after: The local row afterwards; nil where there is none any more.
  func write(before: [UInt8]?, after: [UInt8]?) throws {
    let before = try before.map { try RowCopy(record: $0) }
    let after = try after.map { try RowCopy(record: $0) }
    switch (before, after) {
    case (nil, nil): log.abandon()
    case (let row?, nil): write(.delete, row)
    case (nil, let row?): write(.insert, row)
    case (let old?, let new?):
      let keys = columns.indices.filter { header.isKey($0) }
      guard keys.allSatisfy({ isEqual(old, new, at: $0) }) else {
        write(.delete, old)
        write(.insert, new)
        return
      }
      let changed = columns.indices.filter { !header.isKey($0) && !isEqual(old, new, at: $0) }
      if !changed.isEmpty { update(old, new, changed: Set(changed)) }
    }
  }

  private func write(_ operation: ChangeOperation, _ row: RowCopy) {
    log.write(self, size: row.record.count) { writer in
      writer.beginChange(operation)
      for column in columns.indices { append(row, column, to: &writer) }
    }
  }

  private func update(_ old: RowCopy, _ new: RowCopy, changed: Set<Int>) {
    log.write(self, size: old.record.count + new.record.count) { writer in
      writer.beginChange(.update)
      for column in columns.indices {
        if header.isKey(column) || changed.contains(column) {
          append(old, column, to: &writer)
        } else {
          writer.appendUndefined()
        }
      }
      for column in columns.indices {
        if changed.contains(column) { append(new, column, to: &writer) } else { writer.appendUndefined() }
      }
    }
  }

  private func append(_ row: RowCopy, _ column: Int, to writer: inout ChangesetWriter) {
    row.record.withRawSpan { writer.append(row.values[places[column]], of: $0) }
  }

  private func isEqual(_ one: RowCopy, _ other: RowCopy, at column: Int) -> Bool {
    one.record[one.values[places[column]].encoded] == other.record[other.values[places[column]].encoded]
  }
}

/// What one diff did to the rows here, or one part of a diff that was held.
struct EffectRecord {
  /// Its ledger entry.
  let entry: Int64
  /// True if something of the same diff may be in the database already.
  let isResumed: Bool
  /// The tables; nil where it is not known what was done.
  let tables: [AppliedEffects.Table]?
  /// The changes, as far as they are compressed.
  var blocks: [EffectBlock] = []
  /// The others.
  var changes: [UInt8] = []

  /// How many bytes of changes there are, before they are compressed.
  var size: Int { blocks.reduce(changes.count) { $0 + $1.size } }

  /// The end of it, which has the tables.
  var lastPiece: EffectBlock.Piece {
    guard let tables else { return EffectBlock.Piece(entry: entry, .unknown, of: [], changes: []) }
    return EffectBlock.Piece(entry: entry, blocks.isEmpty ? beginning : .none, of: tables, changes: changes)
  }

  /// What its first piece begins.
  var beginning: EffectBlock.Piece.Beginning { isResumed ? .part : .diff }

  /// Forgets what was done.
  var forgotten: EffectRecord { EffectRecord(entry: entry, isResumed: isResumed, tables: nil) }
}

/// What the diffs of one transaction did to the rows here, until it is written at the end: of many diffs only the newest are kept, and
/// the others need not be written.
struct EffectQueue {
  private var records: [EffectRecord] = []
  /// How many records are not kept: the oldest.
  private var dropped = 0
  private var byteCount = 0

  /// Adds what a diff did.
  ///
  /// - Parameter limit: How many bytes are kept of all diffs, before they are compressed.
  mutating func add(_ record: EffectRecord, limit: Int) {
    records.append(record)
    byteCount += record.size
    while byteCount > limit, dropped < records.count {
      byteCount -= records[dropped].size
      records[dropped] = records[dropped].forgotten
      dropped += 1
    }
  }

  /// Writes what is kept, and is empty then.
  mutating func write(on connection: borrowing SQLiteConnection) throws {
    var pieces: [EffectBlock.Piece] = []
    var size = 0
    func flush() throws {
      guard !pieces.isEmpty else { return }
      try AppliedEffects.record(EffectBlock(pieces), on: connection)
      pieces = []
      size = 0
    }
    // Of a diff all is kept, or nothing.
    for record in records where record.tables != nil || record.isResumed {
      if !record.blocks.isEmpty {
        try flush()
        for block in record.blocks { try AppliedEffects.record(block, on: connection) }
      }
      pieces.append(record.lastPiece)
      size += record.changes.count
      if size >= EffectBlock.usualSize { try flush() }
    }
    try flush()
    self = EffectQueue()
  }
}

/// Compresses what a large diff does, in a thread of its own, while its rows are being written.
final class EffectCompressor: @unchecked Sendable {
  /// How many pieces may wait.
  private static let capacity = 8

  private let queue = DispatchQueue(label: "buckia.effects")
  private let room = DispatchSemaphore(value: capacity)
  // Touched on the queue only, which does one thing after the other.
  private var blocks: [Result<EffectBlock, any Error>] = []

  /// Takes the next piece. It waits when too many are there.
  func add(_ piece: EffectBlock.Piece) {
    room.wait()
    queue.async {
      self.blocks.append(Result { try EffectBlock([piece]) })
      self.room.signal()
    }
  }

  /// Takes back what was added last.
  ///
  /// - Parameter size: How many bytes of changes stay.
  /// - Returns: Those bytes that belong to a block of which not all stays; that block is taken back whole.
  func rewind(to size: Int) throws -> [UInt8] {
    try queue.sync {
      var start = 0
      for (index, result) in blocks.enumerated() {
        let block = try result.get()
        guard start + block.size > size else {
          start += block.size
          continue
        }
        blocks.removeLast(blocks.count - index)
        return try Array(block.pieces().flatMap(\.changes).prefix(size - start))
      }
      return []
    }
  }

  /// Waits until everything is compressed.
  ///
  /// - Returns: All blocks, each of one piece.
  func finish() throws -> [EffectBlock] { try queue.sync { try blocks.map { try $0.get() } } }
}
