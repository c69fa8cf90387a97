import Crypto

/// What makes each chunk of a file different: its place, and whether it is the last.
struct ChunkNonce {
  /// How many bytes of a file are encrypted at once.
  static let chunkByteCount = 64 << 10
  /// How many bytes an encrypted chunk has more.
  static let tagByteCount = 16
  /// How many bytes a nonce has.
  static let byteCount = 12
  /// How many random bytes stand between the header and the first chunk.
  static let payloadNonceByteCount = 16

  /// How many chunks came before.
  private(set) var index: UInt64 = 0

  /// The bytes: the number in 11 of them, the most significant first, and 1 in the last one for the last chunk.
  func bytes(isLast: Bool) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: Self.byteCount)
    for place in 0..<8 { bytes[10 - place] = UInt8(truncatingIfNeeded: index >> UInt64(8 * place)) }
    bytes[11] = isLast ? 1 : 0
    return bytes
  }

  mutating func advance() { index += 1 }
}
