import BuckiaBytes
import BuckiaLedger
import BuckiaSharing
import SQLiteConnections

/// What this database shares with some people: one scope, and how far they have it.
public struct ShareState: Equatable, Sendable {
  /// How far a recipient has applied a share, as their diffs say.
  public struct Acknowledgement: Equatable, Sendable {
    /// The recipient, for people.
    public let sender: String
    /// The number up to which they have applied all diffs.
    public let through: Int64
  }

  /// The names of the recipients.
  public let recipients: [String]
  /// What is shared.
  public let scope: ShareScope
  /// The stream of its diffs: 32 digits.
  public let stream: String
  /// The number of the last diff; 0 where nothing was sent yet, as after an invitation.
  public let sequence: Int64
  /// The id of the last diff, which says when it was made; nil where nothing was sent yet.
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
public struct SentDiff: Equatable, Sendable, Identifiable {
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
  /// True if all its files were written to where they go.
  public let isDelivered: Bool
}

extension DatabaseManager {
  /// The diffs that were shared from this database, the oldest first.
  ///
  /// - Parameter count: How many are wanted at most: the newest; nil for all.
  /// - Throws: `BuckiaError` when the database cannot be read, or has a newer ledger.
  public func sentDiffs(newest count: Int? = nil) throws -> [SentDiff] {
    try withReader { connection in
      guard try Ledger.exists(on: connection) else { return [] }
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
