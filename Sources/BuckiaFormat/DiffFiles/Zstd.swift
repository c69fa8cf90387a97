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

/// Decompresses another input, which must be one zstd frame.
///
/// It decompresses only the read bytes, and at most the rest of a block (128 KiB) ahead. It reports the end only if the
/// checksum is right and nothing follows the frame. Error codes are those of ``DiffFileError``.
package final class ZstdInput: ByteInput {
  private let source: any ByteInput
  private let context: OpaquePointer
  private let compressed: UnsafeMutableRawBufferPointer
  /// Keeps the memory of `context` and `compressed`.
  private let workspace: ZstdWorkspace
  /// The part of `compressed` that zstd has not taken yet.
  private var pending = 0..<0
  /// The number of bytes that have been read from the source.
  private var sourceBytes: Int64 = 0
  private var isFinished = false

  /// Reads the frame's header.
  ///
  /// - Parameters:
  ///   - source: The compressed bytes.
  ///   - workspace: The memory for decompression. No other input may use it at the same time.
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
      // zstd may still have output of earlier input; therefore it is called even if no input is pending.
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

  /// The number of source bytes that zstd has consumed.
  private var offset: Int64 { sourceBytes - Int64(pending.count) }

  /// Reads until at least `count` bytes are pending; throws if the source ends.
  private func require(_ count: Int) throws(ByteStreamError) {
    try fill(atLeast: count)
    guard pending.count >= count else {
      throw ByteStreamError(.truncated, "the file ends too early", offset: sourceBytes)
    }
  }

  /// Reads until `count` bytes are pending or the source ends.
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

/// Compresses the written bytes into one zstd frame with checksum, and writes that to another output.
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

  /// Compresses bytes; a part of the output may be written later.
  package func write(_ bytes: UnsafeRawBufferPointer) throws(ByteStreamError) { try compress(bytes, ZSTD_e_continue) }

  /// Ends a block, which writes all earlier bytes.
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

/// The header of a zstd frame, as far as the format allows one.
///
/// See [RFC 8878](https://www.rfc-editor.org/rfc/rfc8878#section-3.1.1). We parse it ourselves to refuse what the
/// library would accept: dictionaries, frames without checksum, skippable frames, reserved bits that are set.
struct ZstdFrameHeader {
  static let magic: [UInt8] = [0x28, 0xb5, 0x2f, 0xfd]
  /// Windows up to 8 MiB, the size every decoder is asked to support.
  static let windowLogLimit = 23

  /// The number of header bytes after the descriptor.
  let bytesAfterDescriptor: Int
  private let isSingleSegment: Bool

  /// Reads the frame header descriptor.
  init(descriptor: UInt8) throws(ByteStreamError) {
    guard descriptor & 0b11 == 0 else { throw ByteStreamError(.badZstd, "the frame needs a dictionary") }
    guard descriptor & 0b100 != 0 else { throw ByteStreamError(.badZstd, "the frame has no checksum") }
    guard descriptor & 0b1_1000 == 0 else { throw ByteStreamError(.badZstd, "reserved bits of the frame are set") }
    isSingleSegment = descriptor & 0b10_0000 != 0
    let contentSizeBytes =
      switch descriptor >> 6 {
      case 0: isSingleSegment ? 1 : 0
      case 1: 2
      case 2: 4
      default: 8
      }
    bytesAfterDescriptor = (isSingleSegment ? 0 : 1) + contentSizeBytes
  }

  /// Checks the window that the bytes after the descriptor ask for.
  func checkWindow(_ rest: some Collection<UInt8>) throws(ByteStreamError) {
    let window: UInt64
    if isSingleSegment {
      let size = rest.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      window = rest.count == 2 ? size + 256 : size
    } else {
      let descriptor = UInt64(rest.first ?? 0)
      let base = UInt64(1) << (10 + descriptor >> 3)
      window = base + base / 8 * (descriptor & 7)
    }
    guard window <= 1 << Self.windowLogLimit else {
      throw ByteStreamError(.badZstd, "the frame needs a window of \(window) bytes")
    }
  }
}

extension ByteStreamError.Code {
  static let truncated = Self(.truncated)
  static let notZstd = Self(.notZstd)
  static let badZstd = Self(.badZstd)
  static let trailingData = Self(.trailingData)

  /// The same code below as here.
  private init(_ code: DiffFileError.Code) { self.init(rawValue: code.rawValue) }
}
