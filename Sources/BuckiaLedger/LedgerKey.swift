import BuckiaKSUID

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

  /// Makes a key.
  package init(sender: String, id: KSUID?, digest: [UInt8], isRaw: Bool) {
    self.sender = sender
    self.id = id
    self.digest = digest
    self.isRaw = isRaw
  }
}
