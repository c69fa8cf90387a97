import CBuckiaZstd

/// The memory that unpacking takes: for one file at a time, and any number of them one after the other.
final class ZstdWorkspace {
  fileprivate let context: OpaquePointer?
  fileprivate let input: UnsafeMutableRawBufferPointer
  fileprivate let output: UnsafeMutableRawBufferPointer

  init() {
    context = ZSTD_createDCtx()
    input = .allocate(byteCount: ZstdFrame.blockHeaderBytes + ZstdFrame.blockBytes, alignment: 16)
    output = .allocate(byteCount: ZstdFrame.blockBytes, alignment: 16)
  }

  deinit {
    ZSTD_freeDCtx(context)
    input.deallocate()
    output.deallocate()
  }
}

/// Unpacks the one zstd frame of a file, a block at a time, as it is asked for.
///
/// Nothing is unpacked ahead: whoever stops asking has at most one block (128 KiB) in memory.
final class ZstdReader {
  private let file: InboundFile
  private let workspace: ZstdWorkspace
  private let context: OpaquePointer
  private var isFinished = false

  private var input: UnsafeMutableRawBufferPointer { workspace.input }
  private var output: UnsafeMutableRawBufferPointer { workspace.output }

  /// Reads the frame's header.
  ///
  /// - Parameters:
  ///   - file: The file, at its beginning.
  ///   - workspace: Nobody else's as long as this lasts.
  /// - Throws: `DiffFileError` with code `notZstd`, `badZstd` or `truncated`.
  init(_ file: InboundFile, _ workspace: ZstdWorkspace) throws(DiffFileError) {
    self.file = file
    self.workspace = workspace
    guard let context = workspace.context else { throw DiffFileError(.outOfMemory, "no memory to unpack") }
    self.context = context
    try check(ZSTD_DCtx_reset(context, ZSTD_reset_session_only))
    try check(ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, Int32(ZstdFrame.windowLogLimit)))
    try readHeader()
  }

  private func readHeader() throws(DiffFileError) {
    let head = try file.read(upTo: 4)
    guard head.elementsEqual(ZstdFrame.magic.prefix(head.count)) else {
      throw DiffFileError(.notZstd, "it is not a zstd-compressed file")
    }
    guard head.count == 4 else {
      throw DiffFileError(.truncated, "the file ends too early", offset: Int(file.offset))
    }
    input.copyBytes(from: ZstdFrame.magic)
    try file.read(into: slice(4..<5))
    let frame = try ZstdFrame(descriptor: input[4])
    let end = 5 + frame.bytesAfterDescriptor
    try file.read(into: slice(5..<end))
    try frame.checkWindow(Array(input[5..<end]))
    _ = try unpack(end)
  }

  private func slice(_ range: Range<Int>) -> UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(rebasing: input[range])
  }

  /// Unpacks the next block; nil when the frame is complete, its checksum right, and nothing follows it.
  ///
  /// The bytes stay good until the next call. A block may be empty.
  func nextBlock() throws(DiffFileError) -> UnsafeRawBufferPointer? {
    guard !isFinished else { return nil }
    let start = Int(file.offset)
    let header = slice(0..<ZstdFrame.blockHeaderBytes)
    try file.read(into: header)
    let block = try ZstdFrame.Block(Array(header), at: start)
    let end = ZstdFrame.blockHeaderBytes + block.storedBytes
    try file.read(into: slice(ZstdFrame.blockHeaderBytes..<end))
    let produced = try unpack(end)
    if block.isLast { try finish(after: produced) }
    return UnsafeRawBufferPointer(rebasing: output[..<produced])
  }

  private func finish(after produced: Int) throws(DiffFileError) {
    let checksum = slice(0..<ZstdFrame.checksumBytes)
    try file.read(into: checksum)
    var source = ZSTD_inBuffer(src: input.baseAddress, size: ZstdFrame.checksumBytes, pos: 0)
    var nowhere: UInt8 = 0
    let result = withUnsafeMutablePointer(to: &nowhere) { byte in
      var target = ZSTD_outBuffer(dst: byte, size: 1, pos: 1)
      return ZSTD_decompressStream(context, &target, &source)
    }
    try check(result)
    guard result == 0 else { throw ZstdFrame.fault("the frame does not end where its last block does") }
    guard try file.isAtEnd() else {
      throw DiffFileError(
        .trailingData, "something follows the end of the compressed data", offset: Int(file.offset))
    }
    isFinished = true
  }

  /// Gives the first `count` bytes of `input` to zstd and returns how many bytes of output came of it.
  private func unpack(_ count: Int) throws(DiffFileError) -> Int {
    var source = ZSTD_inBuffer(src: input.baseAddress, size: count, pos: 0)
    var target = ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
    while true {
      let before = (source.pos, target.pos)
      try check(ZSTD_decompressStream(context, &target, &source))
      if before == (source.pos, target.pos) { break }
    }
    guard source.pos == count else { throw ZstdFrame.fault("a block unpacks to more than it may") }
    return target.pos
  }

  private func check(_ result: Int) throws(DiffFileError) {
    guard ZSTD_isError(result) != 0 else { return }
    let code: DiffFileError.Code =
      ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation ? .outOfMemory : .badZstd
    throw DiffFileError(
      code, "the compressed data is damaged: \(String(cString: ZSTD_getErrorName(result)))", offset: Int(file.offset))
  }
}
