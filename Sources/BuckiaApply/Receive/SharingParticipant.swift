import BuckiaLedger
import SQLiteSchemas
import SQLiteConnections

/// Takes part when diffs of others are applied, in the same transaction: what is known of those with whom rows are shared depends on
/// them.
package protocol SharingParticipant: AnyObject {
  /// Whether changes are about streams: those are applied one by one.
  ///
  /// - Throws: `SQLiteError`.
  func concerns(_ changes: IncomingChanges) throws -> Bool
  /// Looks at changes before they are applied, and writes nothing: they may yet be refused.
  ///
  /// - Returns: The changes to be applied in their place.
  /// - Throws: `SQLiteError`, `ChangesetError`, `ByteStreamError`.
  func prepare(_ changes: IncomingChanges) throws -> IncomingChanges
  /// What the author of the changes that were prepared last knows of a row that has been edited here since: an edit of which they have not
  /// been told counts as later than what they have done.
  ///
  /// - Parameters:
  ///   - key: The values of the row's key, in the format of changesets.
  ///   - table: Its table.
  /// - Returns: The values of the edited columns as the author was told them, in the format of changesets, by the names of the columns in
  ///   lower case; empty where nothing was edited, or it is not known.
  /// - Throws: As ``prepare(_:)``.
  func valuesBeforeEdits(ofRow key: [UInt8], in table: TableName) throws -> [String: [UInt8]]
  /// Notes that a row was kept which the changes that were prepared last were to delete, since rows here refer to it.
  ///
  /// - Parameters:
  ///   - key: The values of the row's key as the changes have them.
  ///   - table: Its table.
  func didKeep(_ key: [UInt8], of table: TableName)
  /// True if it wants to know which rows the changes that were prepared last write because of others.
  var isWatching: Bool { get }
  /// Notes that the changes that were prepared last have written a row because of another one: by a foreign-key action, a trigger or a
  /// conflict.
  ///
  /// - Parameters:
  ///   - key: The values of the row's key as the local table has them, in the format of changesets.
  ///   - table: Its table.
  /// - Throws: `SQLiteError`; `LedgerError` when the ledger is damaged.
  func didWriteIndirectly(_ key: [UInt8], of table: TableName) throws
  /// Notes what follows from the changes that were prepared last, once they have been applied.
  ///
  /// - Parameter counts: What was done with the changes.
  /// - Returns: What is worth knowing of their stream.
  /// - Throws: As ``prepare(_:)``. They must be rolled back then.
  func finish(_ changes: IncomingChanges, counting counts: ApplyCounts) throws -> [Remark]
  /// Does what is to be done once before a transaction in which diffs were applied is committed.
  ///
  /// - Parameter time: The present time, in milliseconds since 1970.
  /// - Throws: As ``finish(_:)``; then all of it is rolled back.
  func settle(at time: Int64) throws
}
