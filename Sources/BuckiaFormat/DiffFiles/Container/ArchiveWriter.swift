import BuckiaBytes

/// Writes the members of an archive one after the other, compressed, to an output.
final class ArchiveWriter {
  private let frame: ZstdOutput
  private var left: Int64 = 0
  private var padding = 0

  init(_ output: any ByteOutput, level: Int) throws(DiffFileError) {
    do throws(ByteStreamError) { frame = try ZstdOutput(output, level: level) } catch { throw DiffFileError(error) }
  }

  /// Writes a member that is in memory.
  func append(_ name: String, _ bytes: [UInt8]) throws(DiffFileError) {
    try begin(name, size: Int64(bytes.count))
    try bytes.withUnsafeBufferPointer { (buffer) throws(DiffFileError) in
      try append(UnsafeRawBufferPointer(buffer))
    }
    try end()
  }

  /// Opens a member of exactly `size` bytes.
  func begin(_ name: String, size: Int64) throws(DiffFileError) {
    try put(TarHeader.bytes(name: name, size: size))
    left = size
    padding = TarHeader.padding(after: size)
  }

  /// Adds bytes to the open member.
  func append(_ bytes: UnsafeRawBufferPointer) throws(DiffFileError) {
    left -= Int64(bytes.count)
    do throws(ByteStreamError) { try frame.write(bytes) } catch { throw DiffFileError(error) }
  }

  /// Ends the open member, and the block it is in.
  func end() throws(DiffFileError) {
    guard left == 0 else { throw DiffFileError(.contradiction, "a member changed its size while it was written") }
    try put([UInt8](repeating: 0, count: padding))
    do throws(ByteStreamError) { try frame.flush() } catch { throw DiffFileError(error) }
  }

  /// Ends the archive.
  func finish() throws(DiffFileError) {
    try put([UInt8](repeating: 0, count: TarHeader.endBytes))
    do throws(ByteStreamError) { try frame.finish() } catch { throw DiffFileError(error) }
  }

  private func put(_ bytes: [UInt8]) throws(DiffFileError) {
    do throws(ByteStreamError) { try frame.write(bytes) } catch { throw DiffFileError(error) }
  }
}
