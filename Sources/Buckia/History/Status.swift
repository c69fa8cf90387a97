import SQLiteConnections

extension DatabaseManager {
  /// Reports the state of the database: what has arrived, what waits or is open, and which replica it is. Changes
  /// nothing.
  ///
  /// ```swift
  /// let status = try database.status()
  /// for stream in status.streams { print(stream.sender, stream.sequence) }
  /// ```
  ///
  /// - Parameter includesWords: True to read all rows that are shared, for their word fingerprint (``StatusReport/words``).
  /// - Throws: `BuckiaError` when there is no such database, it cannot be read, or has a newer ledger.
  public func status(includesWords: Bool = false) throws -> StatusReport {
    try withReader { connection in
      // All of it is about one state.
      let transaction = try SQLiteTransaction(.deferred, on: connection)
      var report = try StatusReport(of: connection, in: home)
      if includesWords { report.words = try ComparedWords.all(naming: home.knownSenders(), on: connection) }
      transaction.rollback()
      return report
    }
  }
}

extension StatusReport {
  fileprivate init(of connection: borrowing SQLiteConnection, in home: BuckiaHome) throws {
    guard try Ledger.exists(on: connection) else { return }
    trust = try LedgerSettings.trust(on: connection)
    dataset = try Dataset.read(on: connection)
    ledger = try LedgerCounts(on: connection)
    newest = try LedgerEntries.newestID(on: connection)
    recordedAt = try LedgerEntries.newestTime(on: connection)
    streams = try StreamState.all(naming: home.knownSenders(), on: connection)
    self.shares = try ShareState.all(in: home, on: connection)
    var selection = ConflictSelection()
    conflicts = try ConflictRecord.counts(selection, on: connection).reduce(0) { $0 + $1.count }
    selection.isOpen = true
    openConflicts = try ConflictRecord.counts(selection, on: connection).reduce(0) { $0 + $1.count }
    if let warning = try Warning.clockBehind(on: connection) { warnings.append(warning) }
    let shares = try ShareEntry.all(on: connection)
    leftOut = try LeftOutEntry.all(on: connection).map { entry in
      let people = try shares.first { $0.number == entry.share }?.recipients ?? []
      return LeftOut(
        people: people.joined(separator: ", "), table: entry.table.text, rows: Int(clamping: entry.count))
    }
    warnings += try StateEntry.all(on: connection).filter { $0.difference != nil }.map { Warning(of: $0) }
    let (found, standing) = try ReplicaRegistration(of: connection, in: home).look(on: connection)
    replica = found.map { Replica($0, standing) }
  }
}

extension StatusReport.Replica {
  fileprivate init(_ replica: Buckia.Replica, _ standing: ReplicaStanding) {
    id = "\(replica.id)"
    incarnation = "\(replica.incarnation)"
    self.standing =
      switch standing {
      case .same, .moved, .otherHome, .new: .present
      case .restored: .restored
      case .copy: .copied
      case .unknown: .unknown
      }
  }
}

/// Where a database stands: what has arrived, what is open, and which replica it is.
public struct StatusReport: Hashable, Codable, Sendable {
  /// Which replica the database is.
  public struct Replica: Hashable, Codable, Sendable {
    /// What the ids are worth, from what home knows.
    public enum Standing: String, Codable, Sendable {
      /// The database is what it says.
      case present
      /// It is an earlier state of the database, as if a backup had been restored.
      case restored
      /// It is a copy of another database that is still there.
      case copied
      /// The home does not know the replica.
      case unknown
    }

    /// The replica: 32 digits.
    public let id: String
    /// Its incarnation: 32 digits.
    public let incarnation: String
    /// The validity of the ids. Unless it is `present`, the next call that writes begins a new incarnation.
    public let standing: Standing
  }

  /// Rows of a table that a share leaves out until they are mended.
  public struct LeftOut: Hashable, Codable, Sendable {
    /// With whom it is shared, for people.
    public let people: String
    /// The table.
    public let table: String
    /// The number of rows.
    public let rows: Int
  }

  /// The trust mode; nil for a database without a ledger.
  public internal(set) var trust: TrustMode?
  /// The replica; nil if the database is none yet.
  public internal(set) var replica: Replica?
  /// The shared database that it belongs to; nil for none.
  public internal(set) var dataset: Dataset?
  /// The numbers of diff files by state; nil without a ledger.
  public internal(set) var ledger: LedgerCounts?
  /// The greatest id that was applied; nil for none.
  public internal(set) var newest: KSUID?
  /// When the newest entry was written, in milliseconds since 1970; nil for none.
  public internal(set) var recordedAt: Int64?
  /// The shares, oldest first.
  public internal(set) var shares: [ShareState] = []
  /// The streams that others share with this database, the last active one first.
  public internal(set) var streams: [StreamState] = []
  /// The number of recorded conflicts.
  public internal(set) var conflicts = 0
  /// The number of open conflicts.
  public internal(set) var openConflicts = 0
  /// Rows that the last share of each scope has left out, since they refer to rows that the receivers would not have.
  public internal(set) var leftOut: [LeftOut] = []
  /// The words for the shared rows; empty unless they were requested.
  public internal(set) var words: [ComparedWords] = []
  /// Warnings.
  public internal(set) var warnings: [Warning] = []
}

