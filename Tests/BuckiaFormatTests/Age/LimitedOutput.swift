import BuckiaBytes

/// Takes so many bytes, and no more: a volume that is full.
final class LimitedOutput: ByteOutput {
  private var byteCount: Int

  init(byteCount: Int) { self.byteCount = byteCount }

  func write(_ bytes: UnsafeRawBufferPointer) throws(ByteStreamError) {
    byteCount -= bytes.count
    guard byteCount >= 0 else { throw ByteStreamError(.fullDisk, "it cannot be written") }
  }
}
