import BuckiaAge
import BuckiaByteStreams

extension AgeIdentity {
  /// Reads an identity.
  ///
  /// - Parameter text: The identity as `age-keygen` prints it, `AGE-SECRET-KEY-1…`.
  /// - Throws: `BuckiaError` with code ``BuckiaErrorCode/invalidIdentity``.
  public init(_ text: String) throws {
    self = try BuckiaError.wrapping { try AgeIdentity(parsing: text) }
  }

  /// Who can encrypt for this identity.
  ///
  /// - Throws: `BuckiaError` for a quantum-safe one on a system that has no such keys.
  public func recipient() throws -> AgeRecipient { try BuckiaError.wrapping { try makeRecipient() } }

  /// Reads a file of identities as `age-keygen` writes it.
  ///
  /// - Parameter path: The file: one identity a line; lines that begin with # are comments. At most 1 MB.
  /// - Throws: `BuckiaError` with code ``BuckiaErrorCode/invalidIdentity``, or when the file cannot be read.
  public static func identities(inFile path: String) throws -> [AgeIdentity] {
    try BuckiaError.wrapping {
      try parse(SecretFile.bytes(of: .path(path), limit: IdentityLines.maximumBytes), path: path)
    }
  }

  private static func parse(_ bytes: [UInt8], path: String) throws(AgeError) -> [AgeIdentity] {
    do { return try IdentityLines.parse(bytes) } catch { throw AgeError(error.code, "\(path): \(error)") }
  }
}
