import BuckiaLedger
import Dispatch
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Collects the effects of one diff on local rows as a changeset, from which the undo is made.
///
/// Changes that apply exactly are copied. For all others, the rows before and afterwards are read.
final class EffectLog {
  /// The bytes of changes that are compressed together.
  private static let pieceSize = 1 << 20

  private let entry: Int64
  private let isResumed: Bool
  /// The most bytes that are collected.
  let byteLimit: Int
  /// The changes that are not compressed yet, after those that are.
  private var writer = ChangesetWriter()
  private var compressor: EffectCompressor?
  private var compressedSize = 0
  /// True if all effects have been collected.
  private(set) var isComplete = true
  /// True if collecting ended because there were too many bytes.
  private(set) var isTooLarge = false
  private(set) var tables: [AppliedEffects.Table] = []
  private var places: Set<TableName> = []
  /// The table whose header was written last.
  private var current: TableName?

  /// - Parameters:
  ///   - entry: The diff's ledger entry.
  ///   - isResumed: True for a held part of the diff.
  ///   - byteLimit: The most bytes to collect. With more, nothing is kept.
  init(of entry: Int64, isResumed: Bool, byteLimit: Int) {
    self.entry = entry
    self.isResumed = isResumed
    self.byteLimit = byteLimit
  }

  /// The collected changes, in the order in which they were made.
  func record() throws -> EffectRecord {
    var record = EffectRecord(entry: entry, isResumed: isResumed, tables: isComplete ? tables : nil)
    if isComplete {
      record.blocks = try compressor?.finish() ?? []
      record.changes = writer.bytes
    }
    return record
  }

  /// Stops collecting, because an effect cannot be expressed as changes of rows.
  func abandon() {
    isComplete = false
    writer = ChangesetWriter()
    compressor = nil
  }

  /// Stops collecting, because there are too many bytes.
  func abandonAsTooLarge() {
    isTooLarge = isTooLarge || isComplete
    abandon()
  }

  /// Compresses the changes so far, if they are many.
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

  /// The number of collected bytes.
  var mark: Int { compressedSize + writer.count }

  /// Discards the effects since a mark.
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

  /// Adds the effect on a row.
  func write(_ effect: RowEffect, of table: TableDefinition) throws {
    guard isComplete else { return }
    // Tables that only triggers write have the local layout.
    let layout = EffectTable(table, places: nil, keyFlags: table.keyFlags, in: self)
    try layout.write(before: effect.before, after: effect.after)
  }

  /// The number of bytes that can still be added.
  var room: Int { byteLimit - mark }

  /// Writes a change of a table.
  ///
  /// - Parameter size: About the size in bytes. A change without room is never copied.
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

/// The layout of one table's changes in an ``EffectLog``: that of the diff if it has all local columns, otherwise that
/// of the local rows.
final class EffectTable {
  let name: TableName
  let header: ChangesetTable
  let columns: [String]
  /// True if the layout is that of the diff, and its changes can be copied.
  let isOfDiff: Bool
  /// The place of each column in the local layout.
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

  /// - Parameter places: The place in the local layout of each column of the diff; nil for the layout itself.
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
  /// The number of bytes that can still be added.
  var room: Int { log.room }
  /// Stops collecting, because a row is too large.
  func abandon() { log.abandonAsTooLarge() }
  var mark: Int { log.mark }
  func rewind(to mark: Int) throws { try log.rewind(to: mark) }

  /// True if a change that applies exactly describes its whole effect.
  func tells(_ change: DecodedChange) -> Bool {
    isOfDiff && (change.operation != .update || change.changed == change.compared)
  }

  /// Adds a change that was applied exactly.
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

  /// Adds an INSERT of the diff that was applied exactly.
  ///
  /// - Parameter start: The offset of the INSERT.
  func writeInsert(at start: Int, in bytes: RawSpan) {
    let values = start + 2
    var end = values
    for _ in columns.indices { _ = ValueSlice(verified: bytes, at: &end) }
    log.write(self, size: end - values) { writer in
      writer.beginChange(.insert)
      writer.append(values..<end, of: bytes)
    }
  }

  /// Adds the effect on a row.
  ///
  /// - Parameters:
  ///   - before: The local row before, as a record of the layout; nil for none.
  ///   - after: The local row afterwards; nil for none.
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

/// The effects of one diff, or of one held part of a diff.
struct EffectRecord {
  /// The ledger entry.
  let entry: Int64
  /// True if effects of the same diff may be recorded already.
  let isResumed: Bool
  /// The tables; nil if the effects are unknown.
  let tables: [AppliedEffects.Table]?
  /// The compressed changes.
  var blocks: [EffectBlock] = []
  /// The other changes.
  var changes: [UInt8] = []

  /// The uncompressed size of all changes, in bytes.
  var size: Int { blocks.reduce(changes.count) { $0 + $1.size } }

  /// The last piece, which has the tables.
  var lastPiece: EffectBlock.Piece {
    guard let tables else { return EffectBlock.Piece(entry: entry, .unknown, of: [], changes: []) }
    return EffectBlock.Piece(entry: entry, blocks.isEmpty ? beginning : .none, of: tables, changes: changes)
  }

  /// The beginning of the first piece.
  var beginning: EffectBlock.Piece.Beginning { isResumed ? .part : .diff }

  /// The record without effects.
  var forgotten: EffectRecord { EffectRecord(entry: entry, isResumed: isResumed, tables: nil) }
}

/// The effects of the diffs of one transaction, which are written at its end. Only those of the newest diffs are kept,
/// and older ones need not be written.
struct EffectQueue {
  private var records: [EffectRecord] = []
  /// The number of dropped records: the oldest ones.
  private var dropped = 0
  private var byteCount = 0

  /// Adds the effects of a diff.
  ///
  /// - Parameter limit: The most uncompressed bytes that are kept of all diffs.
  mutating func add(_ record: EffectRecord, limit: Int) {
    records.append(record)
    byteCount += record.size
    while byteCount > limit, dropped < records.count {
      byteCount -= records[dropped].size
      records[dropped] = records[dropped].forgotten
      dropped += 1
    }
  }

  /// Writes the kept records, and removes them.
  mutating func write(on connection: borrowing SQLiteConnection) throws {
    var pieces: [EffectBlock.Piece] = []
    var size = 0
    func flush() throws {
      guard !pieces.isEmpty else { return }
      try AppliedEffects.record(EffectBlock(pieces), on: connection)
      pieces = []
      size = 0
    }
    // All effects of a diff are kept, or none.
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

/// Compresses the effects of a large diff in another thread, while its rows are being written.
final class EffectCompressor: @unchecked Sendable {
  /// The most pieces that may wait.
  private static let capacity = 8

  private let queue = DispatchQueue(label: "buckia.effects")
  private let room = DispatchSemaphore(value: capacity)
  // Accessed only on the queue, which is serial.
  private var blocks: [Result<EffectBlock, any Error>] = []

  /// Adds the next piece. Blocks while too many wait.
  func add(_ piece: EffectBlock.Piece) {
    room.wait()
    queue.async {
      self.blocks.append(Result { try EffectBlock([piece]) })
      self.room.signal()
    }
  }

  /// Removes the last changes.
  ///
  /// - Parameter size: The number of bytes of changes that stay.
  /// - Returns: The remaining bytes of a block that is removed in part. That block is removed as a whole.
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
