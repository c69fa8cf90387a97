#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteConnections

extension Remark {
  /// Tells of a wall clock that is behind what the ledger of a database has seen, by more than clocks may differ.
  ///
  /// Diffs that are made meanwhile are in order all the same, but others take them for files from the future, and let them wait.
  ///
  /// - Parameters:
  ///   - id: An id that was made just now; nil for none. It is greater than all that were made before it.
  ///   - connection: The database.
  ///   - now: The wall clock, in milliseconds since 1970.
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  static func clockBehind(
    _ id: KSUID? = nil, on connection: borrowing SQLiteConnection, now: Int64 = WallClock.unixMilliseconds
  ) throws -> Remark? {
    let ids = try [id, LedgerEntries.newestID(on: connection)].compactMap { $0?.unixSeconds }
    let newest = try (ids + [LedgerEntries.newestTime(on: connection)].compactMap { $0.map { $0 / 1_000 } }).max()
    let seconds = now / 1_000
    guard let newest, newest > seconds + KSUIDClock.tolerance else { return nil }
    return Remark(.clockBehind, text(seconds), text(newest))
  }

  private static func text(_ unixSeconds: Int64) -> String {
    Date(timeIntervalSince1970: Double(unixSeconds)).formatted(.iso8601)
  }
}
