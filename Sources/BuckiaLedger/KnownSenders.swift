import BuckiaBytes
import SQLiteConnections
import SQLiteSchemas

/// The senders of diffs by their signing keys, as the owner of this database knows them.
package struct KnownSenders: Sendable {
  /// The standing of a key.
  package enum Standing: Sendable {
    /// Nothing.
    case stranger
    /// The card of the key is known, but not confirmed; with its fingerprint.
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

  /// No known senders: every sender is a stranger.
  package static let empty = KnownSenders([:])

  /// By the key in hex.
  private let standings: [String: Standing]
  private let replaced: [String: [String]]
  /// The key that has replaced another, by that one.
  private let present: [String: String]

  /// - Parameters:
  ///   - standings: The standings by key, in hexadecimal digits.
  ///   - replaced: The replaced keys, by the key that has replaced them.
  package init(_ standings: [String: Standing], replaced: [String: [String]] = [:]) {
    self.standings = standings
    self.replaced = replaced
    present = Dictionary(replaced.flatMap { key, before in before.map { ($0, key) } }) { first, _ in first }
  }

  /// The keys that a sender had before, if it is confirmed that this one has replaced them.
  ///
  /// - Parameter sender: The verified key in hex, as the ledger has it.
  package func keys(before sender: String) -> [String] { replaced[sender] ?? [] }

  /// The keys of the sender whose key has been replaced, but for that one: the present one first. Empty for a key that counts.
  package func otherKeys(of replaced: String) -> [String] {
    present[replaced].map { key in [key] + keys(before: key).filter { $0 != replaced } } ?? []
  }

  /// True if two keys are one person's: a key and one that has replaced it, or two that the same one has replaced.
  func areOne(_ key: String, _ other: String) -> Bool { (present[key] ?? key) == (present[other] ?? other) }

  /// True if a key is, or was, the person's own.
  func isOwn(_ sender: String) -> Bool {
    if case .own = standing(of: present[sender] ?? sender) { true } else { false }
  }

  /// True if a key is unknown.
  package func isStranger(_ sender: String) -> Bool {
    if case .stranger = standing(of: sender) { true } else { false }
  }

  /// The weight of a sender against another one that claims the same.
  func weight(of sender: String) -> Int {
    switch standing(of: sender) {
    case .removed: 0
    case .stranger, .seen: sender.isEmpty ? 1 : 2
    case .trusted, .own, .replaced: 3
    }
  }

  /// True if nothing is taken any more that a key has signed.
  ///
  /// - Parameter sender: The verified key in hex, as the ledger has it.
  func hasEnded(_ sender: String) -> Bool {
    switch standing(of: sender) {
    case .removed, .replaced: true
    case .stranger, .seen, .trusted, .own: false
    }
  }

  /// The standing of a sender.
  ///
  /// - Parameter sender: The verified key in hex, as the ledger has it.
  package func standing(of sender: String) -> Standing { standings[sender] ?? .stranger }

  /// A sender for people: the name of a trusted contact, otherwise the key and the name that it seems to belong to.
  ///
  /// - Parameter sender: The sender in the ledger's form.
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
