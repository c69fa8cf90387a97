import BuckiaLedger
import SQLiteConnections

/// What one diff did to the rows here, or one part of a diff that was held.
struct EffectRecord {
  /// Its ledger entry.
  let entry: Int64
  /// Whether something of the same diff may be in the database already.
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
