import BuckiaBytes
import Crypto

/// SHA-256 of something: 32 bytes.
package struct ContentDigest: FixedBytes {
  /// 32
  package static let byteCount = 32
  /// The digest.
  package let bytes: [UInt8]
  package init(checked bytes: [UInt8]) { self.bytes = bytes }
}

/// One shared database, the same in all copies: 16 random bytes.
package struct DatasetID: FixedBytes {
  /// 16
  package static let byteCount = 16
  /// The id.
  package let bytes: [UInt8]
  package init(checked bytes: [UInt8]) { self.bytes = bytes }
}

/// One copy of a database: 16 random bytes.
package struct ReplicaID: FixedBytes {
  /// 16
  package static let byteCount = 16
  /// The id.
  package let bytes: [UInt8]
  package init(checked bytes: [UInt8]) { self.bytes = bytes }
}

/// One unbroken life of a replica: 16 random bytes.
package struct IncarnationID: FixedBytes {
  /// 16
  package static let byteCount = 16
  /// The id.
  package let bytes: [UInt8]
  package init(checked bytes: [UInt8]) { self.bytes = bytes }
}

/// The diffs of one replica for one scope and audience: 16 random bytes.
package struct StreamID: FixedBytes {
  /// 16
  package static let byteCount = 16
  /// The id.
  package let bytes: [UInt8]
  package init(checked bytes: [UInt8]) { self.bytes = bytes }
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

  /// The digest of all bytes so far; more may follow.
  package var digest: ContentDigest { ContentDigest(checked: Array(hasher.finalize())) }
}

extension ContentDigest {
  /// The digest of some bytes.
  package init(of bytes: [UInt8]) { self.init(checked: Array(SHA256.hash(data: bytes))) }
}
