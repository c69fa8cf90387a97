import BuckiaBytes

/// A person's public X25519 key: 32 bytes ([RFC 7748](https://www.rfc-editor.org/rfc/rfc7748)).
package struct EncryptionKey: FixedBytes {
  /// 32
  package static let byteCount = 32
  /// The key.
  package let bytes: [UInt8]
  /// Takes 32 bytes.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
  }
}
