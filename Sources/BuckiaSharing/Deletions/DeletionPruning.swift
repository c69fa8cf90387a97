import BuckiaBytes
import BuckiaLedger
import SQLiteConnections
import SQLiteSchemas

/// Collects tombstones: forgets the deletions of which all replicas know that exchange rows of the table.
///
/// A tombstone keeps changes that were made without knowledge of the deletion from bringing the row back. A replica
/// knows of a deletion if it has applied a share that has sent it, or has sent the deletion itself. Its stream then has
/// no earlier changes that are still to arrive.
final class DeletionPruning {
  /// Deletions of which another replica may have learned. Apart from the passing of time, only these can become
  /// collectable.
  final class Candidates {
    private let sets: KeySets
    private var keys: [Int64: KeySet] = [:]
    private var progress: [Int64: ClosedRange<Int64>] = [:]

    init(on connection: borrowing SQLiteConnection) { sets = KeySets("deletions", on: connection) }

    /// Adds a deletion that a stream has sent.
    func note(_ key: [UInt8], in clock: Int64) throws { try keys.insert(key, of: clock, in: sets) }

    /// Adds the deletions in diffs of a share that a recipient has applied.
    func noteProgress(_ sequences: ClosedRange<Int64>, of share: Int64) {
      let known = progress[share] ?? sequences
      progress[share] =
        min(known.lowerBound, sequences.lowerBound)...max(known.upperBound, sequences.upperBound)
    }

    /// The keys of the deleted rows, by clock.
    func byClock(on connection: borrowing SQLiteConnection) throws -> [Int64: KeySet] {
      for (share, sequences) in progress {
        try TombstoneAcknowledgements.forEachSent(in: sequences, of: share, on: connection) { try note($1, in: $0) }
      }
      progress = [:]
      return keys
    }

    func clear() throws {
      keys = [:]
      progress = [:]
      try sets.clear()
    }
  }

  /// The interval between two passes over all deletions, in milliseconds. Between passes, silent replicas may have
  /// expired, or stopped taking part.
  private static let interval: Int64 = 86_400_000
  /// The number of deletions in a batch.
  private static let pageSize = 1_000

  private let connection: SQLiteConnection
  private let time: Int64
  /// A replica expires if the last diff from it is older than this time, in milliseconds since 1970; nil if replicas
  /// never expire.
  private let cutoff: Int64?

  /// The shares and streams of one table.
  private struct Exchange {
    /// The shares that have sent rows of the table.
    var shares: [ShareEntry] = []
    /// The streams that have sent rows of the table to this replica.
    var streams: [Stream] = []
    /// The number up to which all recipients of each share, except expired ones, have applied it.
    var bounds: [Int64: Int64] = [:]
  }

  private struct Stream: Hashable {
    let sender: String
    let stream: [UInt8]
  }

  /// - Parameters:
  ///   - silence: The days without a diff after which a replica expires; 0 for never.
  ///   - time: The present time, in milliseconds since 1970.
  init(silence: Int, at time: Int64, on connection: borrowing SQLiteConnection) {
    self.connection = SQLiteConnection(sharing: connection)
    self.time = time
    cutoff = silence > 0 ? time - Int64(silence) * 86_400_000 : nil
  }

