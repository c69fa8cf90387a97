import BuckiaJSON
import BuckiaStorage
import Crypto

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
