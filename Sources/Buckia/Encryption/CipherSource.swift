import BuckiaBytes

/// Where the bytes come from that are encrypted or decrypted.
package enum CipherSource: Sendable {
  case path(String)
  case standardInput

  /// True if it is a file that others may not read.
  var isPrivate: Bool { if case .path(let path) = self { !FileSystem.isReadableByAll(path) } else { false } }

  /// Opens it for one reading from the first byte to the last.
  ///
  /// - Throws: `ByteStreamError`.
  func opened() throws(ByteStreamError) -> any ByteInput {
    switch self {
    case .standardInput: return try PosixFile.standardInput()
    case .path(let path):
      // The person has named the link; what is refused elsewhere is one that somebody else put there.
      guard let resolved = realpath(path, nil) else { return try PosixFile(reading: path) }
      defer { free(resolved) }
      return try PosixFile(reading: String(cString: resolved))
    }
  }

  /// An error that is about these bytes, with their name.
  func named(_ error: ByteStreamError) -> ByteStreamError {
    guard case .path(let path) = self, error.errno == nil else { return error }
    var named = error
    named.path = path
    return named
  }
}
