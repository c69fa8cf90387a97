import BuckiaBytes

/// Names an invitation: 16 random bytes.
package struct InvitationID: FixedBytes {
  /// 16
  package static let byteCount = 16
  /// The id.
  package let bytes: [UInt8]
  /// Takes 16 bytes.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
  }
}
