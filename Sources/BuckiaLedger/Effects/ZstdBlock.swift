import CBuckiaZstd

/// Bytes in memory, as one zstd frame. (Diff files, which can be of any size, are compressed and read as streams.)
enum ZstdBlock {
  /// The fastest of zstd's usual levels: it writes several hundred megabytes a second.
  private static let level: Int32 = 1

  /// Compresses bytes.
  static func compressed(_ bytes: [UInt8]) throws(ZstdError) -> [UInt8] {
    let (frame, result) = bytes.withUnsafeBytes { source in
      var result = 0
      let frame = [UInt8](unsafeUninitializedCapacity: ZSTD_compressBound(source.count)) { target, count in
        result = ZSTD_compress(target.baseAddress, target.count, source.baseAddress, source.count, level)
        count = ZSTD_isError(result) == 0 ? result : 0
      }
      return (frame, result)
    }
    try ZstdError.check(result)
    return frame
  }

  /// Decompresses a frame.
  ///
  /// - Throws: `ZstdError` for anything that ``compressed(_:)`` does not make.
  static func decompressed(_ frame: [UInt8]) throws(ZstdError) -> [UInt8] {
    let size = frame.withUnsafeBytes { ZSTD_getFrameContentSize($0.baseAddress, $0.count) }
    // Both marks for a size that is not known are above it. zstd makes at most 128 KiB of a block of 3 bytes.
    guard size <= UInt64(frame.count) << 16 else { throw ZstdError(message: "no size") }
    let (bytes, result) = frame.withUnsafeBytes { source in
      var result = 0
      let bytes = [UInt8](unsafeUninitializedCapacity: Int(size)) { target, count in
        result = ZSTD_decompress(target.baseAddress, target.count, source.baseAddress, source.count)
        count = ZSTD_isError(result) == 0 ? result : 0
      }
      return (bytes, result)
    }
    try ZstdError.check(result)
    return bytes
  }
}

/// What zstd could not do.
struct ZstdError: Error {
  /// zstd's words.
  let message: String

  /// Throws if this is what a function of zstd returns when it fails.
  static func check(_ result: Int) throws(ZstdError) {
    guard ZSTD_isError(result) != 0 else { return }
    throw ZstdError(message: String(cString: ZSTD_getErrorName(result)))
  }
}
