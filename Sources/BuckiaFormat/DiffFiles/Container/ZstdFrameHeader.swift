import BuckiaBytes

/// The header of a zstd frame, as far as the format allows one.
///
/// See [RFC 8878](https://www.rfc-editor.org/rfc/rfc8878#section-3.1.1). We read it ourselves to refuse what the library
/// would accept: dictionaries, frames without checksum, skippable frames, unused bits that are set.
struct ZstdFrameHeader {
  static let magic: [UInt8] = [0x28, 0xb5, 0x2f, 0xfd]
  /// Windows up to 8 MiB, the size every decoder is asked to support.
  static let windowLogLimit = 23

  /// How many bytes of header follow the descriptor.
  let bytesAfterDescriptor: Int
  private let isSingleSegment: Bool

  /// Reads the frame header descriptor.
  init(descriptor: UInt8) throws(ByteStreamError) {
    guard descriptor & 0b11 == 0 else { throw ByteStreamError(.badZstd, "the frame needs a dictionary") }
    guard descriptor & 0b100 != 0 else { throw ByteStreamError(.badZstd, "the frame has no checksum") }
    guard descriptor & 0b1_1000 == 0 else { throw ByteStreamError(.badZstd, "reserved bits of the frame are set") }
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

  /// Checks the window that the bytes after the descriptor ask for.
  func checkWindow(_ rest: some Collection<UInt8>) throws(ByteStreamError) {
    let window: UInt64
    if isSingleSegment {
      let size = rest.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      window = rest.count == 2 ? size + 256 : size
    } else {
      let descriptor = UInt64(rest.first ?? 0)
      let base = UInt64(1) << (10 + descriptor >> 3)
      window = base + base / 8 * (descriptor & 7)
    }
    guard window <= 1 << Self.windowLogLimit else {
      throw ByteStreamError(.badZstd, "the frame needs a window of \(window) bytes")
    }
  }
}

extension ByteStreamError.Code {
  static let truncated = Self(.truncated)
  static let notZstd = Self(.notZstd)
  static let badZstd = Self(.badZstd)
  static let trailingData = Self(.trailingData)

  /// The same code below as here.
  private init(_ code: DiffFileError.Code) { self.init(rawValue: code.rawValue) }
}
