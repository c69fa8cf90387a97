import BuckiaBytes
import BuckiaStorage
import Crypto
import NIOCore
import NIOSSL

/// The public keys that a server may have, by the SHA-256 of their SubjectPublicKeyInfo, as RFC 7469 digests them.
struct PinnedKeys: Sendable {
  /// The server has another key.
  struct Mismatch: Error {}

  private let digests: Set<[UInt8]>

  /// - Parameter texts: Digests in hexadecimal.
  /// - Throws: `StorageError` with `invalidSetting` when one is none.
  init(_ texts: [String]) throws(StorageError) {
    var digests: Set<[UInt8]> = []
    for text in texts {
      guard let bytes = HexText.bytes(text.lowercased()), bytes.count == SHA256.byteCount else {
        throw StorageError(
          .invalidSetting, "a pinned key is given as the 64 hexadecimal digits of its SHA-256, not as \"\(text)\"")
      }
      digests.insert(bytes)
    }
    self.digests = digests
  }

  /// Checks an encrypted connection before anything is sent through it.
  func check(_ channel: any Channel) -> EventLoopFuture<Void> {
    channel.nioSSL_peerCertificate().flatMapThrowing { certificate in
      guard let certificate else { throw Mismatch() }
      let key = try certificate.extractPublicKey().toSPKIBytes()
      guard digests.contains(Array(SHA256.hash(data: key))) else { throw Mismatch() }
    }
  }
}
