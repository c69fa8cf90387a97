import BuckiaBytes
import SQLiteConnections

/// The table `buckia_stream`: the places of recorded diffs in the streams of their senders.
///
/// A diff builds on its predecessor, and is applied after it. Only the ledger decides which diffs of a stream have been
/// applied, not the file that arrived last.
package enum StreamEntries {
  static let definition = """
    CREATE TABLE main.buckia_stream(
      entry INTEGER PRIMARY KEY,
      sender TEXT NOT NULL,
      stream BLOB NOT NULL,
      incarnation BLOB,
      sequence INTEGER NOT NULL,
      follows TEXT,
      replaces BLOB
    );
    CREATE INDEX main.buckia_stream_sequence ON buckia_stream(stream, sequence);
    CREATE INDEX main.buckia_stream_incarnation ON buckia_stream(incarnation);
    CREATE INDEX main.buckia_stream_replaces ON buckia_stream(replaces) WHERE replaces IS NOT NULL;
    CREATE INDEX main.buckia_stream_start ON buckia_stream(stream, sequence) WHERE follows IS NULL;
    """

  /// The standing of a diff by its place in its stream.
  package enum Standing: Equatable, Sendable {
    /// The diff comes next.
    case next
    /// It has to wait for this one, with this number.
    case missing(KSUID, sequence: Int64)
    /// An applied snapshot contains the diff.
    case contained(in: KSUID)
    /// Another diff that was applied here has its place.
    case fork(KSUID)
    /// The diff follows another file than the applied one with the same id.
    case otherPredecessor(KSUID)
    /// A snapshot that was applied here has ended its stream before.
    case ended(by: KSUID)
  }

  /// A diff of a stream that has been applied, or is held.
  private typealias Applied = (id: KSUID, sequence: Int64, digest: [UInt8])

  private static let columns = """
    SELECT l.diff, s.sequence, l.digest FROM main.buckia_stream AS s JOIN main.buckia_ledger AS l ON l.entry = s.entry
    WHERE s.sender = ?1 AND l.state IN ('applied', 'held')
    """

  /// The progress of a received stream.
  package struct Progress: Equatable, Sendable {
    /// The stream.
    package let stream: [UInt8]
    /// The incarnation whose stream it is.
    package let incarnation: [UInt8]
    /// The number up to which everything has been applied.
    package let through: Int64
  }

  /// How far the streams have been applied that were last heard of.
  ///
  /// - Throws: `SQLiteError` when the ledger cannot be read.
  package static func newest(_ limit: Int, on connection: borrowing SQLiteConnection) throws -> [Progress] {
    try connection.rows(
      of: """
        SELECT s.stream, s.incarnation, max(s.sequence) FROM main.buckia_stream AS s
        JOIN main.buckia_ledger AS l ON l.entry = s.entry
        WHERE l.state = 'applied' AND s.incarnation IS NOT NULL
          AND NOT EXISTS (
            SELECT 1 FROM main.buckia_stream AS h JOIN main.buckia_ledger AS hl ON hl.entry = h.entry
            WHERE h.sender = s.sender AND h.stream = s.stream AND h.sequence < s.sequence AND hl.state = 'held')
          AND NOT EXISTS (SELECT 1 FROM main.buckia_stream AS r WHERE r.sender = s.sender AND r.replaces = s.stream)
        GROUP BY s.sender, s.stream, s.incarnation ORDER BY max(s.entry) DESC LIMIT ?1
        """, Int64(limit)
    ) { row in
      Progress(stream: row.blob(at: 0), incarnation: row.blob(at: 1), through: row.integer(at: 2))
    }
  }

  /// The number of the last diff of a stream that was applied, or is held; 0 for none.
  ///
  /// - Throws: `SQLiteError`.
  package static func last(
    of stream: [UInt8], from sender: String, on connection: borrowing SQLiteConnection
  ) throws -> Int64 {
    try applied("AND s.stream = ?2 ORDER BY s.sequence DESC LIMIT 1", sender, stream, on: connection)?.sequence ?? 0
  }

  /// The first sender of a stream of an incarnation; nil if there is none.
  ///
  /// - Throws: `SQLiteError`.
  package static func firstSender(
    of incarnation: [UInt8], on connection: borrowing SQLiteConnection
  ) throws -> String? {
    try connection.first(
      ofCached: "SELECT sender FROM main.buckia_stream WHERE incarnation = ?1 ORDER BY entry LIMIT 1", incarnation
    ) { $0.text(at: 0) ?? "" }
  }

  /// The streams whose place snapshots of a sender have taken.
  ///
  /// - Throws: `SQLiteError`.
  package static func replaced(by sender: String, on connection: borrowing SQLiteConnection) throws -> Set<[UInt8]> {
    Set(
      try connection.rows(
        of: """
          SELECT s.replaces FROM main.buckia_stream AS s JOIN main.buckia_ledger AS l ON l.entry = s.entry
          WHERE s.replaces IS NOT NULL AND s.sender = ?1 AND l.state IN ('applied', 'held')
          """, sender
      ) { $0.blob(at: 0) })
  }

  // MARK: Looking

  /// The applied snapshot that replaced a stream and was signed with one of some keys; nil for none.
  ///
  /// - Throws: `SQLiteError` when the ledger cannot be read.
  package static func snapshot(
    replacing stream: [UInt8], signedBy keys: [String], on connection: borrowing SQLiteConnection
  ) throws -> KSUID? {
    for key in keys {
      if let snapshot = try applied("AND s.replaces = ?2", key, stream, on: connection) { return snapshot.id }
    }
    return nil
  }

  /// The standing of a diff by its place.
  ///
  /// - Parameters:
  ///   - place: The place, as the manifest has it.
  ///   - key: The identity of the diff, which is not applied yet.
  /// - Throws: `SQLiteError` when the ledger cannot be read.
  package static func standing(
    of place: StreamPlace, _ key: LedgerKey, on connection: borrowing SQLiteConnection
  ) throws -> Standing {
    guard let id = key.id else { return .next }
    if let snapshot = try applied("AND s.replaces = ?2", key.sender, place.stream, on: connection) {
      return id < snapshot.id ? .contained(in: snapshot.id) : .ended(by: snapshot.id)
    }
    let last = try applied(
      "AND s.stream = ?2 ORDER BY s.sequence DESC LIMIT 1", key.sender, place.stream, on: connection)
    guard let last, place.sequence <= last.sequence else {
      return try standing(of: place, key, after: last, on: connection)
    }
    let started = try applied(
      "AND s.stream = ?2 AND s.follows IS NULL AND s.sequence > ?3 LIMIT 1", key.sender, place.stream, place.sequence,
      on: connection)
    if let started { return .contained(in: started.id) }
    let other = try applied(
      "AND s.stream = ?2 AND s.sequence = ?3 LIMIT 1", key.sender, place.stream, place.sequence, on: connection)
    return .fork((other ?? last).id)
  }

  /// The standing of a diff whose place is after all applied ones.
  private static func standing(
    of place: StreamPlace, _ key: LedgerKey, after last: Applied?, on connection: borrowing SQLiteConnection
  ) throws -> Standing {
    guard !place.isSnapshot, let follows = place.follows else { return .next }
    guard let last, place.sequence == last.sequence + 1 else {
      return try missing(before: place, follows, after: last?.sequence ?? 0, key.sender, on: connection)
    }
    if follows.id != last.id { return .fork(last.id) }
    return follows.digest == last.digest ? .next : .otherPredecessor(last.id)
  }

  /// The first diff that is missing: the one that the first waiting one follows.
  private static func missing(
    before place: StreamPlace, _ follows: StreamPlace.Predecessor, after last: Int64, _ sender: String,
    on connection: borrowing SQLiteConnection
  ) throws -> Standing {
    let waiting = try connection.first(
      ofCached: """
        SELECT s.follows, s.sequence FROM main.buckia_stream AS s JOIN main.buckia_ledger AS l ON l.entry = s.entry
        WHERE s.sender = ?1 AND s.stream = ?2 AND s.sequence > ?3 AND s.sequence < ?4 AND l.state = 'waiting'
        ORDER BY s.sequence LIMIT 1
        """, sender, place.stream, last, place.sequence
    ) { (id: KSUID($0.text(at: 0) ?? ""), sequence: $0.integer(at: 1)) }
    guard let waiting, let id = waiting.id else { return .missing(follows.id, sequence: place.sequence - 1) }
    return .missing(id, sequence: waiting.sequence - 1)
  }

  private static func applied(
    _ condition: String, _ sender: String, _ stream: [UInt8], _ sequence: Int64? = nil,
    on connection: borrowing SQLiteConnection
  ) throws -> Applied? {
    let query = try connection.cached("\(columns) \(condition)")
    defer { query.statement.reset() }
    try query.statement.bind(sender, at: 0)
    try query.statement.bind(stream, at: 1)
    if let sequence { try query.statement.bind(sequence, at: 2) }
    guard try query.statement.step(), let id = query.statement.text(at: 0).flatMap({ KSUID($0) }) else { return nil }
    return (id: id, sequence: query.statement.integer(at: 1), digest: query.statement.blob(at: 2))
  }

  // MARK: Recording

  /// Deletes the place of a waiting diff, whose ledger entry is replaced.
  static func removeWaiting(_ key: LedgerKey, on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: """
        DELETE FROM main.buckia_stream WHERE entry IN (
          SELECT entry FROM main.buckia_ledger WHERE diff = ?1 AND digest = ?2 AND NOT raw AND state = 'waiting')
        """, key.id?.description, key.digest)
  }

  /// Writes the place of the diff whose ledger entry was written last.
  static func record(_ place: StreamPlace, of sender: String, on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: "INSERT INTO main.buckia_stream VALUES (last_insert_rowid(), ?1, ?2, ?3, ?4, ?5, ?6)", sender,
      place.stream, place.incarnation, place.sequence, place.isSnapshot ? nil : place.follows?.id.description,
      place.replaces)
  }
}

