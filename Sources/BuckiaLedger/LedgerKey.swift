import BuckiaBytes

/// The identity of a diff file: the verified key of its sender, its id, and the digest of its manifest.
package struct LedgerKey: Hashable, Sendable {
  /// The verified key of the sender in hex, or empty for unsigned files.
  package let sender: String
  /// The id; nil for a raw changeset that has none.
  package let id: KSUID?
  /// SHA-256 of the manifest, or of a raw changeset's bytes.
  package let digest: [UInt8]
  /// Whether this is a raw changeset: then the digest alone identifies it.
  package let isRaw: Bool

  /// What stands for the sender where two database files were merged: their changes have none.
  package static let mergeSender = "merge"

  /// The key of a merge of database files. Each is one by itself, though it may bring the same changes as another.
  ///
  /// - Parameter nonce: 32 random bytes.
  package init(mergeWith nonce: [UInt8]) {
    self.init(sender: LedgerKey.mergeSender, id: nil, digest: nonce, isRaw: true)
  }

  /// Makes a key.
  package init(sender: String, id: KSUID?, digest: [UInt8], isRaw: Bool) {
    self.sender = sender
    self.id = id
    self.digest = digest
    self.isRaw = isRaw
  }
}
