import BuckiaBytes
import CBuckiaZstd

/// The memory for reading an archive. It can be used for any number of files, one at a time.
package final class ZstdWorkspace {
  fileprivate let context: OpaquePointer?
  fileprivate let compressed = UnsafeMutableRawBufferPointer.allocate(byteCount: streamChunkBytes, alignment: 16)
  /// For the decompressed bytes.
  let content = UnsafeMutableRawBufferPointer.allocate(byteCount: streamChunkBytes, alignment: 16)

  package init() { context = ZSTD_createDCtx() }

  deinit {
    ZSTD_freeDCtx(context)
    compressed.deallocate()
    content.deallocate()
  }
}

/// Decompresses the one zstd frame that another input consists of.
///
/// It decompresses only what is read, and at most the rest of a block (128 KiB) ahead. It reports the end only when the
/// checksum is right and nothing follows the frame. Error codes are those of ``DiffFileError``.
package final class ZstdInput: ByteInput {
  private let source: any ByteInput
  private let context: OpaquePointer
  private let compressed: UnsafeMutableRawBufferPointer
  /// Keeps the memory of `context` and `compressed`.
  private let workspace: ZstdWorkspace
  /// The part of `compressed` that zstd has not taken yet.
  private var pending = 0..<0
  /// How many bytes have been read from the source.
  private var sourceBytes: Int64 = 0
  private var isFinished = false

  /// Reads the frame's header.
  ///
  /// - Parameters:
  ///   - source: The compressed bytes.
  ///   - workspace: Must not be used by another input meanwhile.
  /// - Throws: `ByteStreamError` with code `notZstd`, `badZstd` or `truncated`, or one of the source's.
  package init(_ source: any ByteInput, _ workspace: ZstdWorkspace) throws(ByteStreamError) {
    self.source = source
    self.workspace = workspace
    compressed = workspace.compressed
    guard let context = workspace.context else { throw ByteStreamError(.outOfMemory, "no memory to decompress") }
    self.context = context
    try check(ZSTD_DCtx_reset(context, ZSTD_reset_session_only))
    try check(ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, Int32(ZstdFrameHeader.windowLogLimit)))
    try checkHeader()
  }

  private func checkHeader() throws(ByteStreamError) {
    let descriptor = ZstdFrameHeader.magic.count
    try fill(atLeast: descriptor)
    guard compressed[pending].starts(with: ZstdFrameHeader.magic.prefix(pending.count)) else {
      throw ByteStreamError(.notZstd, "it is not a zstd-compressed file")
    }
    try require(descriptor + 1)
    let header = try ZstdFrameHeader(descriptor: compressed[descriptor])
    let end = descriptor + 1 + header.bytesAfterDescriptor
    try require(end)
    try header.checkWindow(compressed[descriptor + 1..<end])
  }

  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(ByteStreamError) -> Int {
    var target = ZSTD_outBuffer(dst: buffer.baseAddress, size: buffer.count, pos: 0)
    while target.pos == 0, !isFinished {
      // zstd may still have output of what it took before, so it is asked even when nothing is pending.
      var input = ZSTD_inBuffer(src: compressed.baseAddress, size: pending.upperBound, pos: pending.lowerBound)
      let result = ZSTD_decompressStream(context, &target, &input)
      pending = input.pos..<pending.upperBound
      try check(result)
      if result == 0 {
        try finish()
      } else if target.pos == 0, pending.isEmpty {
        try require(1)
      }
    }
    return target.pos
  }

  private func finish() throws(ByteStreamError) {
    let end = offset
    if pending.isEmpty { try fill(atLeast: 1) }
    guard pending.isEmpty else {
      throw ByteStreamError(.trailingData, "something follows the end of the compressed data", offset: end)
    }
    isFinished = true
  }

  /// How many bytes of the source zstd has taken.
  private var offset: Int64 { sourceBytes - Int64(pending.count) }

  /// Makes at least so many bytes pending.
  private func require(_ count: Int) throws(ByteStreamError) {
    try fill(atLeast: count)
    guard pending.count >= count else {
      throw ByteStreamError(.truncated, "the file ends too early", offset: sourceBytes)
    }
  }

  /// Reads until so many bytes are pending or the source ends.
  private func fill(atLeast count: Int) throws(ByteStreamError) {
    if pending.isEmpty { pending = 0..<0 }
    while pending.count < count {
      let read = try source.read(into: UnsafeMutableRawBufferPointer(rebasing: compressed[pending.upperBound...]))
      if read == 0 { return }
      pending = pending.lowerBound..<pending.upperBound + read
      sourceBytes += Int64(read)
    }
  }

  private func check(_ result: Int) throws(ByteStreamError) {
    guard ZSTD_isError(result) != 0 else { return }
    let code: ByteStreamError.Code =
      ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation ? .outOfMemory : .badZstd
    throw ByteStreamError(
      code, "the compressed data is damaged: \(String(cString: ZSTD_getErrorName(result)))", offset: offset)
  }
}
