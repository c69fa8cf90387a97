import BuckiaBytes

/// The secret half of a key: 32 bytes. It never shows in a message.
package struct PrivateKey: Equatable, Sendable, CustomStringConvertible, CustomReflectable {
  package static let byteCount = 32
  /// The secret.
  let bytes: [UInt8]

  init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
  }

  init?(hex: String) {
    guard hex.utf8.count == 2 * Self.byteCount, let bytes = HexText.bytes(hex) else { return nil }
    self.bytes = bytes
  }

  /// A new one.
  ///
  /// - Parameter generator: One whose numbers nobody can guess.
  init(using generator: inout some RandomNumberGenerator) {
    bytes = (0..<Self.byteCount).map { _ in UInt8.random(in: 0...255, using: &generator) }
  }

  package var description: String { "(secret)" }
  /// Nothing: a dump shows no secret either.
  package var customMirror: Mirror { Mirror(self, children: []) }
}
