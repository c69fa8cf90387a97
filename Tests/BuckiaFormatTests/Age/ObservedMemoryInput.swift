import BuckiaBytes
import TestSupport

/// Reads bytes in memory, and counts them.
final class ObservedMemoryInput: ByteInput {
  private let input: MemoryInput
  private(set) var byteCount = 0

  init(_ bytes: [UInt8]) { input = MemoryInput(bytes) }

  func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let count = input.read(into: buffer)
    byteCount += count
    return count
  }
}