/// What this database shares with some people: one scope, and how far they have it.
public struct ShareState: Hashable, Codable, Sendable {
  /// How far a recipient has applied a share, as their diffs say.
  public struct Acknowledgement: Hashable, Codable, Sendable {
    /// The recipient, for people.
    public let sender: String
    /// The number up to which they have applied all diffs.
    public let through: Int64
  }

  /// The names of the recipients.
  public let recipients: [String]
  /// The scope.
  public let scope: ShareScope
  /// The stream of its diffs: 32 digits.
  public let stream: String
  /// The number of the last diff; 0 before the first, as after an invitation.
  public let sequence: Int64
  /// The id of the last diff, which contains its time; nil before the first.
  public let id: KSUID?
  /// The tables with rows that are shared, and how many rows with a key were sent of each.
  public let tables: [SharedRows]
  /// The recipients that have acknowledged diffs.
  public let acknowledgements: [Acknowledgement]
}

extension ShareState {
  /// All shares of a database, the first one made first.
  static func all(in home: BuckiaHome, on connection: borrowing SQLiteConnection) throws -> [ShareState] {
    let (senders, contacts) = (try home.knownSenders(), try home.contacts())
    let states = Dictionary(grouping: try StateEntry.all(on: connection), by: \.stream)
    return try ShareEntry.all(on: connection).map { share in
      let acknowledgements = try AcknowledgementEntry.all(of: share.number, on: connection)
      return ShareState(
        recipients: try share.recipients.map { contacts.contact(named: $0)?.name ?? $0 },
        scope: try ShareScope(json: share.scope),
        stream: HexText.lowercase(share.stream), sequence: share.sequence, id: share.last?.id,
        tables: (states[share.stream] ?? []).map { SharedRows($0) },
        acknowledgements: acknowledgements.map {
          Acknowledgement(sender: senders.shown($0.sender), through: $0.through)
        })
    }
  }
}

/// A diff that was shared from this database.
public struct SentDiff: Hashable, Codable, Sendable, Identifiable {
  /// Its id.
  public let id: KSUID
  /// The names of the recipients.
  public let recipients: [String]
  /// Its number in the stream of the share.
  public let sequence: Int64
  /// The name of its file, without its folder.
  public let file: String
  /// When it was made, in milliseconds since 1970.
  public let madeAt: Int64
  /// True if all its files were delivered.
  public let isDelivered: Bool
}

extension DatabaseManager {
  /// The diffs that were shared from this database, the oldest first.
  ///
  /// - Parameter count: The most diffs: the newest ones; nil for all.
  /// - Throws: `BuckiaError` when the database cannot be read, or has a newer ledger.
  public func sentDiffs(newest count: Int? = nil) throws -> [SentDiff] {
    try withLedger(or: []) { connection in
      let shares = Dictionary(
        uniqueKeysWithValues: try ShareEntry.all(on: connection).map { ($0.number, try $0.recipients) })
      return try OutboxEntry.newest(count ?? .max, on: connection).map { sent in
        SentDiff(
          id: sent.entry.id, recipients: shares[sent.entry.share] ?? [], sequence: sent.entry.sequence,
          file: sent.entry.file, madeAt: sent.madeAt, isDelivered: sent.isDelivered)
      }
    }
  }
}

/// The rows that are shared with somebody, as they are now, in six words. Who has the same rows has the same words, so two people who read
/// them to each other know.
public struct ComparedWords: Hashable, Codable, Sendable {
  /// With whom, for people: those that something is shared with, or the sender of what has come.
  public let people: String
  /// The streams between the two: 32 digits each.
  public let streams: [String]
  /// The number of rows.
  public let rows: Int64
  /// The words; empty if `problem` gives the reason.
  public let words: [String]
  /// The digest behind the words: 32 digits.
  public let digest: String
  /// The reason for missing words: a scope can no longer be followed. Nil if there are words.
  public let problem: String?
}

extension ComparedWords {
  /// The words of all with whom something is shared. Tables of keys are made in the TEMP schema.
  static func all(naming senders: KnownSenders, on connection: borrowing SQLiteConnection) throws -> [ComparedWords] {
    let schema = try SchemaReader(connection)
    var found: [ComparedWords] = []
    for exchange in try LiveWords.exchanges(on: connection, with: senders) {
      let people = try people(in: exchange, senders)
      let streams = exchange.streams.map { HexText.lowercase($0) }
      do {
        let words = try LiveWords(of: exchange, schema, on: connection)
        found.append(
          ComparedWords(
            people: people, streams: streams, rows: words.rowCount, words: words.words,
            digest: HexText.lowercase(words.digest), problem: nil))
      } catch let error as ReplicationError {
        found.append(
          ComparedWords(people: people, streams: streams, rows: 0, words: [], digest: "", problem: error.message))
      }
    }
    return found
  }

  private static func people(in exchange: LiveWords.Exchange, _ senders: KnownSenders) throws -> String {
    let names = try Set(exchange.shares.flatMap { try $0.recipients }).sorted().joined(separator: ", ")
    guard let sender = exchange.sender else { return names }
    // Unsigned diffs name no sender, but the share that they acknowledge does.
    return sender.isEmpty && !names.isEmpty ? names : senders.shown(sender)
  }
}