  /// Collects what it can of some deletions, and of all deletions once a day.
  ///
  /// - Throws: `SQLiteError`, `ChangesetError`; `JSONError` when the ledger is damaged.
  func run(_ candidates: Candidates) throws {
    let candidates = try candidates.byClock(on: connection)
    let last = try LedgerSettings.pruningTime(on: connection)
    let isDue = !(last...last + Self.interval).contains(time)
    guard isDue || !candidates.isEmpty else { return }
    let clocks = try connection.rows(
      of: """
        SELECT clock, table_name FROM main.buckia_clock AS c WHERE EXISTS (SELECT 1 FROM main.buckia_sent_deletion AS t WHERE t.clock = c.clock)
          OR EXISTS (SELECT 1 FROM main.buckia_received_deletion AS h WHERE h.clock = c.clock)
        """
    ) { (number: $0.integer(at: 0), table: TableName($0.text(at: 1) ?? "")) }
    for clock in clocks where isDue || candidates[clock.number] != nil {
      guard let exchange = try exchange(of: clock.table), try !travelsOtherwise(clock.number) else { continue }
      guard isDue else {
        try candidates[clock.number]?.forEach { try forget($0, in: clock.number, exchange) }
        continue
      }
      var last: [UInt8]?
      repeat {
        let keys = try TombstoneAcknowledgements.keys(
          in: clock.number, behind: last, limit: Self.pageSize, on: connection)
        for key in keys { try forget(key, in: clock.number, exchange) }
        last = keys.last
      } while last != nil
    }
    if isDue, !clocks.isEmpty { try LedgerSettings.setPruningTime(time, on: connection) }
  }

  /// True if rows of a table were in diffs outside of streams. It is then unknown which replicas have them.
  private func travelsOtherwise(_ clock: Int64) throws -> Bool {
    try connection.hasRow(
      cached: """
        SELECT 1 FROM main.buckia_row_version AS s WHERE s.clock = \(clock) AND CASE WHEN s.is_own = 1
          THEN NOT EXISTS (SELECT 1 FROM main.buckia_outbox AS o WHERE o.diff = s.diff)
          ELSE EXISTS (
            SELECT 1 FROM main.buckia_ledger AS l WHERE l.diff = s.diff AND l.sender <> 'own'
              AND NOT EXISTS (SELECT 1 FROM main.buckia_stream AS p WHERE p.entry = l.entry)) END
        LIMIT 1
        """)
  }

  // MARK: Who takes part

  /// The shares and streams of a table; nil if no other replica could know of a deletion.
  private func exchange(of table: TableName) throws -> Exchange? {
    var exchange = Exchange()
    for share in try ShareEntry.all(on: connection)
    where try BaselineEntry.all(of: share.number, on: connection).contains(where: { $0.table == table }) {
      exchange.shares.append(share)
      exchange.bounds[share.number] = try share.throughAll(on: connection) { replica, through in
        try self.isGone(replica.sender, replica.replica) ? max(through, self.sentLongAgo(by: share)) : through
      }
    }
    let query = "SELECT sender, stream FROM main.buckia_provenance WHERE table_name = ?1"
    try connection.forEachRow(ofCached: query, binding: [table.text]) {
      exchange.streams.append(Stream(sender: $0.text(at: 0) ?? "", stream: $0.blob(at: 1)))
    }
    return exchange.shares.isEmpty && exchange.streams.isEmpty ? nil : exchange
  }

  /// True if a replica has expired.
  private func isGone(_ sender: String, _ replica: [UInt8]) throws -> Bool {
    guard let cutoff else { return false }
    let heard = try connection.cachedInteger(
      """
      SELECT max(l.recorded_at) FROM main.buckia_stream_author AS a
      JOIN main.buckia_stream AS s ON s.stream = a.stream AND s.sender = a.sender
      JOIN main.buckia_ledger AS l ON l.entry = s.entry
      WHERE a.sender = ?1 AND a.replica = ?2
      """, sender, replica)
    return heard.map { $0 < cutoff } ?? false
  }

  /// True if the author of a stream has expired.
  private func isGone(_ stream: Stream) throws -> Bool {
    guard let replica = try author(of: stream) else { return false }
    return try isGone(stream.sender, replica)
  }

  /// The replica that is the author of a stream; nil if its diffs do not name it.
  private func author(of stream: Stream) throws -> [UInt8]? {
    let query = "SELECT replica FROM main.buckia_stream_author WHERE sender = ?1 AND stream = ?2"
    return try connection.first(ofCached: query, stream.sender, stream.stream) { $0.blob(at: 0) }
  }

