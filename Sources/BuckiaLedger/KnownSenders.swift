import SQLiteSchemas

/// Who the senders of diffs are, by the key that has signed them: what the person whose database it is knows of them.
package struct KnownSenders: Sendable {
  /// What is known of a key.
  package enum Standing: Sendable {
    /// Nothing.
    case stranger
    /// Its card was seen, and nobody has confirmed whose it is. With its fingerprint.
    case seen(name: String, fingerprint: String)
    /// It is a trusted contact's.
    case trusted(name: String)
    /// It is the person's own.
    case own
    /// Its contact was removed.
    case removed(name: String)
    /// Its contact has other keys now.
    case replaced(name: String)
  }

  /// Nobody is known: every sender is a stranger.
  package static let nobody = KnownSenders([:])

  /// By the key in hex.
  private let standings: [String: Standing]
  private let replaced: [String: [String]]

  /// - Parameters:
  ///   - standings: What is known, by the key in hex.
  ///   - replaced: For keys that have replaced others, which these are.
  package init(_ standings: [String: Standing], replaced: [String: [String]] = [:]) {
    self.standings = standings
    self.replaced = replaced
  }

  /// The keys that a sender had before, if it is confirmed that this one has replaced them.
  ///
  /// - Parameter sender: The verified key in hex, as the ledger has it.
  package func keys(before sender: String) -> [String] { replaced[sender] ?? [] }

  /// Whether nothing is taken any more that a key has signed.
  ///
  /// - Parameter sender: The verified key in hex, as the ledger has it.
  func hasEnded(_ sender: String) -> Bool {
    switch standing(of: sender) {
    case .removed, .replaced: true
    case .stranger, .seen, .trusted, .own: false
    }
  }

  /// What is known of a sender.
  ///
  /// - Parameter sender: The verified key in hex, as the ledger has it.
  package func standing(of sender: String) -> Standing { standings[sender] ?? .stranger }

  /// A sender for people: a contact's name where the key is a trusted one's, else the key and who it seems to be.
  ///
  /// - Parameter sender: What the ledger has for it.
  package func shown(_ sender: String) -> String {
    let text = LedgerEntries.shown(sender: sender)
    return switch standing(of: sender) {
    case .stranger: text
    case .own: "you"
    case .trusted(let name): EscapedText.line(name)
    case .seen(let name, _): "\(text) (claims to be \(EscapedText.line(name)))"
    case .removed(let name): "\(text) (\(EscapedText.line(name)), removed)"
    case .replaced(let name): "\(text) (\(EscapedText.line(name)), replaced)"
    }
  }
}
