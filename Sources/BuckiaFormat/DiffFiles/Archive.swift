import BuckiaBytes
import SQLiteSchemas

/// Reads the members of a compressed archive in order. The caller says which member must come next.
final class ArchiveReader {
  private let frame: ZstdInput
  /// The last decompressed bytes.
  private let buffer: UnsafeMutableRawBufferPointer
  /// The number of archive bytes that have been read.
  private(set) var offset: Int64 = 0
  /// A header that has been read but not matched yet.
  private var pendingHeader: [UInt8]?

  init(_ source: any ByteInput, workspace: ZstdWorkspace) throws(DiffFileError) {
    do throws(ByteStreamError) { frame = try ZstdInput(source, workspace) } catch { throw DiffFileError(error) }
    buffer = workspace.content
  }

  /// Reads the header of the first member, whose size is stated nowhere else.
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

  /// True if the next member is the one asked for; its header is then read.
  func nextIs(_ name: String, size: Int64) throws(DiffFileError) -> Bool {
    guard try peekHeader() == TarHeader.bytes(name: name, size: size) else { return false }
    pendingHeader = nil
    return true
  }

  /// Reads the header of the member that must come next.
  func member(named name: String, size: Int64) throws(DiffFileError) {
    guard try nextIs(name, size: size) else { throw headerMismatch(try peekHeader(), name: name, size: size) }
  }

  /// Reads a member's bytes, in pieces, and the padding after them.
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

/// Writes the members of an archive one after the other, compressed, to an output.
final class ArchiveWriter {
  private let frame: ZstdOutput
  private var left: Int64 = 0
  private var padding = 0

  init(_ output: any ByteOutput, level: Int) throws(DiffFileError) {
    do throws(ByteStreamError) { frame = try ZstdOutput(output, level: level) } catch { throw DiffFileError(error) }
  }

  /// Writes a member that is in memory.
  func append(_ name: String, _ bytes: [UInt8]) throws(DiffFileError) {
    try begin(name, size: Int64(bytes.count))
    try bytes.withUnsafeBufferPointer { (buffer) throws(DiffFileError) in
      try append(UnsafeRawBufferPointer(buffer))
    }
    try end()
  }

  /// Opens a member of exactly `size` bytes.
  func begin(_ name: String, size: Int64) throws(DiffFileError) {
    try put(TarHeader.bytes(name: name, size: size))
    left = size
    padding = TarHeader.padding(after: size)
  }

  /// Adds bytes to the open member.
  func append(_ bytes: UnsafeRawBufferPointer) throws(DiffFileError) {
    left -= Int64(bytes.count)
    do throws(ByteStreamError) { try frame.write(bytes) } catch { throw DiffFileError(error) }
  }

  /// Ends the open member, and the block it is in.
  func end() throws(DiffFileError) {
    guard left == 0 else { throw DiffFileError(.contradiction, "a member changed its size while it was written") }
    try put([UInt8](repeating: 0, count: padding))
    do throws(ByteStreamError) { try frame.flush() } catch { throw DiffFileError(error) }
  }

  /// Ends the archive.
  func finish() throws(DiffFileError) {
    try put([UInt8](repeating: 0, count: TarHeader.endBytes))
    do throws(ByteStreamError) { try frame.finish() } catch { throw DiffFileError(error) }
  }

  private func put(_ bytes: [UInt8]) throws(DiffFileError) {
    do throws(ByteStreamError) { try frame.write(bytes) } catch { throw DiffFileError(error) }
  }
}

/// The one tar header that a member can have in a diff file, made from its name and size.
///
/// The reader makes the header it expects and compares all 512 bytes, so nothing of a header is ever interpreted but
/// the size of the first: there is no type, mode, link, owner or extension to get wrong. The layout is POSIX ustar
/// (<https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html#tag_20_92_13_06>).
enum TarHeader {
  /// Headers, and the multiple that contents are padded to.
  static let blockBytes = 512
  /// The archive ends with two blocks of zeros.
  static let endBytes = 2 * blockBytes

  private static let sizeField = 124..<136

  /// What all headers have in common: mode, owner and group, time, type, magic, version and device numbers.
  private static let template: [UInt8] = {
    var header = [UInt8](repeating: 0, count: blockBytes)
    let fields: [(Int, String)] = [
      (100, "0000644"), (108, "0000000"), (116, "0000000"), (136, "00000000000"), (156, "0"), (257, "ustar"),
      (263, "00"), (329, "0000000"), (337, "0000000"),
    ]
    for (offset, text) in fields { header.replaceSubrange(offset..<offset + text.utf8.count, with: text.utf8) }
    return header
  }()
  private static let checksumField = 148..<156
  /// The sum of the template's bytes, with the checksum counted as spaces.
  private static let templateSum = template.reduce(Int64(checksumField.count * 0x20)) { $0 + Int64($1) }

  /// The header of a member. `name` has at most 100 bytes, `size` at most ``DiffFileLimits/memberBytes``.
  static func bytes(name: String, size: Int64) -> [UInt8] {
    var header = template
    var sum = templateSum
    func put(_ byte: UInt8, at offset: Int) {
      header[offset] = byte
      sum += Int64(byte)
    }
    var offset = 0
    for byte in name.utf8.prefix(MemberName.byteLimit) {
      put(byte, at: offset)
      offset += 1
    }
    for place in 0..<11 { put(octalDigit(size, place), at: sizeField.lowerBound + 10 - place) }
    for place in 0..<6 { header[checksumField.lowerBound + 5 - place] = octalDigit(sum, place) }
    header[checksumField.upperBound - 1] = UInt8(ascii: " ")
    return header
  }

  /// The size that a header claims, if its size field is eleven octal digits and a NUL.
  static func claimedSize(_ header: [UInt8]) -> Int64? {
    guard header.count == blockBytes, header[sizeField.upperBound - 1] == 0 else { return nil }
    var size: Int64 = 0
    for byte in header[sizeField].dropLast() {
      guard (UInt8(ascii: "0")...UInt8(ascii: "7")).contains(byte) else { return nil }
      size = size << 3 | Int64(byte - UInt8(ascii: "0"))
    }
    return size
  }

  /// The number of zeros after a content of that size.
  static func padding(after size: Int64) -> Int {
    let rest = Int(size % Int64(blockBytes))
    return rest == 0 ? 0 : blockBytes - rest
  }

  /// The octal digit of a number at a place; place 0 is the last digit.
  private static func octalDigit(_ number: Int64, _ place: Int) -> UInt8 {
    UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number >> (3 * Int64(place)) & 7)
  }
}
