import BuckiaApply
import BuckiaDiff
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// The rows that are shared with another replica, as they are now, in six words: the other replica has the same words where it has the
/// same rows. `Schemas/digests.md` says which rows and columns these are.
package struct LiveWords {
  /// The streams between two replicas.
  package struct Exchange {
    /// Whose the other replica is: the verified key, empty for unsigned diffs; nil where nothing has come from it.
    package internal(set) var sender: String?
    /// The other replica; nil where it is not known.
    package internal(set) var replica: [UInt8]?
    /// What is shared with it.
    package internal(set) var shares: [ShareEntry] = []
    /// What has come from it.
    package internal(set) var states: [StateEntry] = []
    /// The streams that have come from it.
    package internal(set) var brought: [[UInt8]] = []

    /// All streams, in the order of their bytes.
    package var streams: [[UInt8]] {
      Set(shares.map(\.stream) + states.map(\.stream) + brought).sorted { $0.lexicographicallyPrecedes($1) }
    }
  }

  /// The words.
  package let words: [String]
  /// What they stand for: 16 bytes.
  package let digest: [UInt8]
  /// How many rows there are.
  package let rowCount: Int64

  private static let domain = Array("buckia/words/v1\n".utf8)

  // MARK: With whom

  /// How many pairs of what is sent and what has come are tried at most.
  private static let pairLimit = 8

  /// With whom rows are shared.
  ///
  /// What is sent belongs together with what comes from the same replica. As long as that has acknowledged nothing, it is known by the
  /// name of its sender; where nobody has told that either, each pair that may belong together is in the list, too.
  ///
  /// - Parameter name: The name of the contact whose key it is; nil for a stranger's.
  /// - Throws: `SQLiteError`; `LedgerError`.
  package static func exchanges(
    on connection: borrowing SQLiteConnection, naming name: (String) -> String?
  ) throws -> [Exchange] {
    var found: [Exchange] = []
    var unanswered: [ShareEntry] = []
    func add(_ sender: String, _ replica: [UInt8]?, _ change: (inout Exchange) -> Void) {
      let place = found.firstIndex { $0.sender == sender && $0.replica == replica } ?? found.endIndex
      if place == found.endIndex { found.append(Exchange(sender: sender, replica: replica)) }
      change(&found[place])
    }
    for share in try ShareEntry.all(on: connection) where share.sequence > 0 {
      let receivers = try AcknowledgementEntry.all(of: share.number, on: connection)
      if receivers.isEmpty { unanswered.append(share) }
      for receiver in receivers { add(receiver.sender, receiver.replica) { $0.shares.append(share) } }
    }
    for state in try StateEntry.all(on: connection) {
      guard case .sender(let sender) = state.owner else { continue }
      add(sender, state.replica) { $0.states.append(state) }
    }
    // A stream that has brought no rows with a key has no sums.
    for known in try RowNameEntry.streams(on: connection) {
      add(known.sender, known.replica) { $0.brought.append(known.stream) }
    }
    var pairs: [Exchange] = []
    for share in unanswered {
      let recipients = try share.recipients
      let named = found.indices.filter { found[$0].sender.flatMap(name).map { recipients.contains($0) } ?? false }
      for place in named { found[place].shares.append(share) }
      guard named.isEmpty else { continue }
      pairs.append(Exchange(shares: [share]))
      for var exchange in found where exchange.shares.isEmpty && exchange.sender.flatMap(name) == nil {
        exchange.shares = [share]
        if recipients.count == 1, pairs.count < pairLimit { pairs.append(exchange) }
      }
    }
    return found + pairs
  }

  // MARK: What

  /// Goes through the rows of an exchange.
  ///
  /// - Throws: `ReplicationError` where a scope cannot be followed any more; `SQLiteError`.
  package init(of exchange: Exchange, _ schema: SchemaReader, on connection: borrowing SQLiteConnection) throws {
    let scopes = try exchange.shares.map { try ShareScope(json: $0.scope) }
    let total = try ScopeRows.leavingOutFailing(in: scopes) {
      try LiveRows(exchange, schema, leavingOutFailing: $0, on: connection).total()
    }
    digest = SipHash(key: exchange.streams.first ?? []).hash(Self.domain + total.sum.bytes).bytes
    rowCount = total.rows
    words = DigestWords.words(digest)
  }
}
