import BuckiaBytes
import Crypto

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

/// SHA-256 of bytes as they pass by.
package struct ContentHasher: ByteHasher {
  private var hasher = SHA256()

  package init() {}

  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    if !bytes.isEmpty { hasher.update(bufferPointer: bytes) }
  }

  package mutating func update(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { update($0) }
  }

  /// The digest of everything so far; more may follow.
  package var digest: ContentDigest { ContentDigest(hasher.finalize()) }
}

extension ContentDigest {
  /// The digest of some bytes.
  package init(of bytes: [UInt8]) { self.init(SHA256.hash(data: bytes)) }

  /// Takes a digest as the library gives it, which always has 32 bytes.
  fileprivate init(_ digest: SHA256Digest) { bytes = digest.withUnsafeBytes { Array($0) } }
}
