import BuckiaBytes
import BuckiaFormat
import BuckiaStorage
import Crypto

/// The pages in which one copy of a database differs from an earlier one, as a file: see `Schemas/backups.md`.
///
/// For a few changed rows in a database of many megabytes, a delta takes some kilobytes, and the restored database is
/// the same to the byte.
struct PageDelta {
  /// The header of a delta.
  struct Header: Equatable {
    let pageSize: Int
    /// The size of the newer copy in bytes.
    let byteCount: Int64
    /// The SHA-256 of the earlier copy.
    let base: [UInt8]
    /// The SHA-256 of the newer copy.
    let result: [UInt8]
  }

  static let magic = Array("buckia pages 1\n\0".utf8)
  /// The bytes of pages that are compared at once.
  private static let windowBytes = 1 << 20
  private static let compressionLevel = 3

  // MARK: Writing

  /// Writes the difference of two copies.
  ///
  /// - Parameters:
  ///   - base: The earlier copy. It must not change meanwhile.
  ///   - newer: The newer one.
  ///   - digests: The SHA-256 of both.
  ///   - path: The file to make. One of that name is replaced.
  /// - Returns: The size in bytes; nil if the copies have pages of different sizes, or one is not a database.
  /// - Throws: `StorageError`.
  static func write(
    from base: String, to newer: String, digests: (base: [UInt8], newer: [UInt8]), at path: String
  ) throws(StorageError) -> Int64? {
    do throws(ByteStreamError) {
      let (old, new) = (try PosixFile(reading: base), try PosixFile(reading: newer))
      guard let pageSize = try Self.pageSize(of: old), try Self.pageSize(of: new) == pageSize else { return nil }
      let file = try AtomicFileOutput(at: path, replacing: true, isPrivate: !new.isReadableByAll())
      let output = try ZstdOutput(file, level: compressionLevel)
      try output.write(
        Header(pageSize: pageSize, byteCount: new.initialByteCount, base: digests.base, result: digests.newer).bytes)
      var index: Int64 = 0
      let pages = windowBytes / pageSize
      var (oldWindow, newWindow) = ([UInt8](), [UInt8]())
      while index * Int64(pageSize) < new.initialByteCount {
        let offset = Int(index) * pageSize
        try fill(&oldWindow, from: old, at: offset, pages * pageSize)
        try fill(&newWindow, from: new, at: offset, pages * pageSize)
        try write(runs(of: newWindow, unlike: oldWindow, pageSize), newWindow, pageSize, after: index, to: output)
        index += Int64(pages)
      }
      try output.write(bigEndian(0, 4) + bigEndian(0, 4))
      try output.finish()
      try file.publish()
      return try PosixFile(reading: path).initialByteCount
    } catch { throw StorageError(error) }
  }

  private static func fill(
    _ window: inout [UInt8], from file: PosixFile, at offset: Int, _ count: Int
  ) throws(ByteStreamError) {
    var read = 0
    do {
      window = try [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
        read = try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
        initialized = read
      }
    } catch let error as ByteStreamError { throw error } catch {
      throw ByteStreamError(.unreadable, "\(error)")
    }
  }

  /// The pages of a window that are not the same, as ranges of their numbers in it.
  private static func runs(of window: [UInt8], unlike other: [UInt8], _ pageSize: Int) -> [Range<Int>] {
    var runs: [Range<Int>] = []
    window.withUnsafeBytes { new in
      other.withUnsafeBytes { old in
        for page in 0..<(window.count + pageSize - 1) / pageSize {
          let range = page * pageSize..<min((page + 1) * pageSize, new.count)
          let isSame = range.upperBound <= old.count && new[range].elementsEqual(old[range])
          guard !isSame else { continue }
          if let last = runs.last, last.upperBound == page {
            runs[runs.count - 1] = last.lowerBound..<page + 1
          } else {
            runs.append(page..<page + 1)
          }
        }
      }
    }
    return runs
  }

  private static func write(
    _ runs: [Range<Int>], _ window: [UInt8], _ pageSize: Int, after first: Int64, to output: ZstdOutput
  ) throws(ByteStreamError) {
    for run in runs {
      try output.write(bigEndian(UInt64(first) + UInt64(run.lowerBound), 4) + bigEndian(UInt64(run.count), 4))
      try output.write(Array(window[run.lowerBound * pageSize..<min(run.upperBound * pageSize, window.count)]))
    }
  }

  /// The size of a database's pages, from its header: <https://sqlite.org/fileformat2.html#page_size>.
  private static func pageSize(of file: PosixFile) throws(ByteStreamError) -> Int? {
    var header: [UInt8] = []
    try fill(&header, from: file, at: 0, 100)
    guard header.count == 100, header.starts(with: Array("SQLite format 3\0".utf8)) else { return nil }
    let size = Int(header[16]) << 8 | Int(header[17])
    let pageSize = size == 1 ? 65_536 : size
    guard pageSize >= 512, pageSize & (pageSize - 1) == 0, file.initialByteCount % Int64(pageSize) == 0 else {
      return nil
    }
    return pageSize
  }

  /// True if a copy of a database has fewer pages than its header names.
  ///
  /// - Parameters:
  ///   - header: Its first 100 bytes, or all where it has fewer.
  ///   - byteCount: Its size in bytes.
  static func isBeginning(_ header: [UInt8], of byteCount: Int64) -> Bool {
    guard header.starts(with: Array("SQLite format 3\0".utf8).prefix(header.count)) else { return false }
    guard header.count == 100 else { return true }
    let size = number(header[16..<18])
    return byteCount < Int64(size == 1 ? 65_536 : size) * Int64(number(header[28..<32]))
  }

