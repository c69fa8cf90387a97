import BuckiaBytes

/// A file that nobody but its owner may read or change: an identity, or the contacts.
package struct PrivateDocument: Sendable {
  /// Where it is.
  package let path: String
  /// What errors call it: "the identity file".
  let subject: String
  let byteLimit: Int

  /// Reads it through one descriptor; nil when there is none.
  ///
  /// - Throws: `IdentityError` with code `notPrivate` when it belongs to or can be read by others, or is too large; the
  ///   `ByteStreamError` of a file that cannot be read, or is a link.
  func bytes() throws -> [UInt8]? {
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
        "other users of this computer can read or change \(subject), so it is not used; `chmod 600` makes it private, but what "
          + "they have read they know", path: path)
    }
    guard file.initialByteCount <= byteLimit else {
      throw IdentityError(.invalidFile, "\(subject) is larger than it can be", path: path)
    }
    return try [UInt8](unsafeUninitializedCapacity: Int(file.initialByteCount)) { buffer, count in
      count = try file.readFully(into: UnsafeMutableRawBufferPointer(buffer))
    }
  }

  /// Does something while no other program changes the file.
  ///
  /// - Throws: `IdentityError` with code `notLocked` where files cannot be locked; `ByteStreamError`; as `body`.
  func locked<Result>(_ body: () throws -> Result) throws -> Result {
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

  /// Writes it whole, and makes sure that it is stored: others see the old or the new one.
  ///
  /// - Throws: `ByteStreamError`; with code `alreadyExists` when it is there and not to be replaced.
  func write(_ bytes: [UInt8], replacing: Bool) throws(ByteStreamError) {
    let output = try AtomicFileOutput(at: path, replacing: replacing, isPrivate: true)
    try output.write(bytes)
    try output.publish()
  }
}