  /// The number of the last diff of a share that is older than the cutoff.
  private func sentLongAgo(by share: ShareEntry) throws -> Int64 {
    guard let cutoff else { return 0 }
    let later = try connection.cachedInteger(
      "SELECT min(sequence) FROM main.buckia_outbox WHERE share = ?1 AND made_at >= ?2", share.number, cutoff)
    return later.map { $0 - 1 } ?? share.sequence
  }

  // MARK: Deletions

  private func forget(_ key: [UInt8], in clock: Int64, _ exchange: Exchange) throws {
    guard let deletion = try RowClocks.deletion(of: key, in: clock, on: connection) else {
      // The row is there again.
      return try drop(key, in: clock)
    }
    // The shares that have sent the deletion, each with the number of the diff, and the streams that have sent it here.
    var sent: [Int64: Int64] = [:]
    let telling = "SELECT share, sequence, diff FROM main.buckia_sent_deletion WHERE clock = ?1 AND key = ?2"
    try connection.forEachRow(ofCached: telling, binding: [clock, key]) { row in
      guard let diff = row.text(at: 2).flatMap({ KSUID($0) }), diff >= deletion else { return }
      sent[row.integer(at: 0)] = row.integer(at: 1)
    }
    var heard: Set<Stream> = []
    let hearing = "SELECT sender, stream, diff FROM main.buckia_received_deletion WHERE clock = ?1 AND key = ?2"
    try connection.forEachRow(ofCached: hearing, binding: [clock, key]) { row in
      guard let diff = row.text(at: 2).flatMap({ KSUID($0) }), diff >= deletion else { return }
      heard.insert(Stream(sender: row.text(at: 0) ?? "", stream: row.blob(at: 1)))
    }
    for share in exchange.shares {
      if let sequence = sent[share.number], sequence <= exchange.bounds[share.number] ?? 0 { continue }
      // A deletion from the only recipient is not sent back.
      guard try share.isForOne(), try isTold(by: heard, for: share.number) else { return }
    }
    for stream in exchange.streams where !heard.contains(stream) {
      guard try sent.contains(where: { try knows(stream, of: $0.key, at: $0.value) }) else { return }
    }
    try RowClocks.forgetDeletion(of: key, in: clock, on: connection)
    try ForgottenDeletions.note(deletion, in: clock, sentAt: sent, on: connection)
    try drop(key, in: clock)
  }

  /// True if the author of a stream had applied a diff of a share when making the stream's last diff, or has expired
  /// and must apply it before sending more.
  private func knows(_ stream: Stream, of share: Int64, at sequence: Int64) throws -> Bool {
    let through = try TombstoneAcknowledgements.acknowledged(
      share, in: stream.stream, from: stream.sender, on: connection)
    if sequence <= through { return true }
    guard try isGone(stream), try isRecipient(stream, of: share),
      let entry = try ShareEntry.all(on: connection).first(where: { $0.number == share })
    else { return false }
    return try sequence <= sentLongAgo(by: entry)
  }

  /// True if each replica that has acknowledged a share has sent the deletion itself.
  private func isTold(by streams: Set<Stream>, for share: Int64) throws -> Bool {
    let replicas = try AcknowledgementEntry.all(of: share, on: connection)
    return try !replicas.isEmpty
      && replicas.allSatisfy { replica in
        try streams.contains { try $0.sender == replica.sender && author(of: $0) == replica.replica }
      }
  }

  /// True if the author of a stream has ever acknowledged a share. Authors who do not sign are identified by their
  /// replicas.
  private func isRecipient(_ stream: Stream, of share: Int64) throws -> Bool {
    let replica = try author(of: stream)
    return try AcknowledgementEntry.all(of: share, on: connection).contains {
      $0.sender == stream.sender && (!stream.sender.isEmpty || $0.replica == replica)
    }
  }

  private func drop(_ key: [UInt8], in clock: Int64) throws {
    for table in ["buckia_sent_deletion", "buckia_received_deletion"] {
      try connection.run(cached: "DELETE FROM main.\(table) WHERE clock = ?1 AND key = ?2", clock, key)
    }
  }
}
