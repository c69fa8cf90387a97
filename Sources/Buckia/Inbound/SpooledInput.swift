import BuckiaBytes
import BuckiaFormat

/// Bytes that came without a name, such as standard input, and can be read more than once.
///
/// Where they are no file, they are kept: few in memory, many in a file without a name. Whatever ends the process, nothing stays
/// behind.
package final class SpooledInput: @unchecked Sendable {
  /// What the bytes are called, for people and for the ledger.
  package let name: String
  /// How many bytes there are.
  let byteCount: Int64
  // Complete before anybody else sees it, and only read from then on.
  private let bytes: any RandomAccessBytes

  /// Takes all bytes of an input; of one that begins as no file of ours does, only the first, by which it is refused.
  ///
  /// - Parameters:
  ///   - input: The bytes.
  ///   - name: What they are called.
  /// - Throws: `BuckiaError` when they cannot be read or kept.
  package init(_ input: any ByteInput, named name: String) throws {
    self.name = name
    let spool = TemporaryBuffer()
    try BuckiaError.wrapping {
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: streamChunkBytes, alignment: 16)
      defer { buffer.deallocate() }
      var count = try input.readFully(into: buffer)
      let isKnown = InboundKind(beginning: buffer.prefix(count)) != nil
      while count > 0 {
        try spool.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        count = isKnown ? try input.read(into: buffer) : 0
      }
    }
    bytes = spool
    byteCount = Int64(spool.count)
  }

  /// Takes a regular file that is open already.
  private init(opened file: PosixFile, named name: String) {
    self.name = name
    bytes = file
    byteCount = file.initialByteCount
  }

  /// Takes the standard input of the process, up to its end.
  ///
  /// - Throws: `BuckiaError` when it cannot be read or kept.
  package static func standardInput() throws -> SpooledInput {
    let name = "standard-input"
    let file = try BuckiaError.wrapping { try PosixFile.standardInput() }
    guard file.identity == nil else { return SpooledInput(opened: file, named: name) }
    return try SpooledInput(file, named: name)
  }

  /// The bytes from the first on; each call begins anew.
  func opened() -> OpenedFile { OpenedFile(PositionedInput(bytes), byteCount: byteCount, name: name) }
}
