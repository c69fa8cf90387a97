import BuckiaBytes
import CBuckiaZstd
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The tables `buckia_effect` and `buckia_undo`: the effects of diffs on local rows, and the diffs that were undone.
///
/// The effects of a diff differ from its changes because of conflicts, columns that only exist here, and triggers. They
/// are kept as changes of the local rows, from which the undo is made. Only a limited amount is kept.
package enum AppliedEffects {
  static let definition = """
    CREATE TABLE main.buckia_effect(
      effect INTEGER PRIMARY KEY,
      first INTEGER NOT NULL,
      last INTEGER NOT NULL,
      size INTEGER NOT NULL,
      contents BLOB NOT NULL
    );
    CREATE INDEX main.buckia_effect_last ON buckia_effect(last, first);
    CREATE TABLE main.buckia_undo(
      entry INTEGER PRIMARY KEY,
      undone INTEGER NOT NULL,
      is_active INTEGER NOT NULL
    );
    CREATE INDEX main.buckia_undo_undone ON buckia_undo(undone);
    """

  /// How much is kept.
  package struct Retention: Sendable, Equatable {
    /// The most uncompressed bytes of changes of all diffs; the oldest are deleted first. With 0, nothing is kept.
    package var bytes: Int
    /// For how many days.
    package var days: Int

    /// Creates a retention.
    package init(bytes: Int, days: Int) {
      self.bytes = bytes
      self.days = days
    }

    /// 4 MiB, 30 days.
    package static let standard = Retention(bytes: 4 << 20, days: 30)

    /// The most bytes that are kept.
    package var byteLimit: Int { days > 0 ? bytes : 0 }
  }

  /// The layout of the changes of one table.
  package struct Table: Equatable, Sendable {
    /// The local table.
    package let name: String
    /// The columns of its changes, by their local names; the rowid comes first if it is the key.
    package let columns: [String]

    /// Names a table and its columns.
    package init(name: String, columns: [String]) {
      self.name = name
      self.columns = columns
    }
  }

  /// The effects of one part of a diff.
  package typealias Part = (tables: [Table], changes: [UInt8])

  // MARK: Keeping

  /// Stores effects. Blocks are stored in the order of their contents.
  package static func record(_ block: EffectBlock, on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: "INSERT INTO main.buckia_effect(first, last, size, contents) VALUES (?1, ?2, ?3, ?4)",
      block.entries.lowerBound, block.entries.upperBound, Int64(block.size), block.contents)
  }

  /// Deletes effects beyond the retention.
  ///
  /// - Parameter time: The present time, in milliseconds since 1970.
  package static func prune(to retention: Retention, at time: Int64, on connection: borrowing SQLiteConnection) throws {
    let (age, isForEver) = Int64(clamping: retention.days).multipliedReportingOverflow(by: 86_400_000)
    if !isForEver {
      try connection.run(
        cached: """
          DELETE FROM main.buckia_effect WHERE effect <= (
            SELECT max(effect) FROM main.buckia_effect AS e JOIN main.buckia_ledger AS l ON l.entry = e.last
            WHERE l.recorded_at < ?1)
          """, time &- age)
    }
    // Without its beginning, the rest of a diff is of no use.
    try connection.run(
      cached: """
        WITH excess AS (
          SELECT effect, last FROM (
            SELECT effect, last, sum(size) OVER (ORDER BY effect DESC) AS kept FROM main.buckia_effect)
          WHERE kept > ?1 ORDER BY effect DESC LIMIT 1)
        DELETE FROM main.buckia_effect WHERE effect IN (
          SELECT e.effect FROM excess JOIN main.buckia_effect AS e
          WHERE e.effect <= excess.effect OR (e.first = excess.last AND e.last = excess.last))
        """, Int64(retention.bytes))
  }

  // MARK: Reading

  /// An applied diff.
  package struct Entry: Sendable {
    /// Its ledger entry.
    package let number: Int64
    /// The id, if the author has made the values of the rows, or they were recorded when they were made here; nil if a
    /// person here has made them by an undo, or by resolving a conflict with own values.
    package let diff: KSUID?
    /// True for a recorded change of this database.
    package let isRecorded: Bool
    /// True if it has written any rows.
    package let hasWritten: Bool
  }

  /// The diffs since the oldest one with recorded effects, oldest first.
  ///
  /// - Throws: `SQLiteError`.
  package static func entries(on connection: borrowing SQLiteConnection) throws -> [Entry] {
    guard try Ledger.exists(on: connection) else { return [] }
    var found: [Entry] = []
    try connection.forEachRow(
      of: """
        SELECT entry, diff, sender = ?1 AND file LIKE ?3 || '%' OR entry IN (
            SELECT entry FROM main.buckia_conflict WHERE outcome = ?2), inserted + updated + deleted > 0, sender = ?1
        FROM main.buckia_ledger
        WHERE state IN ('applied', 'held') AND entry >= (SELECT min(first) FROM main.buckia_effect) ORDER BY entry
        """, binding: [LedgerEntries.ownSender, ConflictOutcome.resolved.rawValue, LedgerEntry.undoPrefix]
    ) { row in
      let isDecidedHere = row.integer(at: 2) != 0
      found.append(
        Entry(
          number: row.integer(at: 0), diff: isDecidedHere ? nil : KSUID(row.text(at: 1) ?? ""),
          isRecorded: !isDecidedHere && row.integer(at: 4) != 0, hasWritten: row.integer(at: 3) != 0))
    }
    return found
  }

  // MARK: Taking back

  /// The ledger entry of the undo of a diff; nil if it was not undone.
  package static func undo(of entry: Int64, on connection: borrowing SQLiteConnection) throws -> Int64? {
    try connection.cachedInteger("SELECT entry FROM main.buckia_undo WHERE undone = ?1 AND is_active", entry)
  }

  /// The diff that an entry has taken back; nil for all entries that are no undo.
  package static func undone(by entry: Int64, on connection: borrowing SQLiteConnection) throws -> AppliedDiff? {
    try connection.first(ofCached: "SELECT undone FROM main.buckia_undo WHERE entry = ?1 AND is_active", entry) {
      AppliedDiff(entry: $0.integer(at: 0), id: nil, digest: "")
    }
  }

  /// The undone entries before another one, newest first, without the entry that this one undoes.
  package static func undone(before entry: Int64, on connection: borrowing SQLiteConnection) throws -> [Int64] {
    try connection.rows(
      ofCached:
        "SELECT undone FROM main.buckia_undo WHERE is_active AND undone < ?1 AND entry <> ?1 ORDER BY undone DESC",
      entry
    ) { $0.integer(at: 0) }
  }

  /// Records that one entry undoes another. If that one was an undo itself, the diff that it undid stands again.
  package static func recordUndo(_ entry: Int64, of undone: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "UPDATE main.buckia_undo SET is_active = 0 WHERE entry = ?1", undone)
    try connection.run(cached: "INSERT INTO main.buckia_undo VALUES (?1, ?2, 1)", entry, undone)
  }
}

