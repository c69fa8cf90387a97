/// A value that is a fixed number of bytes and travels as lowercase hexadecimal.
package protocol FixedBytes: Hashable, Sendable, CustomStringConvertible {
  /// How many bytes every value has.
  static var byteCount: Int { get }
  /// The bytes.
  var bytes: [UInt8] { get }
  /// Makes a value of exactly ``byteCount`` bytes; nil for any other number.
  init?(_ bytes: [UInt8])
}

extension FixedBytes {
  /// Reads exactly two lowercase digits for each byte.
  package init?(hex: String) {
    guard hex.utf8.count == 2 * Self.byteCount, let bytes = HexText.bytes(hex) else { return nil }
    self.init(bytes)
  }

  /// Two lowercase digits for each byte.
  package var description: String { HexText.lowercase(bytes) }

  /// A random value.
  package static func random(using generator: inout some RandomNumberGenerator) -> Self? {
    Self((0..<byteCount).map { _ in UInt8.random(in: 0...255, using: &generator) })
  }
}
