import BuckiaBytes

/// Hands on bytes and counts them.
final class CountingOutput: ByteOutput {
  private let output: any ByteOutput
  private(set) var byteCount: Int64 = 0

  init(_ output: any ByteOutput) { self.output = output }

  func write(_ bytes: UnsafeRawBufferPointer) throws(ByteStreamError) {
    try output.write(bytes)
    byteCount += Int64(bytes.count)
  }
}
