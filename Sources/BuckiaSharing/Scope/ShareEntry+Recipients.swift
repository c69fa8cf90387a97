import BuckiaJSON
import BuckiaLedger

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
}
