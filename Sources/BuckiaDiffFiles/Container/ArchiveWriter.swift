/// Writes the members of an archive, compressed and sealed, into a new file.
final class ArchiveWriter {
  private let file: NewFile
  private let compressor: ZstdCompressor
  private var digest = RunningDigest()
  private var left: Int64 = 0
  private var padding = 0

  init(_ file: NewFile, level: Int) throws(DiffFileError) {
    self.file = file
    compressor = try ZstdCompressor(level: level)
  }

  /// Writes a member that is in memory.
  func append(_ name: String, _ bytes: [UInt8]) throws(DiffFileError) {
    try begin(name, size: Int64(bytes.count))
    try put(bytes, .take)
    left -= Int64(bytes.count)
    try end()
  }

  /// Opens a member of exactly `size` bytes.
  func begin(_ name: String, size: Int64) throws(DiffFileError) {
    let header = TarHeader.bytes(name: name, size: size)
    try put(header, .take)
    left = size
    padding = TarHeader.padding(after: size)
  }

  /// Adds bytes to the open member.
  func append(_ bytes: UnsafeRawBufferPointer) throws(DiffFileError) {
    left -= Int64(bytes.count)
    try put(bytes, .take)
  }

  /// Ends the open member, and the block it is in.
  func end() throws(DiffFileError) {
    guard left == 0 else { throw DiffFileError(.contradiction, "a member changed its size while it was written") }
    try putZeros(padding, .flush)
  }

  /// Ends the archive.
  ///
  /// - Returns: SHA-256 of the whole file.
  func finish() throws(DiffFileError) -> ContentDigest {
    for length in FrameSeal.blockLengths(digest.digest) { try putZeros(length, .flush) }
    try putZeros(0, .end)
    return digest.digest
  }

  private func putZeros(_ count: Int, _ goal: ZstdCompressor.Goal) throws(DiffFileError) {
    try put([UInt8](repeating: 0, count: count), goal)
  }

  private func put(_ bytes: [UInt8], _ goal: ZstdCompressor.Goal) throws(DiffFileError) {
    try bytes.withUnsafeBufferPointer { (buffer) throws(DiffFileError) in
      try put(UnsafeRawBufferPointer(buffer), goal)
    }
  }

  private func put(_ bytes: UnsafeRawBufferPointer, _ goal: ZstdCompressor.Goal) throws(DiffFileError) {
    var input = bytes
    var isDone = false
    while !isDone {
      isDone = try compressor.step(&input, goal)
      digest.update(compressor.output)
      try file.write(compressor.output)
    }
  }
}
