import BuckiaLedger
import SQLiteConnections

extension StateEntry {
  /// The states in which the receiver of a share is known to have other rows in a stream of their own, so that they can be asked for
  /// them.
  ///
  /// - Parameters:
  ///   - share: What goes to them. They have to have acknowledged it, so that it is known which streams are theirs.
  ///   - repeats: Whether it does not count that they have been asked before.
  /// - Throws: `SQLiteError`; `JSONError` when the ledger is damaged.
  package static func toAskFor(
    _ share: ShareEntry, repeating repeats: Bool, on connection: borrowing SQLiteConnection
  ) throws -> [StateEntry] {
    guard try share.isForOne() else { return [] }
    let receivers = try AcknowledgementEntry.all(of: share.number, on: connection)
    return try all(on: connection).filter { state in
      guard case .sender(let sender) = state.owner, state.difference != nil, repeats || !state.isRequested else {
        return false
      }
      return receivers.contains { $0.sender == sender && $0.replica == state.replica }
    }
  }
}
