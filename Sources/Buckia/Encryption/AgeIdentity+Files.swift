import Dispatch

extension AgeIdentity {
  /// Reads an identity.
  ///
  /// - Parameter text: The identity as `age-keygen` prints it, `AGE-SECRET-KEY-1…`.
  /// - Throws: `BuckiaError` with code ``BuckiaErrorCode/invalidIdentity``.
  public init(_ text: String) throws {
    self = try BuckiaError.wrapping { try AgeIdentity(parsing: text) }
  }

  /// The recipient for this identity.
  ///
  /// - Throws: `BuckiaError` for a quantum-safe one on a system that has no such keys.
  public func recipient() throws -> AgeRecipient { try BuckiaError.wrapping { try makeRecipient() } }

  /// The decryption keys of a person: the present one, and earlier ones.
  public static func identities(of identity: Identity) -> [AgeIdentity] {
    identity.decryptionSeeds.compactMap { AgeIdentity(x25519: $0) }
  }

  /// Reads a file of identities: one that `age-keygen` writes, or the identity of a person, with the keys before the present ones.
  ///
  /// - Parameters:
  ///   - path: The file. Of `age-keygen`'s, one identity a line; lines that begin with # are comments. At most 1 MB.
  ///   - passphrase: The passphrase, if the file itself is encrypted with one.
  /// - Throws: `BuckiaError` with code ``BuckiaErrorCode/invalidIdentity``, or when the file cannot be read; as
  ///   ``BuckiaHome/identity()`` for a person's.
  public static func identities(inFile path: String, passphrase: IdentityPassphrase? = nil) throws -> [AgeIdentity] {
    try BuckiaError.wrapping {
      let bytes = try CipherSource.path(path).secret(limit: AgeIdentity.fileByteLimit)
      if bytes.first == UInt8(ascii: "{") { return identities(of: try Identity(contentsOf: path)) }
      guard IdentityFile.isSealed(bytes) else { return try parse(bytes, path: path) }
      guard let passphrase else {
        throw IdentityError(.passphraseNeeded, "it is protected by a passphrase, which was not given", path: path)
      }
      let opened = try passphrase.open(bytes)
      if opened.first == UInt8(ascii: "{") { return identities(of: try Identity(document: opened)) }
      return try parse(opened, path: path)
    }
  }

  private static func parse(_ bytes: [UInt8], path: String) throws(IdentityError) -> [AgeIdentity] {
    do { return try AgeIdentity.all(inFile: bytes) } catch { throw IdentityError(error.code, "\(path): \(error)") }
  }
}

extension AgeRecipient {
  /// Reads a recipient.
  ///
  /// - Parameter text: The recipient as `age-keygen` prints it, `age1…`.
  /// - Throws: `BuckiaError` with code ``BuckiaErrorCode/invalidRecipient``.
  public init(_ text: String) throws {
    self = try BuckiaError.wrapping { try AgeRecipient(parsing: text) }
  }
}

/// A small file whose content is a secret: identities, a passphrase.
extension CipherSource {
  /// The most bytes of a passphrase in a file.
  private static let maximumPassphraseBytes = 64 << 10

  /// Reads a passphrase. One end of line after it does not belong to it.
  ///
  /// - Throws: `BuckiaError`.
  package func passphrase() throws -> [UInt8] {
    var bytes = try BuckiaError.wrapping { try secret(limit: Self.maximumPassphraseBytes) }
    if bytes.last == UInt8(ascii: "\n") {
      bytes.removeLast()
      if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
    }
    return bytes
  }

  /// Reads all of a file.
  ///
  /// - Throws: `ByteStreamError`; with code `unreadable` when it is larger than it may be.
  fileprivate func secret(limit: Int) throws(ByteStreamError) -> [UInt8] {
    if let bytes = try opened().secretContents(limit: limit) { return bytes }
    throw named(ByteStreamError(.unreadable, "it is larger than \(limit >> 10) KB, and holds something else"))
  }
}

/// The passphrase of an identity file. It is only asked for when it is needed.
///
/// ```swift
/// let home = BuckiaHome(path: folder, passphrase: IdentityPassphrase("correct horse battery staple"))
/// ```
public struct IdentityPassphrase: Sendable {
  private let source: Source
  /// The logarithm to base 2 of the cost of each guess; nil for 18.
  private let workFactor: Int?

  /// Creates a passphrase.
  public init(_ passphrase: String) { self.init(Array(passphrase.utf8)) }

  /// Creates a passphrase from bytes.
  package init(_ bytes: [UInt8], workFactor: Int? = nil) {
    source = Source { bytes }
    self.workFactor = workFactor
  }

  /// Asks for it when it is first needed, once.
  ///
  /// - Parameter ask: Returns the bytes of the passphrase. It may be called on any thread.
  public init(asking ask: @escaping @Sendable () throws -> [UInt8]) {
    source = Source(ask)
    workFactor = nil
  }

  /// Caches the passphrase.
  private final class Source: @unchecked Sendable {
    // The lock guards `known`.
    private let lock = DispatchSemaphore(value: 1)
    private let ask: @Sendable () throws -> [UInt8]
    private var known: [UInt8]?

    init(_ ask: @escaping @Sendable () throws -> [UInt8]) { self.ask = ask }

    func bytes() throws -> [UInt8] {
      lock.wait()
      defer { lock.signal() }
      if let known { return known }
      let bytes = try ask()
      known = bytes
      return bytes
    }
  }
}

extension IdentityPassphrase: IdentitySealing {
  package func seal(_ document: [UInt8]) throws -> [UInt8] {
    let encryption = try Encryption(passphrase: source.bytes(), workFactor: workFactor)
    var sealed: [UInt8] = []
    let output = ClosureOutput { sealed += $0 }
    let armor = ArmoringOutput(output)
    let encrypting = try EncryptingOutput(armor, for: encryption)
    try encrypting.write(document)
    try encrypting.finish()
    try armor.finish()
    return sealed
  }

  package func open(_ sealed: [UInt8]) throws -> [UInt8] {
    let decryption = try Decryption(identities: [], passphrase: source.bytes())
    let input = try DecryptingInput(PositionedInput(TemporaryBuffer(sealed)), with: decryption)
    guard let document = try input.secretContents(limit: Identity.documentByteLimit) else {
      throw IdentityError(.invalidFile, "it is larger than an identity file can be")
    }
    return document
  }
}
