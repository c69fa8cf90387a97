/// Protects the bytes of an identity file with a passphrase.
package protocol IdentitySealing: Sendable {
  /// Encrypts the document, as a file of age's.
  func seal(_ document: [UInt8]) throws -> [UInt8]
  /// Decrypts what ``seal(_:)`` has made, or age.
  ///
  /// - Throws: When the passphrase is wrong, or cannot be had.
  func open(_ sealed: [UInt8]) throws -> [UInt8]
}

/// What tells a protected identity file from a plain one.
package enum SealedIdentity {
  private static let beginnings = ["age-encryption.org/", "-----BEGIN AGE"].map { Array($0.utf8) }

  /// Whether these are the first bytes of a file of age's. A plain identity is an object in JSON.
  package static func begins(_ bytes: [UInt8]) -> Bool { beginnings.contains { bytes.starts(with: $0) } }
}
