import BuckiaBytes
import Crypto
import CryptoExtras

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The key of one temporary file. It is in memory only: after the process has ended, the file cannot be read.
///
/// AES-256 in counter mode ([NIST SP 800-38A](https://doi.org/10.6028/NIST.SP.800-38A), 6.5): any part can be decrypted by itself. As
/// every buffer has a key of its own and writes no place twice, the counter is the place.
package final class OneTimeSpoolKey: SpoolCipher {
  private static let blockBytes = 16
  /// The number of bytes that one call encrypts.
  private static let pieceBytes = 256 << 10

  private let key = SymmetricKey(size: .bits256)

  package init() {}

  package func apply(to bytes: UnsafeMutableRawBufferPointer, at offset: Int) throws(ByteStreamError) {
    var start = 0
    while start < bytes.count {
      let count = min(Self.pieceBytes, bytes.count - start)
      try applyPiece(to: UnsafeMutableRawBufferPointer(rebasing: bytes[start..<start + count]), at: offset + start)
      start += count
    }
  }

  private func applyPiece(to bytes: UnsafeMutableRawBufferPointer, at offset: Int) throws(ByteStreamError) {
    let block = UInt64(offset / Self.blockBytes)
    let skipped = offset % Self.blockBytes
    let counter = [UInt8](repeating: 0, count: 8) + (0..<8).map { UInt8(truncatingIfNeeded: block >> (56 - 8 * $0)) }
    do {
      let nonce = try AES._CTR.Nonce(nonceBytes: counter)
      if skipped == 0 {
        bytes.copyBytes(from: try AES._CTR.encrypt(UnsafeRawBufferPointer(bytes), using: key, nonce: nonce))
      } else {
        let padded = [UInt8](repeating: 0, count: skipped) + bytes
        bytes.copyBytes(from: try AES._CTR.encrypt(padded, using: key, nonce: nonce).dropFirst(skipped))
      }
    } catch {
      throw ByteStreamError(.unwritable, "a temporary file cannot be encrypted: \(error)")
    }
  }
}
