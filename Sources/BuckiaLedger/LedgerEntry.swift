import BuckiaBytes

/// What became of a diff file.
public enum DiffState: String, Sendable, CaseIterable, Codable {
  /// Its changes are in the database.
  case applied
  /// It was applied before; nothing happened now. Never in the ledger itself.
  case alreadyApplied = "already-applied"
  /// It cannot be applied yet: its predecessor is missing, or its id lies in the future.
  case waiting
  /// Parts of it wait for the application's own upgrade.
  case held
  /// It does what its sender may not do.
  case quarantined
  /// It was refused, and nothing of it was applied.
  case rejected
}

/// One line of the ledger.
public struct LedgerEntry: Hashable, Codable, Sendable {
  /// The diff file's id; nil for a raw changeset without one.
  public let id: KSUID?
  /// The sender, for people: a contact's name, "you", "unsigned", "unknown" for a file that could not be read that far, or "key …" with the verified key in hex.
  public let sender: String
  /// The verified key of the sender in hex; nil where no signature says whose it is.
  public let senderKey: String?
  /// What became of it.
  public let state: DiffState
  /// When, in milliseconds since 1970.
  public let recordedAt: Int64
  /// Rows inserted.
  public let inserted: Int
  /// Rows updated.
  public let updated: Int
  /// Rows deleted.
  public let deleted: Int
  /// Conflicts met.
  public let conflicts: Int
  /// Changes that were not written.
  public let omitted: Int
  /// Why it was refused or waits.
  public let reason: String?
  /// The name of the file, without its folder.
  public let file: String
  /// SHA-256 that identifies it, in hex: of the manifest, of a raw changeset, or of a refused file's bytes.
  public let digest: String

  /// The diff that it takes back: its id, or the digest of a raw changeset; nil for an entry that is no undo. That diff's entry has the
  /// id of the undo in its reason.
  public var undoes: String? {
    guard sender == LedgerEntries.shown(sender: LedgerEntries.ownSender), file.hasPrefix(Self.undoPrefix) else {
      return nil
    }
    return String(file.dropFirst(Self.undoPrefix.count))
  }

  /// What stands before the name of a diff where the file of an entry is its undo.
  package static let undoPrefix = "undo of "
}
