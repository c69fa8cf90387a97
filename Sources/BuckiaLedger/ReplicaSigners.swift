import BuckiaBytes
import SQLiteConnections
import SQLiteSchemas

/// The keys that have signed as a replica, by the tables `buckia_stream_author` and `buckia_acknowledgement`.
///
/// A replica belongs to the key that first signed as it, and to keys that have replaced that one. Diffs of another key
/// that claim the same replica count as those of a separate replica, whose id has the key appended. No diff can claim
/// such an id, because it is too long.
package enum ReplicaSigners {
  /// The bytes of the id of a replica.
  private static let length = 16

  /// The separate replica for a key that claims another key's replica.
  private static func apart(_ replica: [UInt8], signedBy sender: String) -> [UInt8] {
    replica + Array((sender.isEmpty ? "unsigned" : sender).utf8)
  }

  /// The replica that the author of a replica apart claims to be; nil for a replica that is believed.
  package static func claimed(by replica: [UInt8]) -> [UInt8]? {
    replica.count > length ? Array(replica.prefix(length)) : nil
  }

  /// The replicas apart that the recipients of a share are here.
  ///
  /// - Throws: `SQLiteError`.
  package static func apart(readersOf share: Int64, on connection: borrowing SQLiteConnection) throws -> [[UInt8]] {
    try connection.rows(
      of: """
        SELECT DISTINCT a.replica FROM main.buckia_recipient AS r JOIN main.buckia_stream_author AS a ON a.sender = r.key
        WHERE r.share = ?1 AND length(a.replica) > \(length)
        """, share
    ) { $0.blob(at: 0) }
  }

  /// The keys that have signed as a replica; empty for one that does not sign. Copies and datasets have no key.
  private static func all(of replica: [UInt8], on connection: borrowing SQLiteConnection) throws -> [String] {
    try connection.rows(
      ofCached: """
        SELECT sender FROM main.buckia_stream_author WHERE replica = ?1 AND length(sender) IN (0, 64)
        UNION SELECT sender FROM main.buckia_acknowledgement WHERE replica = ?1
        """, replica
    ) { $0.text(at: 0) ?? "" }
  }

  /// The replica as which the author of a diff is believed.
  ///
  /// The first key counts, unless its standing is lower than the author's: that of a removed contact, or of a stranger
  /// against a trusted author.
  ///
  /// - Parameters:
  ///   - claimed: The replica that the diff names.
  ///   - sender: The verified key in hex, as the ledger has it.
  ///   - senders: Knows whose keys these are.
  /// - Returns: The replica, and its owner's key if that is another one.
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package static func believed(
    _ claimed: [UInt8], from sender: String, _ senders: KnownSenders, on connection: borrowing SQLiteConnection
  ) throws -> (replica: [UInt8], other: String?) {
    guard try Ledger.exists(on: connection) else {
      return (claimed, nil)
    }
    if !sender.isEmpty, try ReplicaIdentity.read(on: connection)?.replica == claimed, !senders.isOwn(sender) {
      return (apart(claimed, signedBy: sender), LedgerEntries.ownSender)
    }
    let known = try all(of: claimed, on: connection)
    guard !known.contains(where: { senders.areOne($0, sender) }),
      let other = known.first(where: { senders.weight(of: $0) >= senders.weight(of: sender) })
    else { return (claimed, nil) }
    return (apart(claimed, signedBy: sender), other)
  }

  /// Assigns a replica to a sender who is believed to be it: the sender's earlier claims count, and those of others do
  /// not.
  ///
  /// - Throws: `SQLiteError`.
  package static func settle(
    _ replica: [UInt8], of sender: String, _ senders: KnownSenders, on connection: borrowing SQLiteConnection
  ) throws {
    guard claimed(by: replica) == nil else { return }
    let said = try ([sender] + senders.keys(before: sender)).filter {
      try !all(of: apart(replica, signedBy: $0), on: connection).isEmpty
    }
    for other in try all(of: replica, on: connection) where !senders.areOne(other, sender) {
      // A removed contact may be the same person, who has lost their keys.
      if said.isEmpty, senders.weight(of: other) == 0 { continue }
      try move(replica, to: apart(replica, signedBy: other), saidBy: other, on: connection)
    }
    for key in said { try move(apart(replica, signedBy: key), to: replica, saidBy: key, on: connection) }
  }

  /// Moves the records of a key from one replica to another.
  private static func move(
    _ replica: [UInt8], to other: [UInt8], saidBy sender: String, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: """
        UPDATE OR REPLACE main.buckia_origin_key SET replica = ?2
        WHERE replica = ?1 AND (claimant IS NULL OR claimant = '\(OriginKeyEntry.deleted)')
        """, replica, other)
    for table in ["buckia_stream_author", "buckia_acknowledgement", "buckia_state"] {
      try connection.run(
        cached: "UPDATE OR REPLACE main.\(table) SET replica = ?2 WHERE replica = ?1 AND sender = ?3", replica, other,
        sender)
    }
  }
}
