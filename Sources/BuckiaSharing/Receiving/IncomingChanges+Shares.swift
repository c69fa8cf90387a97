import BuckiaApply
import BuckiaLedger
import SQLiteConnections

extension StreamClaims {
  /// The number up to which the author of a diff says that they have applied a share; 0 where they do not say.
  func acknowledged(_ share: ShareEntry) -> Int64 {
    acknowledgements.filter { $0.stream == share.stream && $0.incarnation == share.incarnation }.map(\.through).max()
      ?? 0
  }
}

extension IncomingChanges {
  /// The shares with the author of a diff alone of which they have applied something, as this diff says or one before it.
  ///
  /// - Throws: `SQLiteError`; `JSONError` when the ledger is damaged.
  func sharesWithAuthor(on connection: borrowing SQLiteConnection) throws -> [ShareEntry] {
    guard let replica = claims.replica else { return [] }
    var found: [ShareEntry] = []
    for share in try ShareEntry.all(on: connection) where try share.isForOne() {
      let isTold =
        try min(claims.acknowledged(share), share.sequence) > 0
        || AcknowledgementEntry.all(of: share.number, on: connection).contains {
          $0.sender == key.sender && $0.replica == replica && $0.through > 0
        }
      if isTold { found.append(share) }
    }
    return found
  }
}