/// A diff's place in a stream: the diffs of one replica for one scope and audience, each of which names the one before it.
package struct StreamPlace: Equatable, Sendable {
  /// The diff before another one in its stream.
  package struct Predecessor: Equatable, Sendable {
    /// Its id.
    package let id: KSUID
    /// The digest of its manifest.
    package let digest: [UInt8]

    /// Names a diff.
    package init(id: KSUID, digest: [UInt8]) {
      self.id = id
      self.digest = digest
    }
  }

  /// The stream: 16 bytes.
  package let stream: [UInt8]
  /// The incarnation of the replica: 16 bytes; nil if the manifest names none.
  package let incarnation: [UInt8]?
  /// The diff's number in the stream, from 1.
  package let sequence: Int64
  /// The diff before it; nil for one that needs none.
  package let follows: Predecessor?
  /// The stream that a snapshot takes the place of; nil for none.
  package let replaces: [UInt8]?
  /// True if the diff replaces all earlier ones, which are not needed then.
  package let isSnapshot: Bool

  /// Creates a place from a manifest.
  package init(
    stream: [UInt8], incarnation: [UInt8]? = nil, sequence: Int64, follows: Predecessor?, replaces: [UInt8]? = nil,
    isSnapshot: Bool = false
  ) {
    self.stream = stream
    self.incarnation = incarnation
    self.sequence = sequence
    self.follows = follows
    self.replaces = replaces
    self.isSnapshot = isSnapshot
  }

  /// The same place in a stream that continues beside the one that it would replace.
  package var besideReplaced: StreamPlace {
    StreamPlace(stream: stream, incarnation: incarnation, sequence: sequence, follows: follows, isSnapshot: isSnapshot)
  }
}

/// The number of a table's rows in a stream.
public struct SharedRows: Hashable, Sendable, Codable {
  /// The table.
  public let table: String
  /// The number of rows with a key.
  public let rows: Int

  /// Describes a table's rows.
  package init(_ state: StateEntry) {
    table = state.table.text
    rows = Int(clamping: state.rowCount)
  }
}
