import CBuckiaZstd

/// Compresses a stream into one zstd frame with checksum.
///
/// Feed it with ``step(_:_:)`` until that says the input is through, and take ``output`` after each step.
final class ZstdCompressor {
  /// What a step is to achieve.
  enum Goal {
    /// Take the input; output may wait for more of it.
    case take
    /// Give out everything taken so far, ending a block.
    case flush
    /// End the frame.
    case end
  }

  private let context: OpaquePointer
  private let buffer: UnsafeMutableRawBufferPointer
  private var produced = 0

  /// Starts a frame.
  ///
  /// - Parameter level: zstd's level: 1 is the fastest, 19 the smallest.
  init(level: Int) throws(DiffFileError) {
    guard let context = ZSTD_createCCtx() else { throw DiffFileError(.outOfMemory, "no memory to compress") }
    self.context = context
    buffer = .allocate(byteCount: ZSTD_CStreamOutSize(), alignment: 16)
    try set(ZSTD_c_compressionLevel, Int32(clamping: min(max(level, 1), 19)))
    try set(ZSTD_c_checksumFlag, 1)
    try set(ZSTD_c_contentSizeFlag, 0)
    // Levels above 16 would choose a window that readers need not have room for.
    if level > 16 { try set(ZSTD_c_windowLog, Int32(ZstdFrame.windowLogLimit)) }
  }

  deinit {
    ZSTD_freeCCtx(context)
    buffer.deallocate()
  }

  private func set(_ parameter: ZSTD_cParameter, _ value: Int32) throws(DiffFileError) {
    try check(ZSTD_CCtx_setParameter(context, parameter, value))
  }

  private func check(_ result: Int) throws(DiffFileError) {
    guard ZSTD_isError(result) == 0 else {
      let code: DiffFileError.Code =
        ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation ? .outOfMemory : .unwritable
      throw DiffFileError(code, "zstd cannot compress: \(String(cString: ZSTD_getErrorName(result)))")
    }
  }

  /// What the last step produced; good until the next one.
  var output: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: buffer[..<produced]) }

  /// Takes some input, removing from `input` what was taken.
  ///
  /// - Returns: Whether the goal is reached: all input taken and, for `flush` and `end`, everything given out.
  func step(_ input: inout UnsafeRawBufferPointer, _ goal: Goal) throws(DiffFileError) -> Bool {
    var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
    var target = ZSTD_outBuffer(dst: buffer.baseAddress, size: buffer.count, pos: 0)
    let directive =
      switch goal {
      case .take: ZSTD_e_continue
      case .flush: ZSTD_e_flush
      case .end: ZSTD_e_end
      }
    let left = ZSTD_compressStream2(context, &target, &source, directive)
    try check(left)
    produced = target.pos
    input = UnsafeRawBufferPointer(rebasing: input[source.pos...])
    return goal == .take ? input.isEmpty : left == 0
  }
}
