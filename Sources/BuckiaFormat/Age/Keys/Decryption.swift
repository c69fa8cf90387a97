import BuckiaBytes

/// What a file may be decrypted with: identities, a passphrase, or both.
package struct Decryption: Sendable {
  private let kinds: [any IdentityKind]

  /// - Parameters:
  ///   - identities: Private keys.
  ///   - passphrase: A passphrase, byte by byte as it was typed.
  /// - Throws: `AgeError` with code `emptyPassphrase`.
  package init(identities: [AgeIdentity], passphrase: [UInt8]? = nil) throws(AgeError) {
    var kinds = identities.map(\.kind)
    if let passphrase { kinds.append(try Passphrase(passphrase)) }
    self.kinds = kinds
  }

  /// All that some hold.
  package init(joining decryptions: [Decryption]) { kinds = decryptions.flatMap(\.kinds) }

  /// Unwraps the key of a file and checks that whoever knew it wrote the header.
  ///
  /// - Returns: The key, and whether it was the passphrase that unwrapped it.
  /// - Throws: `ByteStreamError`.
  func key(of header: AgeHeader) throws(ByteStreamError) -> (key: FileKey, isByPassphrase: Bool) {
    let needsPassphrase = header.stanzas.contains { $0.kind == Passphrase.stanzaKind }
    guard !needsPassphrase || header.stanzas.count == 1 else {
      throw HeaderReader.malformed("who opens a file with a passphrase must be the only recipient")
    }
    for kind in kinds {
      guard let key = try kind.unwrap(header.stanzas) else { continue }
      guard key.hasSealed(header) else {
        throw ByteStreamError(.alteredHeader, "its header has been altered since it was encrypted; ask for it again")
      }
      return (key, kind is Passphrase)
    }
    throw ByteStreamError(.noMatchingIdentity, noMatch(needsPassphrase: needsPassphrase))
  }

  private func noMatch(needsPassphrase: Bool) -> String {
    let hasPassphrase = kinds.contains { $0 is Passphrase }
    if needsPassphrase {
      return hasPassphrase ? "the passphrase is wrong" : "it is encrypted with a passphrase, and none was given"
    }
    return kinds.allSatisfy { $0 is Passphrase }
      ? "it is encrypted for an identity, and none was given" : "it is not encrypted for you: no identity here opens it"
  }
}
