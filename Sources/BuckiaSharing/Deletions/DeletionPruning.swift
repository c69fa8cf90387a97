import BuckiaKSUID
import BuckiaLedger
import SQLiteConnections
import SQLiteSchemas

/// Forgets the deletions that everybody knows of with whom rows of their table are exchanged.
///
/// A deletion is kept so that what others have done before they knew of it does not bring the row back. Everybody knows of it who was told
/// by a share and has applied that, or has told of it themselves. Their stream holds nothing from before then that has not come.
final class DeletionPruning {
  private let connection: SQLiteConnection
  /// The time before which somebody must have been heard of last to count as gone, in milliseconds since 1970; nil where nobody does.
  private let cutoff: Int64?

  /// What is exchanged of one table.
  private struct Exchange {
    /// The shares that have sent its rows.
    var shares: [ShareEntry] = []
    /// The streams that have brought its rows.
    var streams: [Stream] = []
    /// The number up to which each share is known to all its recipients, or to those who are not gone.
    var bounds: [Int64: Int64] = [:]
  }

  private struct Stream: Hashable {
    let sender: String
    let stream: [UInt8]
  }

  /// Who knows of one deletion.
  private struct Notices {
    var told: [Int64: (diff: KSUID, sequence: Int64)] = [:]
    var heard: [Stream: KSUID] = [:]
  }

  /// - Parameters:
  ///   - silence: After how many days without a word somebody counts as gone; 0 for never.
  ///   - time: The present time, in milliseconds since 1970.
  init(silence: Int, at time: Int64, on connection: borrowing SQLiteConnection) {
    self.connection = SQLiteConnection(sharing: connection)
    cutoff = silence > 0 ? time - Int64(silence) * 86_400_000 : nil
  }

  /// Forgets what may be forgotten.
  ///
  /// - Throws: `SQLiteError`, `ChangesetError`; `JSONError` when the ledger is damaged.
  func run() throws {
    var clocks: [(number: Int64, table: TableName)] = []
    try connection.forEachRow(
      of: """
        SELECT clock, table_name FROM main.buckia_clock AS c WHERE EXISTS (SELECT 1 FROM main.buckia_told AS t WHERE t.clock = c.clock)
          OR EXISTS (SELECT 1 FROM main.buckia_heard AS h WHERE h.clock = c.clock)
        """
    ) { clocks.append(($0.integer(at: 0), TableName($0.text(at: 1) ?? ""))) }
    for clock in clocks {
      guard let exchange = try exchange(of: clock.table), try !travelsOtherwise(clock.number) else { continue }
      for (key, notices) in try self.notices(of: clock.number) {
        try forget(key, in: clock.number, notices, exchange)
      }
    }
  }

  /// Whether rows of a table are in diffs that belong to no stream: nobody can tell who has them.
  private func travelsOtherwise(_ clock: Int64) throws -> Bool {
    try connection.cachedInteger(
      """
      SELECT 1 FROM main.buckia_stamp AS s WHERE s.clock = \(clock) AND CASE WHEN s.is_own = 1
        THEN NOT EXISTS (SELECT 1 FROM main.buckia_outbox AS o WHERE o.diff = s.diff)
        ELSE EXISTS (
          SELECT 1 FROM main.buckia_ledger AS l WHERE l.diff = s.diff AND l.sender <> 'own'
            AND NOT EXISTS (SELECT 1 FROM main.buckia_stream AS p WHERE p.entry = l.entry)) END
      LIMIT 1
      """) != nil
  }

  // MARK: Who takes part

  /// What is exchanged of a table; nil where nobody could know of any deletion.
  private func exchange(of table: TableName) throws -> Exchange? {
    var exchange = Exchange()
    for share in try ShareEntry.all(on: connection)
    where try ShadowEntry.all(of: share.number, on: connection).contains(where: { $0.table == table }) {
      exchange.shares.append(share)
      exchange.bounds[share.number] = try RecipientProgress.through(share, on: connection) { replica, through in
        try self.isGone(replica.sender, replica.replica) ? max(through, self.toldLongAgo(by: share)) : through
      }
    }
    let query = try connection.cached("SELECT sender, stream FROM main.buckia_vouch WHERE table_name = ?1")
    defer { query.statement.reset() }
    try query.statement.bind(table.text, at: 0)
    while try query.statement.step() {
      exchange.streams.append(Stream(sender: query.statement.text(at: 0) ?? "", stream: query.statement.blob(at: 1)))
    }
    return exchange.shares.isEmpty && exchange.streams.isEmpty ? nil : exchange
  }

  /// Whether nothing has been heard of a replica for so long that nobody waits for it.
  private func isGone(_ sender: String, _ replica: [UInt8]) throws -> Bool {
    guard let cutoff else { return false }
    let query = try connection.cached(
      """
      SELECT max(l.recorded_at) FROM main.buckia_stream_author AS a
      JOIN main.buckia_stream AS s ON s.stream = a.stream AND s.sender = a.sender
      JOIN main.buckia_ledger AS l ON l.entry = s.entry
      WHERE a.sender = ?1 AND a.replica = ?2
      """)
    defer { query.statement.reset() }
    try query.statement.bind(sender, at: 0)
    try query.statement.bind(replica, at: 1)
    return try query.statement.step() && !query.statement.isNull(at: 0) && query.statement.integer(at: 0) < cutoff
  }