/// One row of the table `buckia_effect`: the compressed effects of some diffs, or of a part of one.
package struct EffectBlock: Sendable {
  /// The usual size of a block in bytes of changes: enough to compress well, and little to decompress for one diff.
  package static let usualSize = 256 << 10

  /// The effects of one diff, or of a part of it.
  package struct Piece: Sendable {
    /// The beginning of a piece.
    package enum Beginning: Int64, Sendable {
      /// The diff.
      case diff = 0
      /// A part of a diff that was held.
      case part = 1
      /// The piece continues the one before it.
      case none = 2
      /// A held part of a diff whose effects are unknown.
      case unknown = 3
    }

    /// The diff's ledger entry.
    package var entry: Int64
    /// The beginning.
    package var beginning: Beginning
    /// The tables of the part that ends with this piece; nil if the next piece continues it.
    package var tables: [AppliedEffects.Table]?
    /// The changes, as a changeset. Those of a continuing piece follow the changes of the piece before it.
    package var changes: [UInt8]

    /// Creates a piece.
    package init(entry: Int64, _ beginning: Beginning, of tables: [AppliedEffects.Table]?, changes: [UInt8]) {
      self.entry = entry
      self.beginning = beginning
      self.tables = tables
      self.changes = changes
    }
  }

  /// The least and the greatest ledger entry of its pieces.
  let entries: ClosedRange<Int64>
  /// The uncompressed size of the changes, in bytes.
  package let size: Int
  /// The pieces, as one zstd frame.
  let contents: [UInt8]

  /// Compresses pieces.
  ///
  /// - Parameter pieces: At least one.
  package init(_ pieces: [Piece]) throws {
    let numbers = pieces.map(\.entry)
    entries = (numbers.min() ?? 0)...(numbers.max() ?? 0)
    size = pieces.reduce(0) { $0 + $1.changes.count }
    var writer = ChangesetWriter()
    for piece in pieces {
      writer.append(integer: piece.entry)
      writer.append(integer: piece.beginning.rawValue)
      writer.append(integer: Int64(piece.tables?.count ?? -1))
      for table in piece.tables ?? [] {
        writer.append(text: table.name)
        writer.append(integer: Int64(table.columns.count))
        for column in table.columns { writer.append(text: column) }
      }
      writer.append(blob: piece.changes)
    }
    contents = try ZstdBlock.compressed(writer.bytes)
  }

  /// The pieces, decompressed.
  package func pieces() throws -> [Piece] { try Self.pieces(in: contents) }

  /// Reads the pieces of a block.
  ///
  /// - Throws: `ZstdError`, `ChangesetError` when this is none.
  static func pieces(in contents: [UInt8]) throws -> [Piece] {
    let bytes = try ZstdBlock.decompressed(contents)
    var values = try ChangesetValue.record(bytes).compactMap { $0 }[...]
    func next<Value>(_ value: (ChangesetValue) -> Value?) throws -> Value {
      guard let found = values.popFirst().flatMap(value) else {
        throw ChangesetError(.truncated, offset: bytes.count)
      }
      return found
    }
    func integer() throws -> Int64 { try next { if case .integer(let number) = $0 { number } else { nil } } }
    func text() throws -> String { try next { if case .text(let text) = $0 { text } else { nil } } }
    var pieces: [Piece] = []
    while !values.isEmpty {
      let entry = try integer()
      let beginning = try Piece.Beginning(rawValue: integer())
      let tableCount = try integer()
      var tables: [AppliedEffects.Table] = []
      for _ in 0..<max(0, min(tableCount, Int64(values.count))) {
        let name = try text()
        let columnCount = try max(0, min(integer(), Int64(values.count)))
        tables.append(AppliedEffects.Table(name: name, columns: try (0..<columnCount).map { _ in try text() }))
      }
      let changes = try next { if case .blob(let bytes) = $0 { bytes } else { nil } }
      pieces.append(Piece(entry: entry, beginning ?? .unknown, of: tableCount < 0 ? nil : tables, changes: changes))
    }
    return pieces
  }
}

