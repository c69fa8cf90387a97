/// Reads the members of an archive one after the other, each where and as it is expected.
final class ArchiveReader {
  private let file: InboundFile
  private let frame: ZstdReader
  private var block = UnsafeRawBufferPointer(start: nil, count: 0)
  private var offset = 0
  /// A header that was looked at and did not fit what was asked for first.
  private var pendingHeader: [UInt8]?
  /// Whether the compressed bytes carried a seal, known after ``finish()``.
  private(set) var isSealed = false

  init(_ file: InboundFile, workspace: ZstdWorkspace) throws(DiffFileError) {
    self.file = file
    frame = try ZstdReader(file, workspace)
  }

  /// Reads the header of the first member, which alone says its own size.
  func firstMember(named name: String, limit: Int) throws(DiffFileError) -> Int64 {
    let header = try peekHeader()
    guard let size = TarHeader.claimedSize(header), TarHeader.bytes(name: name, size: size) == header else {
      throw DiffFileError(.badTarHeader, "the archive does not begin with the tar header of \(name)", offset: 0)
    }
    guard size <= Int64(limit) else {
      throw DiffFileError(.tooLarge, "it has \(size) bytes; the limit is \(limit)", member: name)
    }
    pendingHeader = nil
    return size
  }

  /// Whether the next member is the one asked for; its header is then read.
  func nextIs(_ name: String, size: Int64) throws(DiffFileError) -> Bool {
    guard try peekHeader() == TarHeader.bytes(name: name, size: size) else { return false }
    pendingHeader = nil
    return true
  }

  /// Reads the header of the member that must come next.
  func member(named name: String, size: Int64) throws(DiffFileError) {
    guard try nextIs(name, size: size) else { throw headerFault(try peekHeader(), name: name, size: size) }
  }

  /// Reads a member's bytes, in pieces, and the padding behind them.
  func content(
    of name: String, size: Int64, _ body: (UnsafeRawBufferPointer) throws(DiffFileError) -> Void
  ) throws(DiffFileError) {
    var left = size
    while left > 0 {
      let bytes = try take(upTo: Int(clamping: left))
      left -= Int64(bytes.count)
      try body(bytes)
    }
    var padding = TarHeader.padding(after: size)
    while padding > 0 {
      let bytes = try take(upTo: padding)
      padding -= bytes.count
      try checkZeros(bytes, "the padding behind \"\(name)\"")
    }
  }

  /// Reads a member into memory. `size` must have been compared with a limit.
  func content(of name: String, size: Int64) throws(DiffFileError) -> [UInt8] {
    var bytes: [UInt8] = []
    // More only once it is there: a file may claim what it does not have.
    bytes.reserveCapacity(min(Int(clamping: size), ZstdFrame.blockBytes))
    try content(of: name, size: size) { (piece) throws(DiffFileError) in bytes.append(contentsOf: piece) }
    return bytes
  }

  /// Reads the end of the archive, checks the seal, and that nothing follows.
  func finish() throws(DiffFileError) {
    let startsBlock = block.isEmpty
    let expected = FrameSeal.blockLengths(file.digest.digest)
    var left = TarHeader.endBytes
    var lengths: [Int] = []
    while left > 0 {
      if block.isEmpty { try fill() }
      lengths.append(block.count)
      let bytes = try take(upTo: left)
      left -= bytes.count
      try checkZeros(bytes, "the end of the archive")
    }
    guard block.isEmpty else { throw trailingData }
    while let next = try frame.nextBlock() {
      guard next.isEmpty else { throw trailingData }
    }
    isSealed = startsBlock && lengths.first.map(FrameSeal.isPresent) == true
    guard !isSealed || lengths == expected else {
      throw DiffFileError(.sealMismatch, "the compressed bytes were altered after they were written")
    }
  }

  private var trailingData: DiffFileError {
    DiffFileError(.trailingData, "something follows the end of the archive", offset: offset)
  }

  private func checkZeros(_ bytes: UnsafeRawBufferPointer, _ what: String) throws(DiffFileError) {
    guard bytes.allSatisfy({ $0 == 0 }) else {
      throw DiffFileError(.badTarPadding, "\(what) is not zero", offset: offset)
    }
  }

  private func peekHeader() throws(DiffFileError) -> [UInt8] {
    if let pendingHeader { return pendingHeader }
    var header: [UInt8] = []
    header.reserveCapacity(TarHeader.blockBytes)
    while header.count < TarHeader.blockBytes {
      header.append(contentsOf: try take(upTo: TarHeader.blockBytes - header.count))
    }
    pendingHeader = header
    return header
  }

  private func headerFault(_ header: [UInt8], name: String, size: Int64) -> DiffFileError {
    let expected = TarHeader.bytes(name: name, size: size)
    let place = zip(header, expected).enumerated().first { $0.element.0 != $0.element.1 }?.offset ?? 0
    return DiffFileError(
      .badTarHeader, "the tar header of \(ShownText.quoted(name)) with \(size) bytes is not what stands there",
      offset: offset - TarHeader.blockBytes + place)
  }

  private func take(upTo limit: Int) throws(DiffFileError) -> UnsafeRawBufferPointer {
    if block.isEmpty { try fill() }
    let bytes = UnsafeRawBufferPointer(rebasing: block[..<min(limit, block.count)])
    block = UnsafeRawBufferPointer(rebasing: block[bytes.count...])
    offset += bytes.count
    return bytes
  }

  /// Makes `block` hold something.
  private func fill() throws(DiffFileError) {
    while block.isEmpty {
      guard let next = try frame.nextBlock() else {
        throw DiffFileError(.truncated, "the archive ends too early", offset: offset)
      }
      block = next
    }
  }
}
