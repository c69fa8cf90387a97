/// The end of the archive, cut into blocks whose lengths carry a digest of the compressed bytes before them.
///
/// zstd's checksum speaks of the unpacked bytes, and a frame can be altered without altering those: a match in a run
/// of zeros may start elsewhere, reserved bits be set, the window grow. About one bit in a hundred of a small diff
/// file can flip unnoticed. The manifest cannot hold a digest of the frame, since it comes first, and nothing may
/// follow the frame. But the frame ends with 1,024 zeros, and how they are cut into blocks is the writer's choice:
/// eight blocks of 8 to 23 bytes spell 32 bits of SHA-256, the ninth holds the rest. Every zstd decoder sees zeros.
///
/// A frame packed again by another program has no seal; its unpacked bytes are checked all the same.
enum FrameSeal {
  /// The lengths of blocks that carry four bits, 0 to 15.
  ///
  /// zstd stores zeros as one repeated byte from seven on. Shorter, it may copy them, and a copy of zeros can pass
  /// for a repeated byte with one bit changed.
  private static let shortLengths = 8...23
  /// How many blocks carry four bits each.
  static let carriers = 8

  /// The lengths of the blocks that the end of the archive is cut into.
  ///
  /// - Parameter digest: SHA-256 of the file's bytes before the first of these blocks.
  static func blockLengths(_ digest: ContentDigest) -> [Int] {
    let nibbles = digest.bytes.prefix(carriers / 2).flatMap { [$0 >> 4, $0 & 15] }
    let lengths = nibbles.map { Int($0) + shortLengths.lowerBound }
    return lengths + [TarHeader.endBytes - lengths.reduce(0, +)]
  }

  /// Whether a frame is sealed: its end begins a block, and that block is as short as only a seal's are.
  static func isPresent(firstLength: Int) -> Bool { shortLengths.contains(firstLength) }
}