  /// Whether nothing has been heard of whoever has made a stream for so long.
  private func isGone(_ stream: Stream) throws -> Bool {
    guard let replica = try author(of: stream) else { return false }
    return try isGone(stream.sender, replica)
  }

  /// The replica that has made a stream; nil where its diffs do not say.
  private func author(of stream: Stream) throws -> [UInt8]? {
    let query = try connection.cached("SELECT replica FROM main.buckia_stream_author WHERE sender = ?1 AND stream = ?2")
    defer { query.statement.reset() }
    try query.statement.bind(stream.sender, at: 0)
    try query.statement.bind(stream.stream, at: 1)
    return try query.statement.step() ? query.statement.blob(at: 0) : nil
  }

  /// The number up to which a share was made so long ago.
  private func toldLongAgo(by share: ShareEntry) throws -> Int64 {
    guard let cutoff else { return 0 }
    let query = try connection.cached(
      "SELECT min(sequence) FROM main.buckia_outbox WHERE share = ?1 AND made_at >= ?2")
    defer { query.statement.reset() }
    try query.statement.bind(share.number, at: 0)
    try query.statement.bind(cutoff, at: 1)
    guard try query.statement.step(), !query.statement.isNull(at: 0) else { return share.sequence }
    return query.statement.integer(at: 0) - 1
  }

  // MARK: Deletions

  /// Who knows of the deletions of a clock, by the keys of the rows.
  private func notices(of clock: Int64) throws -> [[UInt8]: Notices] {
    var found: [[UInt8]: Notices] = [:]
    try connection.forEachRow(of: "SELECT key, share, diff, sequence FROM main.buckia_told WHERE clock = \(clock)") {
      guard let diff = $0.text(at: 2).flatMap({ KSUID($0) }) else { return }
      found[$0.blob(at: 0), default: Notices()].told[$0.integer(at: 1)] = (diff, $0.integer(at: 3))
    }
    try connection.forEachRow(of: "SELECT key, sender, stream, diff FROM main.buckia_heard WHERE clock = \(clock)") {
      guard let diff = $0.text(at: 3).flatMap({ KSUID($0) }) else { return }
      let stream = Stream(sender: $0.text(at: 1) ?? "", stream: $0.blob(at: 2))
      found[$0.blob(at: 0), default: Notices()].heard[stream] = diff
    }
    return found
  }

  private func forget(_ key: [UInt8], in clock: Int64, _ notices: Notices, _ exchange: Exchange) throws {
    guard let deletion = try RowClocks.deletion(of: key, in: clock, on: connection) else {
      // The row is there again.
      return try drop(key, in: clock)
    }
    let told = notices.told.filter { $0.value.diff >= deletion }.mapValues(\.sequence)
    let heard = notices.heard.filter { $0.value >= deletion }
    for share in exchange.shares {
      if let sequence = told[share.number], sequence <= exchange.bounds[share.number] ?? 0 { continue }
      // What came from the only recipient is not sent back.
      guard try share.isForOne(), try isTold(by: heard.keys, for: share.number) else { return }
    }
    for stream in exchange.streams where heard[stream] == nil {
      guard try told.contains(where: { try knows(stream, of: $0.key, at: $0.value) }) else { return }
    }
    try RowClocks.forgetDeletion(of: key, in: clock, on: connection)
    try ForgottenDeletions.note(deletion, in: clock, toldAt: told, on: connection)
    try drop(key, in: clock)
  }

  /// Whether whoever makes a stream had applied a diff of a share when they made its last diff, or is gone and will have to.
  private func knows(_ stream: Stream, of share: Int64, at sequence: Int64) throws -> Bool {
    let through = try DeletionNotices.acknowledged(share, in: stream.stream, from: stream.sender, on: connection)
    if sequence <= through { return true }
    guard try isGone(stream), try isRecipient(stream, of: share),
      let entry = try ShareEntry.all(on: connection).first(where: { $0.number == share })
    else { return false }
    return try sequence <= toldLongAgo(by: entry)
  }

  /// Whether each replica that has acknowledged a share tells of a deletion itself.
  private func isTold(by streams: some Collection<Stream>, for share: Int64) throws -> Bool {
    let replicas = try AcknowledgementEntry.all(of: share, on: connection)
    return try !replicas.isEmpty
      && replicas.allSatisfy { replica in
        try streams.contains { try $0.sender == replica.sender && author(of: $0) == replica.replica }
      }
  }

  /// Whether whoever makes a stream has ever acknowledged a share. Those who do not sign are told apart by their replicas.
  private func isRecipient(_ stream: Stream, of share: Int64) throws -> Bool {
    let replica = try author(of: stream)
    return try AcknowledgementEntry.all(of: share, on: connection).contains {
      $0.sender == stream.sender && (!stream.sender.isEmpty || $0.replica == replica)
    }
  }

  private func drop(_ key: [UInt8], in clock: Int64) throws {
    for table in ["buckia_told", "buckia_heard"] {
      try connection.run(cached: "DELETE FROM main.\(table) WHERE clock = ?1 AND key = ?2", clock, key)
    }
  }
}
