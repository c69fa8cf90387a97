import BuckiaByteStreams

/// The file that holds a person's identity.
package struct IdentityFile: Sendable {
  private let document: PrivateDocument

  /// Where it is.
  package var path: String { document.path }

  package init(path: String) {
    document = PrivateDocument(path: path, subject: "the identity file", byteLimit: Identity.documentByteLimit)
  }

  /// Reads the identity.
  ///
  /// - Throws: `IdentityError` with code `noIdentity`, `notPrivate`, `invalidFile` or `unsupportedFormat`; `ByteStreamError`.
  package func read() throws -> Identity {
    guard let bytes = try document.bytes() else {
      throw IdentityError(.noIdentity, "there is no identity; `buckia identity new` makes one", path: path)
    }
    do throws(IdentityError) {
      return try Identity(document: bytes)
    } catch {
      throw IdentityError(error.code, error.message, path: path)
    }
  }

  /// Reads the identity; nil when there is none.
  package func readIfPresent() throws -> Identity? {
    do { return try read() } catch let error as IdentityError where error.code == .noIdentity { return nil }
  }

  /// Writes a new identity. One that is there is never replaced.
  ///
  /// - Throws: `IdentityError` with code `identityExists`; `ByteStreamError`.
  package func create(_ identity: Identity) throws {
    do throws(ByteStreamError) {
      try document.write(identity.document, replacing: false)
    } catch {
      guard error.code == .alreadyExists else { throw error }
      throw IdentityError(
        .identityExists,
        "there is an identity already, and others know its keys; `buckia identity rotate` makes new ones that they can accept",
        path: path)
    }
  }

  /// Puts new keys in the place of those that are there. They are stored before anybody can be told.
  ///
  /// - Throws: As ``read()``.
  package func rotate(
    at time: Int64, using generator: inout some RandomNumberGenerator
  ) throws -> (identity: Identity, rotation: KeyRotation) {
    try document.locked {
      let next = try read().rotated(at: time, using: &generator)
      try document.write(next.identity.document, replacing: true)
      return next
    }
  }
}
