import BuckiaBytes
import Crypto

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// How a stanza holds a file's key: encrypted once, with a key that is used for nothing else.
enum KeyWrapping {
  /// How many bytes a wrapped key has.
  static let byteCount = FileKey.byteCount + 16

  // The key is new for each file and stanza, so that the nonce need not be.
  private static let nonce = [UInt8](repeating: 0, count: 12)

  static func wrap(_ key: FileKey, with wrappingKey: SymmetricKey) throws -> [UInt8] {
    let nonce = try ChaChaPoly.Nonce(data: nonce)
    let secret = key.secret.withUnsafeBytes { Data($0) }
    let box = try ChaChaPoly.seal(secret, using: wrappingKey, nonce: nonce)
    return Array(box.ciphertext + box.tag)
  }

  /// - Returns: The key; nil when it was wrapped with another.
  static func unwrap(_ body: [UInt8], with wrappingKey: SymmetricKey) -> FileKey? {
    do {
      let box = try ChaChaPoly.SealedBox(combined: nonce + body)
      return FileKey(SymmetricKey(data: try ChaChaPoly.open(box, using: wrappingKey)))
    } catch {
      // The only reason: it was not wrapped with this key.
      return nil
    }
  }
}
