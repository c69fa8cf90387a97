import BuckiaBytes
import CBuckiaZstd

@testable import BuckiaFormat

/// One fault of a file. Sizes and digests are computed after the first two, and before all others.
enum Corruption: Sendable {
  /// Another text in `manifest.json` or `schema.json`.
  case replace(String, by: String, in: String)
  /// A member has other bytes, which the manifest describes.
  case content(of: String, [UInt8])

  /// A member has other bytes than the manifest describes.
  case flip(byte: Int, of: String)
  /// A header contains a text at an offset where it does not belong.
  case header(of: String, at: Int, is: String)
  /// A header has another size.
  case claimedSize(of: String, Int64)
  /// The padding after a member is not zero.
  case padding(of: String)
  /// A member is in the place of another.
  case swap(String, String)
  case omit(String)
  case double(String)
  case rename(String, to: String)
  case add(String, [UInt8])
  /// `manifest.sig` contains a signature by the samples' key, over the manifest or another text.
  case signature(over: String? = nil)

  /// The archive ends with this number of zeros.
  case end(zeros: Int)
  /// The last byte of the archive is not zero.
  case endsInOne
  /// The archive consists of zeros.
  case allZeros(Int)

  case uncompressed
  case noChecksum
  case window(log: Int32)

  /// Bits of a byte of the file are flipped; negative indices count from the end.
  case flipBits(UInt8, at: Int)
  case before([UInt8])
  case after([UInt8])
  /// The whole file a second time.
  case twice
  /// Only the first bytes are left; a negative number is removed from the end.
  case length(Int)
  /// The file is something else.
  case text(String)
}

extension Corruption {
  func change(contents members: inout [ArchiveMember]) {
    switch self {
    case .content(let name, let bytes):
      members = members.map { $0.name == name ? ArchiveMember(name, bytes) : $0 }
    case .replace(let find, let put, let name):
      members = members.map { member in
        guard member.name == name else { return member }
        return ArchiveMember(
          name, Array(String(decoding: member.bytes, as: UTF8.self).replacing(find, with: put).utf8))
      }
    default: break
    }
  }

  func change(manifest: inout String) {
    if case .replace(let find, let put, "manifest.json") = self { manifest = manifest.replacing(find, with: put) }
  }

  func change(members: inout [ArchiveMember]) throws {
    func index(_ name: String) throws -> Int {
      guard let index = members.firstIndex(where: { $0.name == name }) else { throw NoSuchMember(name: name) }
      return index
    }
    switch self {
    case .flip(let byte, let name):
      let member = try index(name)
      members[member].bytes[byte < 0 ? members[member].bytes.count + byte : byte] ^= 1
    case .header(let name, let offset, let text):
      try members[index(name)].header.replaceSubrange(offset..<offset + text.utf8.count, with: text.utf8)
    case .claimedSize(let name, let size): try members[index(name)].header = TarHeader.bytes(name: name, size: size)
    case .padding(let name): try members[index(name)].padding[0] = 1
    case .swap(let one, let other): try members.swapAt(index(one), index(other))
    case .omit(let name): try members.remove(at: index(name))
    case .double(let name): try members.insert(members[index(name)], at: index(name))
    case .rename(let name, let other): try members[index(name)] = ArchiveMember(other, members[index(name)].bytes)
    case .add(let name, let bytes): members.append(ArchiveMember(name, bytes))
    case .signature(let text):
      let signature = try Sample.signer().signature(of: text.map { Array($0.utf8) } ?? members[0].bytes)
      members.insert(ArchiveMember("manifest.sig", signature), at: 1)
    default: break
    }
  }

  /// Thrown if a corruption names a member that the file does not have.
  struct NoSuchMember: Error {
    let name: String
  }

  func change(archive: inout [UInt8]) {
    switch self {
    case .end(let zeros): archive = archive.dropLast(1024) + [UInt8](repeating: 0, count: zeros)
    case .endsInOne: archive[archive.count - 1] = 1
    case .allZeros(let count): archive = [UInt8](repeating: 0, count: count)
    default: break
    }
  }

  func change(packing: inout Packing) {
    switch self {
    case .uncompressed: packing.isCompressed = false
    case .noChecksum: packing.hasChecksum = false
    case .window(let log): packing.windowLog = log
    default: break
    }
  }

  func change(file: inout [UInt8]) {
    switch self {
    case .flipBits(let mask, let offset): file[offset < 0 ? file.count + offset : offset] ^= mask
    case .before(let bytes): file = bytes + file
    case .after(let bytes): file += bytes
    case .twice: file += file
    case .length(let count): file = Array(file.prefix(count < 0 ? file.count + count : count))
    case .text(let text): file = Array(text.utf8)
    default: break
    }
  }
}

/// The way in which another program compresses an archive.
struct Packing {
  var isCompressed = true
  var hasChecksum = true
  var windowLog: Int32 = 0

  struct Failure: Error {}

  func compress(_ bytes: [UInt8]) throws -> [UInt8] {
    guard isCompressed else { return bytes }
    let context = ZSTD_createCCtx()
    defer { ZSTD_freeCCtx(context) }
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, hasChecksum ? 1 : 0)
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0)
    if windowLog > 0 { ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, windowLog) }
    var output = [UInt8](repeating: 0, count: ZSTD_compressBound(bytes.count) + 64)
    var target = ZSTD_outBuffer()
    let isDone = output.withUnsafeMutableBytes { out in
      bytes.withUnsafeBytes { input in
        target = ZSTD_outBuffer(dst: out.baseAddress, size: out.count, pos: 0)
        // Two steps, so that the size is not known in advance and the window is the requested one.
        var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
        _ = ZSTD_compressStream2(context, &target, &source, ZSTD_e_continue)
        return ZSTD_compressStream2(context, &target, &source, ZSTD_e_end) == 0
      }
    }
    guard isDone else { throw Failure() }
    return Array(output[..<target.pos])
  }
}
