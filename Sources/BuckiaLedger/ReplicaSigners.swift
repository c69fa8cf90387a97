import BuckiaBytes
import SQLiteConnections
import SQLiteSchemas

/// The keys that have signed as a replica, by the tables `buckia_stream_author` and `buckia_acknowledgement`.
///
/// A replica belongs to the key that first signed as it, and to the keys that have replaced that one. What another key signs as the same
/// replica counts as said by a replica apart, whose id has the key appended: no diff can claim such an id, since it is too long.
package enum ReplicaSigners {
  /// The bytes of the id of a replica.
  private static let length = 16

  /// The replica apart that stands for what a key signs as somebody else's replica.
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
  /// The first key counts, except where it is known to be worth less than the author's: that of a contact who was removed, or of a
  /// stranger where the author is trusted.
  ///
  /// - Parameters:
  ///   - claimed: The replica that the diff names.
  ///   - sender: The verified key in hex, as the ledger has it.
  ///   - senders: Knows whose keys these are.
  /// - Returns: The replica, and the key that has it, where that is another one.
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

  /// Makes a replica that of a sender who is believed to be it: what the sender has said of it before counts, and what others have does not.
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
      // Who was removed may be the same person, whose keys were lost.
      if said.isEmpty, senders.weight(of: other) == 0 { continue }
      try move(replica, to: apart(replica, signedBy: other), saidBy: other, on: connection)
    }
    for key in said { try move(apart(replica, signedBy: key), to: replica, saidBy: key, on: connection) }
  }

  /// Makes what a key has said as one replica said as another.
  private static func move(
    _ replica: [UInt8], to other: [UInt8], saidBy sender: String, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: """
        UPDATE OR REPLACE main.buckia_row_name SET replica = ?2
        WHERE replica = ?1 AND (claimant IS NULL OR claimant = '\(RowNameEntry.deleted)')
        """, replica, other)
    for table in ["buckia_stream_author", "buckia_acknowledgement", "buckia_state"] {
      try connection.run(
        cached: "UPDATE OR REPLACE main.\(table) SET replica = ?2 WHERE replica = ?1 AND sender = ?3", replica, other,
        sender)
    }
  }
}
