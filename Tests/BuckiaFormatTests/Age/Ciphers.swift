import BuckiaFormat
import BuckiaBytes
import TestSupport

/// Encryption and decryption in memory.
enum Ciphers {
  static func encrypt(
    _ bytes: [UInt8], for encryption: Encryption, armored: Bool = false, pieces: Int = 1 << 20
  ) throws -> [UInt8] {
    let output = MemoryOutput()
    let armor = armored ? ArmoringOutput(output) : nil
    let encrypting = try EncryptingOutput(armor ?? output, for: encryption)
    for start in stride(from: 0, to: bytes.count, by: pieces) {
      try encrypting.write(Array(bytes[start..<min(bytes.count, start + pieces)]))
    }
    try encrypting.finish()
    try armor?.finish()
    return output.bytes
  }

  static func decrypt(_ bytes: [UInt8], with decryption: Decryption) throws -> [UInt8] {
    let (plain, error) = try released(bytes, with: decryption)
    if let error { throw error }
    return plain
  }

  /// The bytes returned before an error, and the error.
  static func released(
    _ bytes: [UInt8], with decryption: Decryption
  ) throws -> (plain: [UInt8], error: ByteStreamError?) {
    let output = MemoryOutput()
    do throws(ByteStreamError) {
      try DecryptingInput(MemoryInput(bytes), with: decryption).copy(to: output)
      return (output.bytes, nil)
    } catch {
      return (output.bytes, error)
    }
  }

  /// Bytes in which no two neighbouring chunks are equal.
  static func sample(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 ^ $0 >> 8 ^ $0 >> 16) }
  }
}
