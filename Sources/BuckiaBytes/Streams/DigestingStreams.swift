/// A hash function that takes bytes piece by piece.
///
/// A protocol, so that this module needs no library for cryptography.
package protocol ByteHasher {
  mutating func update(_ bytes: UnsafeRawBufferPointer)
}

/// Hands on the bytes of another input, and counts and hashes them.
package final class DigestingInput<Hasher: ByteHasher>: ByteInput {
  private let source: any ByteInput
  /// Everything that has been read so far.
  package private(set) var hasher: Hasher
  /// How many bytes have been read so far.
  package private(set) var byteCount: Int64 = 0

  package init(_ source: any ByteInput, _ hasher: Hasher) {
    self.source = source
    self.hasher = hasher
  }

  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(ByteStreamError) -> Int {
    let count = try source.read(into: buffer)
    hasher.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    byteCount += Int64(count)
    return count
  }
}

/// Hands on bytes to another output, and counts and hashes them.
package final class DigestingOutput<Hasher: ByteHasher>: ByteOutput {
  private let target: any ByteOutput
  /// Everything that has been written so far.
  package private(set) var hasher: Hasher
  /// How many bytes have been written so far.
  package private(set) var byteCount: Int64 = 0

  package init(_ target: any ByteOutput, _ hasher: Hasher) {
    self.target = target
    self.hasher = hasher
  }

  package func write(_ bytes: UnsafeRawBufferPointer) throws(ByteStreamError) {
    try target.write(bytes)
    hasher.update(bytes)
    byteCount += Int64(bytes.count)
  }
}
