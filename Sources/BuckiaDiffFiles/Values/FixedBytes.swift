import BuckiaJSON

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

/// SHA-256 of something: 32 bytes.
package struct ContentDigest: FixedBytes {
  /// 32
  package static let byteCount = 32
  /// The digest.
  package let bytes: [UInt8]
  /// Takes 32 bytes.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
  }
}

/// A person's public Ed25519 key: 32 bytes ([RFC 8032](https://www.rfc-editor.org/rfc/rfc8032)).
package struct SigningKey: FixedBytes {
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

/// One shared database, the same in all copies: 16 random bytes.
package struct DatasetID: FixedBytes {
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

/// One copy of a database: 16 random bytes.
package struct ReplicaID: FixedBytes {
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

/// One unbroken life of a replica: 16 random bytes.
package struct IncarnationID: FixedBytes {
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

/// The diffs of one replica for one scope and audience: 16 random bytes.
package struct StreamID: FixedBytes {
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
