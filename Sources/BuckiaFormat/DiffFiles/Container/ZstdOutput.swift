import BuckiaBytes
import CBuckiaZstd

/// Compresses what is written into one zstd frame with checksum, and writes that to another output.
package final class ZstdOutput: ByteOutput {
  private let target: any ByteOutput
  private let context: OpaquePointer
  private let buffer: UnsafeMutableRawBufferPointer

  /// Starts a frame.
  ///
  /// - Parameter level: zstd's level: 1 is the fastest, 19 the smallest.
  package init(_ target: any ByteOutput, level: Int) throws(ByteStreamError) {
    guard let context = ZSTD_createCCtx() else { throw ByteStreamError(.outOfMemory, "no memory to compress") }
    self.target = target
    self.context = context
    buffer = .allocate(byteCount: ZSTD_CStreamOutSize(), alignment: 16)
    try set(ZSTD_c_compressionLevel, Int32(clamping: min(max(level, 1), 19)))
    try set(ZSTD_c_checksumFlag, 1)
    try set(ZSTD_c_contentSizeFlag, 0)
    // Levels above 16 would choose a window that readers need not have room for.
    if level > 16 { try set(ZSTD_c_windowLog, Int32(ZstdFrameHeader.windowLogLimit)) }
  }

  deinit {
    ZSTD_freeCCtx(context)
    buffer.deallocate()
  }

  /// Takes bytes; some of what becomes of them may be written later.
  package func write(_ bytes: UnsafeRawBufferPointer) throws(ByteStreamError) { try compress(bytes, ZSTD_e_continue) }

  /// Writes everything taken so far, ending a block.
  func flush() throws(ByteStreamError) { try compress(UnsafeRawBufferPointer(start: nil, count: 0), ZSTD_e_flush) }

  /// Ends the frame; nothing can be written after that.
  package func finish() throws(ByteStreamError) {
    try compress(UnsafeRawBufferPointer(start: nil, count: 0), ZSTD_e_end)
  }

  private func compress(_ bytes: UnsafeRawBufferPointer, _ goal: ZSTD_EndDirective) throws(ByteStreamError) {
    var input = ZSTD_inBuffer(src: bytes.baseAddress, size: bytes.count, pos: 0)
    while true {
      var output = ZSTD_outBuffer(dst: buffer.baseAddress, size: buffer.count, pos: 0)
      let left = ZSTD_compressStream2(context, &output, &input, goal)
      try check(left)
      if output.pos > 0 { try target.write(UnsafeRawBufferPointer(rebasing: buffer[..<output.pos])) }
      if goal == ZSTD_e_continue ? input.pos == input.size : left == 0 { return }
    }
  }

  private func set(_ parameter: ZSTD_cParameter, _ value: Int32) throws(ByteStreamError) {
    try check(ZSTD_CCtx_setParameter(context, parameter, value))
  }

  private func check(_ result: Int) throws(ByteStreamError) {
    guard ZSTD_isError(result) == 0 else {
      let code: ByteStreamError.Code =
        ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation ? .outOfMemory : .unwritable
      throw ByteStreamError(code, "zstd cannot compress: \(String(cString: ZSTD_getErrorName(result)))")
    }
  }
}
