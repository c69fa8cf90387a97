import SQLiteConnections

/// Reads what diffs did here, for one diff after the other.
package struct EffectReader {
  /// The block that was read last: diffs that were applied together share one.
  private var known: (number: Int64, pieces: [EffectBlock.Piece])?

  /// Makes a reader. What it has read must not change meanwhile.
  package init() {}

  /// What is kept of what a diff did, part by part, in the order in which it was done; none when not all of it is.
  ///
  /// - Parameter entry: The diff's ledger entry.
  /// - Throws: `SQLiteError`; `LedgerError` when the tables have been written by somebody else.
  package mutating func parts(
    of entry: Int64, on connection: borrowing SQLiteConnection
  ) throws -> [AppliedEffects.Part] {
    var parts: [AppliedEffects.Part] = []
    var changes: [UInt8] = []
    let isKept = try forEachPiece(of: entry, on: connection) { piece in
      changes += piece.changes
      guard let tables = piece.tables else { return }
      parts.append(AppliedEffects.Part(tables: tables, changes: changes))
      changes = []
    }
    return isKept ? parts : []
  }

  /// Gives what is kept of what a diff did, piece by piece, in the order in which it was done.
  ///
  /// - Parameter entry: The diff's ledger entry.
  /// - Returns: True if all of it is kept. Otherwise what was given is of no use.
  /// - Throws: `SQLiteError`; `LedgerError` when the tables have been written by somebody else; what `body` throws.
  package mutating func forEachPiece(
    of entry: Int64, on connection: borrowing SQLiteConnection, _ body: (EffectBlock.Piece) throws -> Void
  ) throws -> Bool {
    let query = try connection.cached(
      "SELECT effect FROM main.buckia_effect WHERE last >= ?1 AND first <= ?1 ORDER BY effect")
    var blocks: [Int64] = []
    do {
      defer { query.statement.reset() }
      try query.statement.bind(entry, at: 0)
      while try query.statement.step() { blocks.append(query.statement.integer(at: 0)) }
    }
    var isBegun = false
    for block in blocks {
      for piece in try pieces(of: block, on: connection) where piece.entry == entry {
        switch piece.beginning {
        case .diff: isBegun = true
        case .part, .none: break
        case .unknown: return false
        }
        guard isBegun else { return false }
        try body(piece)
      }
    }
    return isBegun
  }

  private mutating func pieces(
    of block: Int64, on connection: borrowing SQLiteConnection
  ) throws -> [EffectBlock.Piece] {
    if let known, known.number == block { return known.pieces }
    let query = try connection.cached("SELECT contents FROM main.buckia_effect WHERE effect = ?1")
    defer { query.statement.reset() }
    try query.statement.bind(block, at: 0)
    guard try query.statement.step() else { return [] }
    do {
      let pieces = try EffectBlock.pieces(in: query.statement.blob(at: 0))
      known = (block, pieces)
      return pieces
    } catch {
      throw LedgerError(alteredAt: connection.path)
    }
  }
}
