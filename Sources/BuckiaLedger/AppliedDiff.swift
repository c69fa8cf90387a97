import BuckiaBytes
import SQLiteConnections

/// A diff that has been applied, or is held, as the ledger knows it.
package struct AppliedDiff: Sendable {
  /// The number of its ledger entry.
  package let entry: Int64
  /// Its id; nil for a raw changeset without one.
  package let id: KSUID?
  /// SHA-256 that identifies it, in hex.
  package let digest: String

  /// What people call it: its id, else its digest.
  package var name: String { id?.description ?? digest }

  private static let columns = "SELECT entry, diff, lower(hex(digest)) FROM main.buckia_ledger"
  private static let isThere = "state IN ('applied', 'held')"

  /// The diffs with an id, or with a digest in hex; more than one where two senders have used one id.
  package static func all(named name: String, on connection: borrowing SQLiteConnection) throws -> [AppliedDiff] {
    try all(
      "\(columns) WHERE diff = ?1 AND \(isThere) UNION ALL "
        + "\(columns) WHERE raw AND lower(hex(digest)) = lower(?1) AND diff IS NOT ?1 AND \(isThere)", name,
      on: connection)
  }

  /// What the ledger has for the senders of diffs that have been applied.
  package static func senders(on connection: borrowing SQLiteConnection) throws -> [String] {
    var senders: [String] = []
    try connection.forEachRow(of: "SELECT DISTINCT sender FROM main.buckia_ledger WHERE \(isThere) ORDER BY 1") {
      senders.append($0.text(at: 0) ?? "")
    }
    return senders
  }

  /// All diffs of a sender, the newest first.
  ///
  /// - Parameter sender: The verified key in hex; empty for unsigned files.
  package static func all(of sender: String, on connection: borrowing SQLiteConnection) throws -> [AppliedDiff] {
    try all("\(columns) WHERE sender = ?1 AND \(isThere) ORDER BY entry DESC", sender, on: connection)
  }

  private static func all(
    _ query: String, _ value: String, on connection: borrowing SQLiteConnection
  ) throws -> [AppliedDiff] {
    var diffs: [AppliedDiff] = []
    try connection.forEachRow(of: query, binding: [value]) { row in
      diffs.append(
        AppliedDiff(
          entry: row.integer(at: 0), id: row.text(at: 1).flatMap { KSUID($0) }, digest: row.text(at: 2) ?? ""))
    }
    return diffs
  }

  /// Says what became of the diff since.
  ///
  /// - Parameter reason: A sentence; nil takes it away.
  package func note(_ reason: String?, on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "UPDATE main.buckia_ledger SET reason = ?2 WHERE entry = ?1", entry, reason)
  }
}