/// Reads the effects of one diff after the other.
package struct EffectReader {
  /// The block that was read last: diffs that were applied together share one.
  private var known: (number: Int64, pieces: [EffectBlock.Piece])?

  /// Creates a reader. The tables must not change while it is used.
  package init() {}

  /// The recorded effects of a diff by part, in the order in which they were made; empty unless all are recorded.
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
      parts.append((tables: tables, changes: changes))
      changes = []
    }
    return isKept ? parts : []
  }

  /// Calls `body` with the recorded effects of a diff, piece by piece, in the order in which they were made.
  ///
  /// - Parameter entry: The diff's ledger entry.
  /// - Returns: True if all effects are recorded. Otherwise the pieces must not be used.
  /// - Throws: `SQLiteError`; `LedgerError` when the tables have been written by somebody else; what `body` throws.
  package mutating func forEachPiece(
    of entry: Int64, on connection: borrowing SQLiteConnection, _ body: (EffectBlock.Piece) throws -> Void
  ) throws -> Bool {
    let blocks = try connection.rows(
      ofCached: "SELECT effect FROM main.buckia_effect WHERE last >= ?1 AND first <= ?1 ORDER BY effect", entry
    ) { $0.integer(at: 0) }
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
    let query = "SELECT contents FROM main.buckia_effect WHERE effect = ?1"
    guard let contents = try connection.first(ofCached: query, block, row: { $0.blob(at: 0) }) else { return [] }
    do {
      let pieces = try EffectBlock.pieces(in: contents)
      known = (block, pieces)
      return pieces
    } catch {
      throw LedgerError(alteredAt: connection.path)
    }
  }
}

/// Bytes in memory, as one zstd frame. (Diff files, which can be of any size, are compressed and read as streams.)
enum ZstdBlock {
  /// The fastest of zstd's usual levels: it writes several hundred megabytes a second.
  private static let level: Int32 = 1

  /// Compresses bytes.
  static func compressed(_ bytes: [UInt8]) throws(ZstdError) -> [UInt8] {
    try made(of: bytes, capacity: ZSTD_compressBound(bytes.count)) { target, source in
      ZSTD_compress(target.baseAddress, target.count, source.baseAddress, source.count, level)
    }
  }

  /// Decompresses a frame.
  ///
  /// - Throws: `ZstdError` for anything that ``compressed(_:)`` does not make.
  static func decompressed(_ frame: [UInt8]) throws(ZstdError) -> [UInt8] {
    let size = frame.withUnsafeBytes { ZSTD_getFrameContentSize($0.baseAddress, $0.count) }
    // Both marks for an unknown size are above this limit. A zstd block of 3 bytes unpacks to at most 128 KiB.
    guard size <= UInt64(frame.count) << 16 else { throw ZstdError(message: "no size") }
    return try made(of: frame, capacity: Int(size)) { target, source in
      ZSTD_decompress(target.baseAddress, target.count, source.baseAddress, source.count)
    }
  }

  /// The output of a zstd function.
  ///
  /// - Parameter make: Fills the target, and returns how many bytes it has written, or zstd's code of an error.
  private static func made(
    of bytes: [UInt8], capacity: Int, _ make: (UnsafeMutableBufferPointer<UInt8>, UnsafeRawBufferPointer) -> Int
  ) throws(ZstdError) -> [UInt8] {
    var result = 0
    let made = bytes.withUnsafeBytes { source in
      [UInt8](unsafeUninitializedCapacity: capacity) { target, count in
        result = make(target, source)
        count = ZSTD_isError(result) == 0 ? result : 0
      }
    }
    guard ZSTD_isError(result) == 0 else { throw ZstdError(message: String(cString: ZSTD_getErrorName(result))) }
    return made
  }
}

/// What zstd could not do.
struct ZstdError: Error {
  /// zstd's words.
  let message: String
}
