import BuckiaBytes
import SQLiteConnections

/// How far the ledger of a database has come: it never goes back, unless an earlier state of the database is restored.
package struct LedgerProgress: Equatable, Sendable {
  /// The greatest number of an entry; 0 where there is none.
  package let entry: Int64
  /// The newest diff that was made from the database, as far as it is noted; nil for none.
  package let made: KSUID?

  /// Takes both.
  package init(entry: Int64 = 0, made: KSUID? = nil) {
    self.entry = entry
    self.made = made
  }

  /// Reads how far the ledger of a database has come.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package static func read(on connection: borrowing SQLiteConnection) throws -> LedgerProgress {
    guard try Ledger.exists(on: connection) else { return LedgerProgress() }
    let entry = try connection.cachedInteger("SELECT max(entry) FROM main.buckia_ledger") ?? 0
    let made = try connection.text("SELECT value FROM main.buckia_settings WHERE name = 'made'")
    return LedgerProgress(entry: max(0, entry), made: made.flatMap { KSUID($0) })
  }

  /// Whether this is an earlier state than another one.
  package func isBehind(_ other: LedgerProgress) -> Bool {
    entry < other.entry || other.made.map { theirs in made.map { $0 < theirs } ?? true } ?? false
  }

  /// Notes in the ledger of a database that a diff has been made from it.
  ///
  /// - Throws: `SQLiteError`.
  package static func note(made id: KSUID, on connection: borrowing SQLiteConnection) throws {
    try LedgerSettings.set("made", to: id.description, on: connection)
  }
}
