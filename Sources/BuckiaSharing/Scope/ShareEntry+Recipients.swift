import BuckiaBytes
import BuckiaLedger
import SQLiteConnections

extension ShareEntry {
  /// The names of those that it is shared with.
  ///
  /// - Throws: `JSONError` when the ledger is damaged.
  package var recipients: [String] {
    get throws { try Self.recipients(in: audience) }
  }

  /// The names that a document holds.
  ///
  /// - Throws: `JSONError` when the ledger is damaged.
  package static func recipients(in document: String) throws -> [String] {
    guard case .array(let names) = try JSONParser.parse(Array(document.utf8)) else { return [] }
    return names.compactMap { if case .string(let name) = $0 { name } else { nil } }
  }

  /// Whether it is shared with one person alone.
  ///
  /// - Throws: `JSONError` when the ledger is damaged.
  func isForOne() throws -> Bool { try recipients.count == 1 }

  /// The keys of its recipients, as the ledger has them: those that they were addressed by, and those that they have signed with.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  func readers(on connection: borrowing SQLiteConnection) throws -> Set<String> {
    try RecipientKey.all(of: number, on: connection).union(
      AcknowledgementEntry.all(of: number, on: connection).map(\.sender))
  }

  /// True if a sender is a recipient of the share, by the key that they sign with.
  ///
  /// - Parameters:
  ///   - sender: The verified key in hex, as the ledger has it.
  ///   - senders: Knows which keys have replaced others.
  /// - Returns: nil where the key of some recipient is not known, and the sender may be that recipient.
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  func isRead(
    by sender: String, _ senders: KnownSenders, on connection: borrowing SQLiteConnection
  ) throws -> Bool? {
    let keys = try RecipientKey.all(of: number, on: connection)
    if !sender.isEmpty, !keys.isDisjoint(with: [sender] + senders.keys(before: sender)) { return true }
    return keys.isEmpty || keys.contains(RecipientKey.unknown) ? nil : false
  }
}
