import BuckiaFormat
import BuckiaLedger
import SQLiteConnections

/// One shared database, the same in all copies of it: what keeps the diffs of another database out.
///
/// A database that belongs to one names it in its diffs, and refuses those of another. It is on request only: a database that belongs to
/// none takes all diffs, and diffs that name none are taken everywhere.
public struct Dataset: Hashable, Sendable, CustomStringConvertible {
  let id: DatasetID

  init(_ id: DatasetID) { self.id = id }

  /// Reads an id: 32 hexadecimal digits; nil for anything else.
  public init?(_ text: String) {
    guard let id = DatasetID(hex: text.lowercased()) else { return nil }
    self.id = id
  }

  /// The id: 32 hexadecimal digits.
  public var description: String { id.description }

  /// What the ledger of a database says; nil for none.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  static func read(on connection: borrowing SQLiteConnection) throws -> Dataset? {
    try LedgerSettings.dataset(on: connection).flatMap { DatasetID($0) }.map { Dataset($0) }
  }
}