  /// The same of a file of this device.
  static func isBeginning(ofFile path: String) throws(ByteStreamError) -> Bool {
    let file = try PosixFile(reading: path)
    var header: [UInt8] = []
    try fill(&header, from: file, at: 0, 100)
    return isBeginning(header, of: file.initialByteCount)
  }

  static func bigEndian(_ number: UInt64, _ count: Int) -> [UInt8] {
    (0..<count).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * UInt64($0))) }
  }

  // MARK: Reading

  /// Updates the earlier copy to the newer one.
  ///
  /// - Parameters:
  ///   - delta: The file with the difference.
  ///   - digest: The SHA-256 of the earlier copy.
  ///   - database: The earlier copy, which becomes the newer one.
  /// - Returns: The SHA-256 of the newer copy; nil if the delta belongs to another copy, and nothing was changed.
  /// - Throws: `StorageError` with `damaged` when the delta is not as it has to be. The copy is then useless.
  static func apply(_ delta: String, onto database: String, of digest: [UInt8]) throws(StorageError) -> [UInt8]? {
    do throws(ByteStreamError) {
      let input = try ZstdInput(PosixFile(reading: delta), ZstdWorkspace())
      let header = try Header(reading: input)
      guard header.base == digest else { return nil }
      let file = try PosixFile(updating: database)
      try file.truncate(to: header.byteCount)
      let limit = header.byteCount / Int64(header.pageSize)
      var next: Int64 = 0
      while true {
        let run = try read(8, from: input)
        let (first, count) = (Int64(number(run[0..<4])), Int64(number(run[4..<8])))
        if count == 0 { break }
        guard first >= next, first + count <= limit else { throw damaged("its pages are out of order") }
        for page in first..<first + count {
          try write(read(header.pageSize, from: input), to: file, at: Int(page) * header.pageSize)
        }
        next = first + count
      }
      guard try readSome(1, from: input).isEmpty else { throw damaged("something follows its end") }
      try file.syncAndClose()
      guard try Self.digest(of: database) == header.result else {
        throw damaged("it does not lead to the copy that it names")
      }
      return header.result
    } catch {
      throw StorageError(.damaged, "\(delta): \(error)", cause: error)
    }
  }

  /// The SHA-256 of the copy that a delta begins with.
  ///
  /// - Throws: `StorageError` with `damaged` when it is no delta.
  static func base(of delta: String) throws(StorageError) -> [UInt8] {
    do throws(ByteStreamError) {
      return try Header(reading: ZstdInput(PosixFile(reading: delta), ZstdWorkspace())).base
    } catch { throw StorageError(.damaged, "\(delta): \(error)", cause: error) }
  }

  fileprivate static func read(_ count: Int, from input: ZstdInput) throws(ByteStreamError) -> [UInt8] {
    let bytes = try readSome(count, from: input)
    guard bytes.count == count else { throw damaged("it ends too early") }
    return bytes
  }

  /// Reads bytes: fewer than wanted only at the end.
  private static func readSome(_ count: Int, from input: ZstdInput) throws(ByteStreamError) -> [UInt8] {
    do {
      return try [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
        initialized = try input.readFully(into: UnsafeMutableRawBufferPointer(buffer))
      }
    } catch let error as ByteStreamError { throw error } catch {
      throw ByteStreamError(.unreadable, "\(error)")
    }
  }

  private static func write(_ bytes: [UInt8], to file: PosixFile, at offset: Int) throws(ByteStreamError) {
    do { try bytes.withUnsafeBytes { try file.write($0, at: offset) } } catch let error as ByteStreamError {
      throw error
    } catch { throw ByteStreamError(.unwritable, "\(error)") }
  }

  fileprivate static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }

  fileprivate static func damaged(_ what: String) -> ByteStreamError {
    ByteStreamError(ByteStreamError.Code(rawValue: "badPages"), "it is no list of pages that can be used: \(what)")
  }

  /// The SHA-256 of a file.
  static func digest(of path: String) throws(ByteStreamError) -> [UInt8] {
    let file = try PosixFile(reading: path)
    var hash = SHA256()
    var window: [UInt8] = []
    var offset = 0
    while true {
      try fill(&window, from: file, at: offset, windowBytes)
      guard !window.isEmpty else { return Array(hash.finalize()) }
      hash.update(data: window)
      offset += window.count
    }
  }
}

extension PageDelta.Header {
  private static let byteCount = 16 + 4 + 8 + 32 + 32

  var bytes: [UInt8] {
    PageDelta.magic + PageDelta.bigEndian(UInt64(pageSize), 4) + PageDelta.bigEndian(UInt64(byteCount), 8) + base
      + result
  }

  init(reading input: ZstdInput) throws(ByteStreamError) {
    let bytes = try PageDelta.read(Self.byteCount, from: input)
    guard bytes.starts(with: PageDelta.magic) else { throw PageDelta.damaged("it does not begin like one") }
    pageSize = Int(PageDelta.number(bytes[16..<20]))
    guard let count = Int64(exactly: PageDelta.number(bytes[20..<28])), pageSize >= 512, pageSize <= 65_536,
      pageSize & (pageSize - 1) == 0, count % Int64(pageSize) == 0, count / Int64(pageSize) <= 4_294_967_294
    else { throw PageDelta.damaged("the sizes that it names are impossible") }
    byteCount = count
    base = Array(bytes[28..<60])
    result = Array(bytes[60..<92])
  }
}
