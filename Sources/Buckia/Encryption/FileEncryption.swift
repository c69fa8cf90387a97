import BuckiaFormat
import BuckiaBytes

/// Encrypts files of any kind so that `age`, `buckia decrypt` and ``FileDecryption`` open them.
///
/// ```swift
/// let encryption = try FileEncryption(to: [AgeRecipient("age1…")])
/// try encryption.encrypt("notes.sqlite", to: "notes.sqlite.age")
/// ```
///
/// Files of any size take the same memory; the plaintext goes nowhere else.
public struct FileEncryption: Sendable {
  let encryption: Encryption
  /// Whether the encrypted file is text, for places that take no other bytes. It is a third larger then.
  public var isArmored = false

  /// For some recipients, each of whom can open the file by themselves.
  ///
  /// - Parameter recipients: From 1 to 64. Quantum-safe ones share a file only with each other.
  /// - Throws: `BuckiaError`.
  public init(to recipients: [AgeRecipient]) throws {
    encryption = try BuckiaError.wrapping { try Encryption(to: recipients) }
  }

  /// For all who know a passphrase. Making and opening such a file takes about a second and 256 MB of memory, so that
  /// guessing is expensive.
  ///
  /// - Throws: `BuckiaError` when the passphrase is empty.
  public init(passphrase: String) throws { try self.init(passphrase: Array(passphrase.utf8)) }

  /// The same with the passphrase byte by byte.
  ///
  /// - Parameter workFactor: The logarithm to base 2 of what each guess costs; 18 by default.
  package init(passphrase: [UInt8], workFactor: Int? = nil) throws {
    encryption = try BuckiaError.wrapping { try Encryption(passphrase: passphrase, workFactor: workFactor) }
  }

  /// Encrypts a file.
  ///
  /// - Parameters:
  ///   - path: The file. A link is followed.
  ///   - target: The encrypted file, which appears complete or not at all.
  ///   - isReplacing: Whether it may replace a file of that name.
  /// - Returns: The size of the encrypted file in bytes.
  /// - Throws: `BuckiaError`.
  @discardableResult
  public func encrypt(_ path: String, to target: String, replacing isReplacing: Bool = false) throws -> Int64 {
    try encrypt(.path(path), to: .path(target, replacing: isReplacing))
  }

  /// The same from and to streams.
  package func encrypt(_ source: CipherSource, to target: CipherTarget) throws -> Int64 {
    try BuckiaError.wrapping { try target.write(from: source) { try encrypt(source.opened(), into: $0) } }
  }

  private func encrypt(_ input: any ByteInput, into output: any ByteOutput) throws {
    let armor = isArmored ? ArmoringOutput(output) : nil
    let encrypting = try EncryptingOutput(armor ?? output, for: encryption)
    try CipherCopy.copy(input, to: encrypting)
    try encrypting.finish()
    try armor?.finish()
  }
}
