import BuckiaBytes

/// The file with a person's identity: plain, or protected with a passphrase. The public part of a protected one is in a
/// second file, with the suffix `.public`.
package struct IdentityFile: Sendable {
  private let document: PrivateDocument
  private let publicDocument: PrivateDocument
  private let sealing: (any IdentitySealing)?

  /// The path of the file.
  package var path: String { document.path }

  /// - Parameters:
  ///   - path: The path.
  ///   - sealing: Decrypts a protected file; nil if there is none.
  package init(path: String, sealing: (any IdentitySealing)? = nil) {
    // Armor makes it a third larger.
    document = PrivateDocument(path: path, subject: "the identity file", byteLimit: 2 * Identity.documentByteLimit)
    publicDocument = PrivateDocument(
      path: "\(path).public", subject: "the public part of the identity", byteLimit: 2 * Identity.documentByteLimit)
    self.sealing = sealing
  }

  // MARK: Reading

  /// Reads the identity.
  ///
  /// - Throws: `IdentityError` with code `noIdentity`, `notPrivate`, `passphraseNeeded`, `invalidFile` or `unsupportedFormat`;
  ///   `ByteStreamError`, and what the passphrase throws.
  package func read() throws -> Identity { try readAny().identity }

  private func readAny() throws -> (identity: Identity, isProtected: Bool) {
    guard let bytes = try document.bytes() else {
      throw IdentityError(.noIdentity, "there is no identity; `buckia identity new` makes one", path: path)
    }
    let isProtected = Self.isSealed(bytes)
    let identity: Identity
    let plain = try isProtected ? unsealed(bytes) : bytes
    do throws(IdentityError) { identity = try Identity(document: plain) } catch { throw error.naming(path: path) }
    // After a crash between writing the two files, the protected one is right.
    if isProtected { try writePublicPart(of: identity) }
    return (identity, isProtected)
  }

  private func unsealed(_ bytes: [UInt8]) throws -> [UInt8] {
    guard let sealing else {
      throw IdentityError(
        .passphraseNeeded, "the identity is protected by a passphrase, which was not given", path: path)
    }
    do {
      return try sealing.open(bytes)
    } catch var error as ByteStreamError {
      error.path = path
      throw error
    }
  }

  /// Reads the identity; nil if there is none.
  package func readIfPresent() throws -> Identity? {
    do { return try read() } catch let error as IdentityError where error.code == .noIdentity { return nil }
  }

  /// Reads the public part, without a passphrase if possible; nil if there is no identity.
  ///
  /// - Throws: As ``read()``; `passphraseNeeded` only where the file beside it is missing.
  package func readPublicPart() throws -> PublicIdentity? {
    guard let bytes = try document.bytes() else { return nil }
    guard Self.isSealed(bytes), let known = try publicDocument.bytes() else { return try read().publicPart() }
    do throws(IdentityError) {
      return try PublicIdentity(document: known)
    } catch {
      throw error.naming(path: publicDocument.path)
    }
  }

  /// True if it is protected with a passphrase; nil if there is none.
  package func isProtected() throws -> Bool? { try document.bytes().map { Self.isSealed($0) } }

  // MARK: Writing

  /// Writes a new identity, protected if there is a sealing. It never replaces an existing one.
  ///
  /// - Throws: `IdentityError` with code `identityExists`; `ByteStreamError`.
  package func create(_ identity: Identity) throws {
    let bytes = try sealing?.seal(identity.document) ?? identity.document
    do throws(ByteStreamError) {
      try document.write(bytes, replacing: false)
    } catch {
      guard error.code == .alreadyExists else { throw error }
      throw IdentityError(
        .identityExists,
        "there is an identity already, and others know its keys; `buckia identity rotate` makes new ones that they can accept",
        path: path)
    }
    if sealing != nil { try writePublicPart(of: identity) }
  }

  /// Replaces the keys. The new ones are stored before anyone can learn of them, with the same protection.
  ///
  /// - Throws: As ``read()``.
  package func rotate(
    at time: Int64, using generator: inout some RandomNumberGenerator
  ) throws -> (identity: Identity, rotation: KeyRotation) {
    try document.locked {
      let old = try readAny()
      let next = try old.identity.rotated(at: time, using: &generator)
      try replace(with: next.identity, sealing: old.isProtected ? sealing : nil)
      return next
    }
  }

  /// Changes or removes the protection, atomically for readers.
  ///
  /// - Parameter next: What protects it from now on; nil for nothing.
  /// - Throws: As ``read()``. It is as it was then.
  package func protect(with next: (any IdentitySealing)?) throws {
    try document.locked { try replace(with: read(), sealing: next) }
  }

  private func replace(with identity: Identity, sealing: (any IdentitySealing)?) throws {
    let bytes = try sealing?.seal(identity.document) ?? identity.document
    try document.write(bytes, replacing: true)
    if sealing != nil { try writePublicPart(of: identity) }
  }

  /// Writes the public part to a second file, unless that has it already. A plain identity needs no such file.
  private func writePublicPart(of identity: Identity) throws {
    let bytes = try identity.publicPart().document
    if try publicDocument.bytes() != bytes { try publicDocument.write(bytes, replacing: true) }
  }
}

