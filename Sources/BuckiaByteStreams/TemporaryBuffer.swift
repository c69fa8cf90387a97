/// Bytes on their way from one stage to the next: in memory while they are few, in an unnamed temporary file beyond.
///
/// Everything is written first and then read any number of times, through buffers of the reader's: the file is never
/// mapped. It holds whole segments of 64 KiB, each written once and at its own place, while the rest stays in memory. So
/// segments can be encrypted one by one when the contents must not lie on disk as they are. One thread at a time.
package final class TemporaryBuffer: ByteOutput {
  package static let segmentBytes = 64 << 10

  /// How many bytes it holds.
  package private(set) var byteCount: Int64 = 0

  private let folder: String
  private let memoryLimit: Int
  private var file: PosixFile?
  /// How many bytes are in the file; a multiple of the segment.
  private var storedBytes: Int64 = 0
  /// What follows those in the file.
  private var memory: [UInt8] = []

  /// Makes an empty buffer.
  ///
  /// - Parameters:
  ///   - folder: Where the temporary file goes, if one is needed.
  ///   - memoryLimit: How many bytes stay in memory before a file takes over.
  package init(folder: String, memoryLimit: Int = 4 << 20) {
    self.folder = folder
    self.memoryLimit = memoryLimit
  }

  /// Adds bytes at the end.
  ///
  /// - Throws: `ByteStreamError` when the temporary file cannot be made or written; the buffer is then of no more use.
  package func write(_ bytes: UnsafeRawBufferPointer) throws(ByteStreamError) {
    memory.append(contentsOf: bytes)
    byteCount += Int64(bytes.count)
    if file == nil, memory.count > memoryLimit { file = try PosixFile(temporaryIn: folder) }
    guard let file, memory.count >= Self.segmentBytes else { return }
    let whole = memory.count / Self.segmentBytes * Self.segmentBytes
    let stored = storedBytes
    try memory.withUnsafeBufferPointer { (bytes) throws(ByteStreamError) in
      try file.write(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: bytes[..<whole])), at: stored)
    }
    storedBytes += Int64(whole)
    // The block of memory that came before the file is given back.
    memory = Array(memory[whole...])
  }

  /// Reads the bytes from an offset on.
  ///
  /// - Returns: How many bytes were read: fewer than fit only where the buffer ends.
  /// - Throws: `ByteStreamError` when the temporary file cannot be read.
  package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(ByteStreamError) -> Int {
    let total = Int(min(Int64(buffer.count), max(0, byteCount - offset)))
    let stored = Int(min(Int64(total), max(0, storedBytes - offset)))
    if let file, stored > 0 {
      let window = UnsafeMutableRawBufferPointer(rebasing: buffer[..<stored])
      guard try file.read(into: window, at: offset) == stored else {
        throw ByteStreamError(.unreadable, "a temporary file in \(folder) has lost its end")
      }
    }
    if total > stored {
      let start = Int(offset + Int64(stored) - storedBytes)
      memory.withUnsafeBytes {
        let rest = UnsafeRawBufferPointer(rebasing: $0[start..<start + total - stored])
        UnsafeMutableRawBufferPointer(rebasing: buffer[stored..<total]).copyMemory(from: rest)
      }
    }
    return total
  }

  /// Reads a range of the bytes from its beginning to its end.
  package func input(_ range: Range<Int64>) -> some ByteInput { RangeInput(self, range) }

  /// Reads all of the bytes from the beginning to the end.
  package func input() -> some ByteInput { RangeInput(self, 0..<byteCount) }

  private final class RangeInput: ByteInput {
    private let buffer: TemporaryBuffer
    private var rest: Range<Int64>

    init(_ buffer: TemporaryBuffer, _ range: Range<Int64>) {
      self.buffer = buffer
      rest = range
    }

    func read(into window: UnsafeMutableRawBufferPointer) throws(ByteStreamError) -> Int {
      let wanted = UnsafeMutableRawBufferPointer(rebasing: window[..<min(window.count, rest.count)])
      let count = try buffer.read(into: wanted, at: rest.lowerBound)
      rest = (rest.lowerBound + Int64(count))..<rest.upperBound
      return count
    }
  }
}
