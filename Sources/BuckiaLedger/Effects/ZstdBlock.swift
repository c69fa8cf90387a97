import CBuckiaZstd

/// Bytes in memory, as one zstd frame. (Diff files, which can be of any size, are compressed and read as streams.)
enum ZstdBlock {
  /// The fastest of zstd's usual levels: it writes several hundred megabytes a second.
  private static let level: Int32 = 1

  /// Compresses bytes.
  static func compressed(_ bytes: [UInt8]) throws(ZstdError) -> [UInt8] {
    try made(of: bytes, capacity: ZSTD_compressBound(bytes.count)) { target, source in
      ZSTD_compress(target.baseAddress, target.count, source.baseAddress, source.count, level)
    }
  }

  /// Decompresses a frame.
  ///
  /// - Throws: `ZstdError` for anything that ``compressed(_:)`` does not make.
  static func decompressed(_ frame: [UInt8]) throws(ZstdError) -> [UInt8] {
    let size = frame.withUnsafeBytes { ZSTD_getFrameContentSize($0.baseAddress, $0.count) }
    // Both marks for a size that is not known are above it. zstd makes at most 128 KiB of a block of 3 bytes.
    guard size <= UInt64(frame.count) << 16 else { throw ZstdError(message: "no size") }
    return try made(of: frame, capacity: Int(size)) { target, source in
      ZSTD_decompress(target.baseAddress, target.count, source.baseAddress, source.count)
    }
  }

  /// What a function of zstd makes of bytes.
  ///
  /// - Parameter make: Fills the target, and returns how many bytes it has written, or zstd's code of an error.
  private static func made(
    of bytes: [UInt8], capacity: Int, _ make: (UnsafeMutableBufferPointer<UInt8>, UnsafeRawBufferPointer) -> Int
  ) throws(ZstdError) -> [UInt8] {
    var result = 0
    let made = bytes.withUnsafeBytes { source in
      [UInt8](unsafeUninitializedCapacity: capacity) { target, count in
        result = make(target, source)
        count = ZSTD_isError(result) == 0 ? result : 0
      }
    }
    guard ZSTD_isError(result) == 0 else { throw ZstdError(message: String(cString: ZSTD_getErrorName(result))) }
    return made
  }
}

/// What zstd could not do.
struct ZstdError: Error {
  /// zstd's words.
  let message: String
}
