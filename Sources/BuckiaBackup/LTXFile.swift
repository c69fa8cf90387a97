import BuckiaBytes
import BuckiaStorage

/// A file of Litestream's format [LTX](https://github.com/superfly/ltx): pages that some transactions have written.
///
/// A header of 100 bytes, pages with a header each, an index of the pages, and two checksums.
struct LTXFile {
  /// The fields of the header.
  let pageSize: Int
  /// The size of the database after the transactions, in pages.
  let pageCount: Int64
  /// The time of the last transaction, in milliseconds since 1970.
  let time: Int64

  static let headerByteCount = 100
  private static let magic = Array("LTX1".utf8)

  /// Reads a header.
  ///
  /// - Throws: `StorageError` with `damaged`.
  init(header: [UInt8], at path: RemotePath) throws(StorageError) {
    guard header.count >= Self.headerByteCount, header.prefix(4).elementsEqual(Self.magic) else {
      throw StorageError(.damaged, "it is no LTX file", path: path)
    }
    pageSize = Int(header[8..<12].bigEndianNumber)
    pageCount = Int64(header[12..<16].bigEndianNumber)
    time = Int64(bitPattern: header[32..<40].bigEndianNumber)
    guard (512...65_536).contains(pageSize), pageSize & (pageSize - 1) == 0, pageCount > 0 else {
      throw StorageError(.damaged, "its header is not in order", path: path)
    }
  }

  /// Reads the pages of a file.
  ///
  /// - Parameters:
  ///   - path: A local copy of the file.
  ///   - object: Its name in errors.
  ///   - body: Called for each page with its number, from 1.
  /// - Throws: `StorageError` with `damaged`, also if the checksum of the file does not match; `ByteStreamError`; what
  ///   `body` throws.
  static func read(
    _ path: String, _ object: RemotePath, _ body: (LTXFile, _ number: Int64, UnsafeRawBufferPointer) throws -> Void
  ) throws {
    var input = try LTXInput(path, object)
    let header = try input.next(headerByteCount)
    let file = try LTXFile(header: Array(header), at: object)
    var page = [UInt8](repeating: 0, count: file.pageSize)
    while true {
      let head = try input.next(6)
      let (number, flags) = (Int64(head.prefix(4).bigEndianNumber), head.suffix(2).bigEndianNumber)
      if number == 0 { break }
      let isRead =
        if flags & 1 == 1 {
          LZ4.decode(try input.take(Int(input.next(4).bigEndianNumber)), into: &page) == page.count
        } else {
          try input.takeFrame(into: &page)
        }
      guard isRead, number <= file.pageCount else {
        throw StorageError(.damaged, "its page \(number) is damaged", path: object)
      }
      input.checksum.add(page)
      try page.withUnsafeBytes { try body(file, number, $0) }
    }
    try input.finish()
  }
}

/// Reads the bytes of an LTX file in order.
private struct LTXInput {
  private let file: PosixFile
  private let object: RemotePath
  private var offset = 0
  private var window: [UInt8] = []
  private var position = 0
  /// The checksum of what has been read, with pages uncompressed.
  var checksum = CRC64()

  private static let windowBytes = 1 << 20
  /// The greatest size of a compressed page.
  private static let partLimit = 1 << 18

  init(_ path: String, _ object: RemotePath) throws {
    file = try PosixFile(reading: path)
    self.object = object
  }

  private var damage: StorageError { StorageError(.damaged, "it ends too early, or is damaged", path: object) }

  /// The next bytes, which the checksum covers.
  mutating func next(_ count: Int) throws -> ArraySlice<UInt8> {
    let bytes = try take(count)
    checksum.add(bytes)
    return bytes
  }

  /// The next bytes, which the checksum does not cover: a compressed page.
  mutating func take(_ count: Int) throws -> ArraySlice<UInt8> {
    guard count <= Self.partLimit else { throw damage }
    if window.count - position < count { try fill() }
    guard window.count - position >= count else { throw damage }
    position += count
    return window[position - count..<position]
  }

  private mutating func fill() throws {
    window.removeFirst(position)
    position = 0
    let kept = window.count
    window.append(contentsOf: repeatElement(0, count: Self.windowBytes))
    let read = try window.withUnsafeMutableBytes {
      try file.read(into: UnsafeMutableRawBufferPointer(rebasing: $0[kept...]), at: offset)
    }
    offset += read
    window.removeLast(Self.windowBytes - read)
  }

