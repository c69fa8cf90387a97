import BuckiaFormat
import BuckiaBytes

/// Decrypts files that were encrypted with `age`, `buckia encrypt` or ``FileEncryption``.
///
/// ```swift
/// let decryption = try FileDecryption(identities: AgeIdentity.identities(inFile: "key.txt"))
/// try decryption.decrypt("notes.sqlite.age", to: "notes.sqlite")
/// ```
///
/// That a file can be decrypted does not say who has encrypted it: everybody who knows the recipient can.
public struct FileDecryption: Sendable {
  let decryption: Decryption
  /// The public keys of the identities.
  let publicKeys: [[UInt8]]

  /// Decrypts with whichever fits.
  ///
  /// - Parameters:
  ///   - identities: Private keys.
  ///   - passphrase: A passphrase.
  /// - Throws: `BuckiaError` when the passphrase is empty.
  public init(identities: [AgeIdentity], passphrase: String? = nil) throws {
    try self.init(identities: identities, passphraseBytes: passphrase.map { Array($0.utf8) })
  }

  /// The same with the passphrase byte by byte.
  package init(identities: [AgeIdentity], passphraseBytes: [UInt8]?) throws {
    decryption = try BuckiaError.wrapping { try Decryption(identities: identities, passphrase: passphraseBytes) }
    publicKeys = try identities.map { try $0.recipient().keyBytes }
  }

  /// Decrypts a file, armored or not.
  ///
  /// - Parameters:
  ///   - path: The encrypted file. A link is followed.
  ///   - target: The decrypted file, which appears when all of it has been found to be authentic, or not at all.
  ///   - isReplacing: Whether it may replace a file of that name.
  /// - Returns: The size of the decrypted file in bytes.
  /// - Throws: `BuckiaError`, with code ``BuckiaErrorCode/noMatchingIdentity`` when the file is for somebody else.
  @discardableResult
  public func decrypt(_ path: String, to target: String, replacing isReplacing: Bool = false) throws -> Int64 {
    try decrypt(.path(path), to: .path(target, replacing: isReplacing))
  }

  /// The same from and to streams. What a stream has got when an error follows is authentic, and not all.
  package func decrypt(_ source: CipherSource, to target: CipherTarget) throws -> Int64 {
    try BuckiaError.wrapping {
      let input = try source.opened()
      do {
        let decrypting = try DecryptingInput(input, with: decryption)
        return try target.write(from: source) { try CipherCopy.copy(decrypting, to: $0) }
      } catch let error as ByteStreamError where error.path == nil {
        throw source.named(error)
      }
    }
  }
}
