import BuckiaBytes

/// Accepts a number of bytes and no more, like a full volume.
final class LimitedOutput: ByteOutput {
  private var byteCount: Int

  init(byteCount: Int) { self.byteCount = byteCount }

  func write(_ bytes: UnsafeRawBufferPointer) throws(ByteStreamError) {
    byteCount -= bytes.count
    guard byteCount >= 0 else { throw ByteStreamError(.fullDisk, "it cannot be written") }
  }
}