  /// Reads a page that is a frame of LZ4, as the first versions of LTX have it:
  /// <https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md>.
  ///
  /// - Returns: False if it is damaged.
  mutating func takeFrame(into page: inout [UInt8]) throws -> Bool {
    guard try take(4).elementsEqual([0x04, 0x22, 0x4d, 0x18]) else { return false }
    let flags = try take(2).first ?? 0
    _ = try take((flags & 8 == 0 ? 0 : 8) + (flags & 1 == 0 ? 0 : 4) + 1)
    var count = 0
    while true {
      let size = try take(4).reversed().reduce(0) { $0 << 8 | Int($1) }
      if size == 0 { break }
      let block = try take(size & 0x7fff_ffff)
      if size >> 31 == 1 {
        guard count + block.count <= page.count else { return false }
        page.replaceSubrange(count..<count + block.count, with: block)
        count += block.count
      } else {
        guard let end = LZ4.decode(block, into: &page, from: count) else { return false }
        count = end
      }
      if flags & 16 != 0 { _ = try take(4) }
    }
    if flags & 4 != 0 { _ = try take(4) }
    return count == page.count
  }

  /// Reads the index of pages and the checksums.
  ///
  /// - Throws: `StorageError` with `damaged` if the checksum of the file does not match.
  mutating func finish() throws {
    // The checksum covers all but itself.
    var rest = Int(file.initialByteCount) - (offset - window.count + position) - 8
    while rest > 0 {
      let count = min(rest, Self.partLimit)
      _ = try next(count)
      rest -= count
    }
    let stated = try take(8).bigEndianNumber
    guard rest == 0, stated == checksum.value | 1 << 63 else {
      throw StorageError(.damaged, "its checksum does not match", path: object)
    }
  }
}

/// The checksum CRC-64 of ISO 3309.
struct CRC64 {
  private var state = UInt64.max
  var value: UInt64 { ~state }

  private static let table: [UInt64] = (0..<256).map { byte in
    (0..<8).reduce(UInt64(byte)) { sum, _ in sum & 1 == 1 ? sum >> 1 ^ 0xd800_0000_0000_0000 : sum >> 1 }
  }

  mutating func add(_ bytes: some Sequence<UInt8>) {
    let table = Self.table
    for byte in bytes { state = table[Int(UInt8(truncatingIfNeeded: state) ^ byte)] ^ state >> 8 }
  }
}

/// Blocks of LZ4: <https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md>.
enum LZ4 {
  /// Decompresses a block.
  ///
  /// - Parameter start: Where its bytes begin in the output; earlier ones can be referred to.
  /// - Returns: Where they end; nil for a damaged block, or one that does not fit.
  static func decode(_ block: ArraySlice<UInt8>, into output: inout [UInt8], from start: Int = 0) -> Int? {
    var (place, end) = (block.startIndex, start)
    func length(_ nibble: Int) -> Int? {
      guard nibble == 15 else { return nibble }
      var sum = 15
      while place < block.endIndex {
        let byte = block[place]
        place += 1
        sum += Int(byte)
        if byte < 255 { return sum }
      }
      return nil
    }
    while place < block.endIndex {
      let token = Int(block[place])
      place += 1
      guard let literals = length(token >> 4), literals <= block.endIndex - place, literals <= output.count - end else {
        return nil
      }
      output.replaceSubrange(end..<end + literals, with: block[place..<place + literals])
      place += literals
      end += literals
      // The last sequence has literals only.
      if place == block.endIndex { return end }
      guard block.endIndex - place >= 2 else { return nil }
      let distance = Int(block[place]) | Int(block[place + 1]) << 8
      place += 2
      guard let rest = length(token & 15), distance > 0, distance <= end, rest + 4 <= output.count - end else {
        return nil
      }
      // Both ranges can overlap.
      for _ in 0..<(rest + 4) {
        output[end] = output[end - distance]
        end += 1
      }
    }
    return nil
  }
}

extension Sequence<UInt8> {
  fileprivate var bigEndianNumber: UInt64 { reduce(0) { $0 << 8 | UInt64($1) } }
}
