/// The header of a zstd frame, as far as the format allows one.
///
/// See [RFC 8878](https://www.rfc-editor.org/rfc/rfc8878#section-3.1.1). We read header and block headers ourselves:
/// to refuse what the library would accept (dictionaries, frames without checksum, skippable frames, large windows)
/// and to know where blocks end, which ``FrameSeal`` needs.
struct ZstdFrame: Equatable {
  static let magic: [UInt8] = [0x28, 0xb5, 0x2f, 0xfd]
  static let checksumBytes = 4
  static let blockHeaderBytes = 3
  /// The largest block, packed or unpacked.
  static let blockBytes = 1 << 17
  /// Windows up to 8 MiB, the size every decoder is asked to support.
  static let windowLogLimit = 23

  /// How many bytes of header follow the descriptor byte.
  let bytesAfterDescriptor: Int
  private let isSingleSegment: Bool

  /// Reads the frame header descriptor, the byte after the magic number.
  init(descriptor: UInt8) throws(DiffFileError) {
    guard descriptor & 0b11 == 0 else { throw Self.fault("the frame needs a dictionary") }
    guard descriptor & 0b100 != 0 else { throw Self.fault("the frame has no checksum") }
    guard descriptor & 0b1_1000 == 0 else { throw Self.fault("reserved bits of the frame header are set") }
    isSingleSegment = descriptor & 0b10_0000 != 0
    let contentSizeBytes =
      switch descriptor >> 6 {
      case 0: isSingleSegment ? 1 : 0
      case 1: 2
      case 2: 4
      default: 8
      }
    bytesAfterDescriptor = (isSingleSegment ? 0 : 1) + contentSizeBytes
  }

  /// Checks the window that the rest of the header asks for.
  func checkWindow(_ rest: [UInt8]) throws(DiffFileError) {
    guard rest.count == bytesAfterDescriptor else { return }
    let window: UInt64
    if isSingleSegment {
      let size = rest.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      window = rest.count == 2 ? size + 256 : size
    } else {
      let base = UInt64(1) << (10 + UInt64(rest[0] >> 3))
      window = base + base / 8 * UInt64(rest[0] & 7)
    }
    guard window <= 1 << Self.windowLogLimit else { throw Self.fault("the frame needs a window of \(window) bytes") }
  }

  /// One block's header: three bytes, little-endian.
  struct Block {
    let isLast: Bool
    /// How many bytes of the file follow the header.
    let storedBytes: Int

    init(_ header: [UInt8], at offset: Int) throws(DiffFileError) {
      let bits = header.reversed().reduce(0) { $0 << 8 | Int($1) }
      isLast = bits & 1 == 1
      let kind = bits >> 1 & 3
      let size = bits >> 3
      guard kind != 3, size <= ZstdFrame.blockBytes else {
        throw ZstdFrame.fault("a block's header is impossible", at: offset)
      }
      // zstd ends a flushed frame with one empty block. Elsewhere they only allow a frame to be written in many ways,
      // and the library takes an empty block for empty whatever its kind says.
      guard size > 0 || (isLast && kind == 0) else {
        throw ZstdFrame.fault("an empty block stands where none belongs", at: offset)
      }
      // Kind 1 is one byte repeated `size` times.
      storedBytes = kind == 1 ? 1 : size
    }
  }

  static func fault(_ message: String, at offset: Int? = nil) -> DiffFileError {
    DiffFileError(.badZstd, message, offset: offset)
  }
}
