/// Bytes on their way from one stage to the next: in memory while they are few, in an unnamed temporary file beyond.
///
/// Everything is written first and then read any number of times, through buffers of the reader's: the file is never
/// mapped. It holds whole segments of 64 KiB, each written once and at its own place, while the rest stays in memory. Buffers that
/// are made while ``sealing`` is set encrypt what goes to the file. One thread at a time, unless it was made for two.
package final class TemporaryBuffer: ByteOutput, RandomAccessBytes {
  package static let segmentBytes = 64 << 10
  /// How many bytes stay in memory, where nothing else is said, before a file takes over.
  package static let usualMemoryLimit = 4 << 20
  /// How many bytes are gathered for one write to the file.
  private static let writeBytes = 4 * segmentBytes

  /// Makes the ciphers of the buffers that this task makes, each of which gets its own; nil where contents may lie on disk as they
  /// are.
  @TaskLocal package static var sealing: Sealing?

  /// How what goes to files is encrypted.
  ///
  /// A struct, and not the closure by itself: optimised code of Swift 6.3 finds no metadata for a task-local value of such a type, and
  /// crashes.
  package struct Sealing: Sendable {
    fileprivate let makeCipher: @Sendable () -> any SpoolCipher

    /// - Parameter makeCipher: Makes the cipher of one buffer.
    package init(_ makeCipher: @escaping @Sendable () -> any SpoolCipher) { self.makeCipher = makeCipher }
  }

  /// How many bytes it holds.
  package private(set) var count = 0
  /// How many bytes are in the file; a multiple of the segment until ``finish()``.
  package private(set) var storedCount = 0
  /// How much of the file its readers take at once.
  package let windowBytes: Int

  private let folder: String
  private let memoryLimit: Int
  private var file: PosixFile?
  private let sealing: Sealing?
  /// What encrypts the bytes of the file; nil until there is one, and where it may hold them as they are.
  private var cipher: (any SpoolCipher)?
  /// What follows those in the file.
  private var memory: [UInt8] = []
  /// How many bytes there will be, where one thread reads while another writes.
  private let arriving: Int?

  /// Makes an empty buffer.
  ///
  /// - Parameters:
  ///   - folder: Where the temporary file goes, if one is needed.
  ///   - memoryLimit: How many bytes stay in memory before a file takes over.
  ///   - windowBytes: How much of the file its readers take at once.
  package convenience init(
    folder: String = TemporaryBuffer.standardFolder, memoryLimit: Int = TemporaryBuffer.usualMemoryLimit,
    windowBytes: Int = 512 << 10
  ) {
    self.init(folder: folder, memoryLimit: memoryLimit, windowBytes: windowBytes, sealing: Self.sealing)
  }

  private init(
    folder: String, memoryLimit: Int, windowBytes: Int, sealing: Sealing?
  ) {
    self.folder = folder
    self.memoryLimit = memoryLimit
    self.windowBytes = windowBytes
    self.sealing = sealing
    arriving = nil
  }

  /// Makes a buffer that holds the given bytes in memory.
  package convenience init(_ bytes: [UInt8]) {
    self.init(memoryLimit: .max)
    memory = bytes
    count = bytes.count
  }

  /// Makes a buffer for so many bytes, which one thread writes while another reads those that ``storedCount`` has told of.
  ///
  /// - Throws: `ByteStreamError` when the temporary file cannot be made.
  package init(
    arriving expected: Int, folder: String = TemporaryBuffer.standardFolder, windowBytes: Int = 512 << 10
  ) throws(ByteStreamError) {
    self.folder = folder
    memoryLimit = 0
    self.windowBytes = windowBytes
    arriving = expected
    sealing = Self.sealing
    cipher = sealing?.makeCipher()
    file = try PosixFile(temporaryIn: folder)
  }

  /// An empty buffer that keeps its file in the same folder, encrypted if this one is, and is read in the same way.
  ///
  /// - Parameter memoryLimit: How many bytes stay in memory before a file takes over.
  package func makeEmpty(memoryLimit: Int = TemporaryBuffer.usualMemoryLimit) -> TemporaryBuffer {
    TemporaryBuffer(
      folder: folder, memoryLimit: min(memoryLimit, self.memoryLimit), windowBytes: windowBytes,
      sealing: sealing ?? Self.sealing)
  }

  /// `TMPDIR`, or `/tmp`.
  package static var standardFolder: String {
    guard let value = getenv("TMPDIR"), value.pointee != 0 else { return "/tmp" }
    return String(cString: value)
  }

  /// True if nothing has been written.
  package var isEmpty: Bool { count == 0 }

  /// How many bytes it will hold, where that was said in the beginning; else how many it holds.
  package var expectedCount: Int { arriving ?? count }

  /// How many bytes there are; nil where another thread may be writing.
  package var settledCount: Int? { arriving == nil ? count : nil }

  /// All bytes, when they are in memory.
  package var memoryContents: [UInt8]? { file == nil ? memory : nil }

  // MARK: Writing

  /// Adds bytes at the end.
  ///
  /// - Throws: `ByteStreamError` when the temporary file cannot be made or written; the buffer is then of no more use.
  package func write(_ bytes: UnsafeRawBufferPointer) throws(ByteStreamError) {
    if file == nil, bytes.count > memoryLimit - count {
      cipher = sealing?.makeCipher()
      file = try PosixFile(temporaryIn: folder)
    }
    var rest = bytes
    if file != nil, bytes.count >= Self.writeBytes {
      // What comes in large pieces need not be gathered, only the segment be filled that has begun.
      let filling = (Self.segmentBytes - memory.count % Self.segmentBytes) % Self.segmentBytes
      memory.append(contentsOf: rest[..<filling])
      try store(memory.count)
      let whole = (rest.count - filling) / Self.segmentBytes * Self.segmentBytes
      try store(UnsafeRawBufferPointer(rebasing: rest[filling..<filling + whole]))
      rest = UnsafeRawBufferPointer(rebasing: rest[(filling + whole)...])
    }
    memory.append(contentsOf: rest)
    count += bytes.count
    if memory.count >= Self.writeBytes { try store(memory.count / Self.segmentBytes * Self.segmentBytes) }
  }

  /// Adds all of another buffer's bytes.
  ///
  /// - Throws: `ByteStreamError` when either file fails.
  package func write(contentsOf other: TemporaryBuffer) throws { try other.forEachPiece { try write($0) } }

  /// Stores what is left, when everything was written: a reader in another thread sees it then.
  package func finish() throws(ByteStreamError) { try store(memory.count) }

  private func store(_ bytes: UnsafeRawBufferPointer) throws(ByteStreamError) {
    guard let file else { return }
    if let cipher {
      try store(bytes, in: file, through: cipher)
    } else {
      try file.write(bytes, at: storedCount)
      storedCount += bytes.count
    }
  }

  /// Stores bytes encrypted, a piece at a time.
  private func store(
    _ bytes: UnsafeRawBufferPointer, in file: PosixFile, through cipher: any SpoolCipher
  ) throws(ByteStreamError) {
    let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: min(bytes.count, Self.writeBytes), alignment: 16)
    defer { piece.deallocate() }
    var rest = bytes
    while !rest.isEmpty {
      let count = min(rest.count, piece.count)
      piece.copyMemory(from: UnsafeRawBufferPointer(rebasing: rest[..<count]))
      let filled = UnsafeMutableRawBufferPointer(rebasing: piece[..<count])
      try cipher.apply(to: filled, at: storedCount)
      try file.write(UnsafeRawBufferPointer(filled), at: storedCount)
      storedCount += count
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
  }

  /// Stores what has been gathered first.
  private func store(_ size: Int) throws(ByteStreamError) {
    guard file != nil else { return }
    try memory.withUnsafeBufferPointer { (bytes) throws(ByteStreamError) in
      try store(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: bytes[..<size])))
    }
    if memory.capacity > 2 * Self.writeBytes {
      // The block of memory that came before the file is given back.
      memory = Array(memory[size...])
    } else {
      memory.removeSubrange(..<size)
    }
  }

  // MARK: Reading

  /// Reads the bytes from an offset on.
  ///
  /// Where another thread writes, only what it has stored may be asked for.
  ///
  /// - Returns: How many bytes were read: fewer than fit only where the buffer ends.
  /// - Throws: `ByteStreamError` when the temporary file cannot be read.
  package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(ByteStreamError) -> Int {
    // What is still in memory is not looked at while the other thread may be changing it.
    if arriving != nil {
      let count = try file?.read(into: buffer, at: offset) ?? 0
      try decrypt(buffer, count, at: offset)
      return count
    }
    let total = min(buffer.count, max(0, count - offset))
    let stored = min(total, max(0, storedCount - offset))
    if let file, stored > 0 {
      let window = UnsafeMutableRawBufferPointer(rebasing: buffer[..<stored])
      guard try file.read(into: window, at: offset) == stored else { throw lostEnd }
      try decrypt(window, stored, at: offset)
    }
    if total > stored {
      let start = offset + stored - storedCount
      memory.withUnsafeBytes {
        let rest = UnsafeRawBufferPointer(rebasing: $0[start..<start + total - stored])
        UnsafeMutableRawBufferPointer(rebasing: buffer[stored..<total]).copyMemory(from: rest)
      }
    }
    return total
  }

  private func decrypt(
    _ buffer: UnsafeMutableRawBufferPointer, _ count: Int, at offset: Int
  ) throws(ByteStreamError) {
    guard let cipher, count > 0 else { return }
    try cipher.apply(to: UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]), at: offset)
  }

  private var lostEnd: ByteStreamError {
    ByteStreamError(.unreadable, "a temporary file in \(folder) has lost its end")
  }

  /// Gives a range of the bytes to `body` piece by piece: all at once when they are in memory.
  ///
  /// `body` may write to the buffer and gets the bytes as they were before.
  ///
  /// - Throws: `ByteStreamError` when the file cannot be read; whatever `body` throws.
  package func forEachPiece(_ range: Range<Int>? = nil, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    let range = range ?? 0..<count
    if let memory = memoryContents {
      return try memory.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[range])) }
    }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: min(windowBytes, range.count), alignment: 16)
    defer { buffer.deallocate() }
    var start = range.lowerBound
    while start < range.upperBound {
      let wanted = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(buffer.count, range.upperBound - start)])
      let found = try read(into: wanted, at: start)
      guard found > 0 else { throw lostEnd }
      try body(UnsafeRawBufferPointer(rebasing: wanted[..<found]))
      start += found
    }
  }

  /// A copy of all bytes in memory: for what is known to be small, or needed there.
  ///
  /// - Throws: `ByteStreamError` when the file cannot be read.
  package func allBytes() throws -> [UInt8] {
    if let memory = memoryContents { return memory }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    try forEachPiece { bytes.append(contentsOf: $0) }
    return bytes
  }
}

/// Encrypts what a temporary buffer keeps in its file, under a key that is nowhere else and is not kept.
///
/// Two threads may use one at the same time.
package protocol SpoolCipher: AnyObject, Sendable {
  /// Encrypts bytes in place, or decrypts what was encrypted: both are the same.
  ///
  /// - Parameters:
  ///   - bytes: The bytes.
  ///   - offset: Where the first of them stands. No place is ever written twice.
  /// - Throws: `ByteStreamError`. What the bytes are then is not known.
  func apply(to bytes: UnsafeMutableRawBufferPointer, at offset: Int) throws(ByteStreamError)
}
