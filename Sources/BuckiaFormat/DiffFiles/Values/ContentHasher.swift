import BuckiaBytes
import Crypto

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