/// Protects the bytes of an identity file with a passphrase.
package protocol IdentitySealing: Sendable {
  /// Encrypts the document, as a file of age's.
  func seal(_ document: [UInt8]) throws -> [UInt8]
  /// Decrypts the output of ``seal(_:)`` or of age.
  ///
  /// - Throws: When the passphrase is wrong, or cannot be had.
  func open(_ sealed: [UInt8]) throws -> [UInt8]
}

extension IdentityFile {
  /// True if these are the first bytes of a file of age's: a protected identity. A plain one is an object in JSON.
  package static func isSealed(_ bytes: [UInt8]) -> Bool {
    ["age-encryption.org/", "-----BEGIN AGE"].contains { bytes.starts(with: $0.utf8) }
  }
}

/// A file that only its owner may read or change: an identity, or the contacts.
package struct PrivateDocument: Sendable {
  /// The path.
  package let path: String
  /// What errors call it: "the identity file".
  let subject: String
  let byteLimit: Int
  /// The advice in the error for a file that others could read.
  let remedy: String

  package init(
    path: String, subject: String, byteLimit: Int,
    remedy: String = "`chmod 600` makes it private, but what they have read they know"
  ) {
    self.path = path
    self.subject = subject
    self.byteLimit = byteLimit
    self.remedy = remedy
  }

  /// Reads it through one descriptor; nil if there is none.
  ///
  /// - Throws: `IdentityError` with code `notPrivate` when it belongs to or can be read by others, or is too large; the
  ///   `ByteStreamError` of a file that cannot be read, or is a link.
  package func bytes() throws -> [UInt8]? {
    let file: PosixFile
    do throws(ByteStreamError) {
      file = try PosixFile(reading: path)
    } catch {
      if error.isMissingFile { return nil }
      throw error
    }
    switch try file.privacy() {
    case .isPrivate: break
    case .belongsToOthers:
      throw IdentityError(
        .notPrivate, "\(subject) belongs to another user of this computer, and is not used", path: path)
    case .isOpenToOthers:
      throw IdentityError(
        .notPrivate,
        "other users of this computer can read or change \(subject), so it is not used; \(remedy)", path: path)
    }
    guard file.initialByteCount <= byteLimit else {
      throw IdentityError(.invalidFile, "\(subject) is larger than it can be", path: path)
    }
    return try [UInt8](unsafeUninitializedCapacity: Int(file.initialByteCount)) { buffer, count in
      count = try file.readFully(into: UnsafeMutableRawBufferPointer(buffer))
    }
  }

  /// Calls `body` with a lock against changes by other programs.
  ///
  /// - Throws: `IdentityError` with code `notLocked` where files cannot be locked; `ByteStreamError`; as `body`.
  package func locked<Result>(_ body: () throws -> Result) throws -> Result {
    let lock = try PosixFile(updating: "\(path).lock")
    guard lock.lock() else {
      throw IdentityError(
        .notLocked,
        "\(subject) cannot be locked, so another program could undo what is changed; keep it on a local disk",
        path: path)
    }
    defer { withExtendedLifetime(lock) {} }
    return try body()
  }

  /// Writes the file atomically and durably: readers see the old or the new one.
  ///
  /// - Throws: `ByteStreamError`; with code `alreadyExists` when it is there and not to be replaced.
  package func write(_ bytes: [UInt8], replacing: Bool) throws(ByteStreamError) {
    let output = try AtomicFileOutput(at: path, replacing: replacing, isPrivate: true)
    try output.write(bytes)
    try output.publish()
  }
}
