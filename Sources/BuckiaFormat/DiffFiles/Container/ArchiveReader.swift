import BuckiaBytes
import SQLiteSchemas

/// Reads the members of a compressed archive in order. The caller says which member must come next.
final class ArchiveReader {
  private let frame: ZstdInput
  /// What has been decompressed last.
  private let buffer: UnsafeMutableRawBufferPointer
  /// How many bytes of the archive have been read.
  private(set) var offset: Int64 = 0
  /// A header that has been read but not matched yet.
  private var pendingHeader: [UInt8]?

  init(_ source: any ByteInput, workspace: ZstdWorkspace) throws(DiffFileError) {
    do throws(ByteStreamError) { frame = try ZstdInput(source, workspace) } catch { throw DiffFileError(error) }
    buffer = workspace.content
  }

  /// Reads the header of the first member, whose size is not known beforehand.
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
    guard try nextIs(name, size: size) else { throw headerMismatch(try peekHeader(), name: name, size: size) }
  }

  /// Reads a member's bytes, in pieces, and the padding behind them.
  func content(
    of name: String, size: Int64, _ body: (UnsafeRawBufferPointer) throws(DiffFileError) -> Void
  ) throws(DiffFileError) {
    var left = size
    while left > 0 {
      let bytes = try read(upTo: Int(clamping: left))
      left -= Int64(bytes.count)
      try body(bytes)
    }
    try readZeros(TarHeader.padding(after: size), "the padding behind \"\(name)\"")
  }

  /// Reads a member into memory. `size` must have been compared with a limit.
  func content(of name: String, size: Int64) throws(DiffFileError) -> [UInt8] {
    var bytes: [UInt8] = []
    // Grows with the bytes that arrive: a file may claim more than it has.
    bytes.reserveCapacity(min(Int(clamping: size), buffer.count))
    try content(of: name, size: size) { (piece) throws(DiffFileError) in bytes.append(contentsOf: piece) }
    return bytes
  }

  /// Reads the end of the archive, and checks that nothing follows.
  func finish() throws(DiffFileError) {
    try readZeros(TarHeader.endBytes, "the end of the archive")
    guard try decompress(upTo: 1).isEmpty else {
      throw DiffFileError(.trailingData, "something follows the end of the archive", offset: Int(offset))
    }
  }

  private func readZeros(_ count: Int, _ what: @autoclosure () -> String) throws(DiffFileError) {
    var left = count
    while left > 0 {
      let bytes = try read(upTo: left)
      left -= bytes.count
      guard bytes.allSatisfy({ $0 == 0 }) else {
        throw DiffFileError(.badTarPadding, "\(what()) is not zero", offset: Int(offset))
      }
    }
  }

  private func peekHeader() throws(DiffFileError) -> [UInt8] {
    if let pendingHeader { return pendingHeader }
    var header: [UInt8] = []
    header.reserveCapacity(TarHeader.blockBytes)
    while header.count < TarHeader.blockBytes {
      header.append(contentsOf: try read(upTo: TarHeader.blockBytes - header.count))
    }
    pendingHeader = header
    return header
  }

  private func headerMismatch(_ header: [UInt8], name: String, size: Int64) -> DiffFileError {
    let expected = TarHeader.bytes(name: name, size: size)
    let place = zip(header, expected).enumerated().first { $0.element.0 != $0.element.1 }?.offset ?? 0
    return DiffFileError(
      .badTarHeader, "the tar header of \(EscapedText.quoted(name)) with \(size) bytes is not what stands there",
      offset: Int(offset) - TarHeader.blockBytes + place)
  }

  /// The next bytes of the archive, at least one. They stay good until the next call.
  private func read(upTo limit: Int) throws(DiffFileError) -> UnsafeRawBufferPointer {
    let bytes = try decompress(upTo: limit)
    guard !bytes.isEmpty else {
      throw DiffFileError(.truncated, "the archive ends too early", offset: Int(offset))
    }
    offset += Int64(bytes.count)
    return bytes
  }

  private func decompress(upTo limit: Int) throws(DiffFileError) -> UnsafeRawBufferPointer {
    let window = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(limit, buffer.count)])
    do throws(ByteStreamError) {
      return UnsafeRawBufferPointer(rebasing: window[..<(try frame.read(into: window))])
    } catch {
      throw DiffFileError(error)
    }
  }
}
