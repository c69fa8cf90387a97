import BuckiaBytes
import BuckiaStorage
import Crypto
import NIOConcurrencyHelpers

extension StorageContents {
  /// The digest of the bytes in lower-case hexadecimal.
  ///
  /// - Parameters:
  ///   - function: How it is computed.
  ///   - range: Of which bytes; nil for all.
  /// - Throws: `StorageError` when they cannot be read.
  package func digest<Function: HashFunction>(_ function: Function.Type, in range: Range<Int64>? = nil) async throws
    -> String
  {
    var hash = Function()
    for try await chunk in chunks(in: range) { hash.update(data: chunk) }
    return HexText.lowercase(hash.finalize())
  }
}

/// Computes the SHA-256 of contents while they are sent.
package final class SentDigest: ContentsWatcher {
  private let state = NIOLockedValueBox((hash: SHA256(), byteCount: Int64(0)))

  package init() {}

  package func begin() { state.withLockedValue { $0 = (SHA256(), 0) } }

  package func add(_ chunk: [UInt8]) {
    state.withLockedValue { state in
      state.hash.update(data: chunk)
      state.byteCount += Int64(chunk.count)
    }
  }

  /// The digest in lower-case hexadecimal, if so many bytes were read the last time; else nil.
  package func sha256(ofAll byteCount: Int64) -> String? {
    state.withLockedValue { $0.byteCount == byteCount ? HexText.lowercase($0.hash.finalize()) : nil }
  }
}
