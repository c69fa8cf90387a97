/// The kind of a file by its first bytes, for messages about unexpected files, and for finding diff files under other
/// names.
package enum FileKind: Sendable, Equatable {
  case diffFile
  case changeset
  case encrypted
  case sqlite
  case zstd
  /// Another known format, with its name.
  case other(String)
  case text
  case empty
  case unknown

  /// Examines a file. A file that cannot be read is `unknown`; reading it whole reports the reason.
  package init(of path: String) {
    let bytes = Self.beginning(of: path)
    self.init(beginning: bytes)
    if self == .zstd, DiffFile.begins(at: path) { self = .diffFile }
    if self == .unknown, bytes.isEmpty, FileSystem.exists(path), FileSystem.byteCount(of: path) == 0 { self = .empty }
  }

  /// Examines the first bytes of a file: 600 distinguish all formats. They show a diff file as `zstd`.
  init(beginning bytes: [UInt8]) {
    if let (_, kind) = Self.signatures.first(where: { bytes.starts(with: $0.0) }) {
      self = kind
    } else if bytes.count >= 262, bytes[257..<262].elementsEqual("ustar".utf8) {
      self = .other("a tar archive")
    } else if Self.isChangeset(bytes) {
      self = .changeset
    } else {
      self = Self.isText(bytes) ? .text : .unknown
    }
  }

  private static func beginning(of path: String) -> [UInt8] {
    do {
      let file = try PosixFile(reading: path)
      return try [UInt8](unsafeUninitializedCapacity: 4_096) { buffer, count in
        count = try file.readFully(into: UnsafeMutableRawBufferPointer(buffer))
      }
    } catch {
      return []
    }
  }

  /// True if a file is a diff file or a changeset, whatever its name. For encrypted files the name decides.
  static func isDiff(_ path: String) -> Bool {
    switch FileKind(of: path) {
    case .diffFile, .changeset: true
    case .encrypted: path.hasSuffix(DiffFileName.encryptedSuffix)
    default: false
    }
  }

  private static let signatures: [([UInt8], FileKind)] = [
    (Array("SQLite format 3\0".utf8), .sqlite),
    ([0x28, 0xb5, 0x2f, 0xfd], .zstd),
    (Array("age-encryption.org/".utf8), .encrypted),
    (Array("-----BEGIN AGE ENCRYPTED FILE".utf8), .encrypted),
    ([0x1f, 0x8b], .other("a gzip file")),
    (Array("PK\u{3}\u{4}".utf8), .other("a zip archive")),
    (Array("PK\u{5}\u{6}".utf8), .other("an empty zip archive")),
    (Array("BZh".utf8), .other("a bzip2 file")),
    ([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00], .other("an xz file")),
    ([0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c], .other("a 7-zip archive")),
    ([0x04, 0x22, 0x4d, 0x18], .other("an LZ4 file")),
    (Array("%PDF-".utf8), .other("a PDF document")),
    ([0x89, 0x50, 0x4e, 0x47], .other("a PNG image")),
    ([0xff, 0xd8, 0xff], .other("a JPEG image")),
    (Array("GIF8".utf8), .other("a GIF image")),
    ([0x7f, 0x45, 0x4c, 0x46], .other("a program")),
    ([0xd9, 0xd5, 0x05, 0xf9], .other("a rollback journal of an SQLite database")),
    ([0x37, 0x7f, 0x06, 0x82], .other("a write-ahead log of an SQLite database")),
    ([0x37, 0x7f, 0x06, 0x83], .other("a write-ahead log of an SQLite database")),
  ]

  private static func isText(_ bytes: [UInt8]) -> Bool {
    guard !bytes.isEmpty, !bytes.contains(where: { $0 < 0x20 && ![0x09, 0x0a, 0x0d].contains($0) || $0 == 0x7f }) else {
      return false
    }
    // The last character may be cut off.
    return (0..<min(4, bytes.count)).contains { isUTF8(bytes.dropLast($0)) }
  }

  private static func isUTF8(_ bytes: ArraySlice<UInt8>) -> Bool {
    String(decoding: bytes, as: UTF8.self).utf8.elementsEqual(bytes)
  }

  /// The kind, for people; nil if unknown.
  package var name: String? {
    switch self {
    case .diffFile: "a diff file"
    case .changeset: "a changeset"
    case .encrypted: "a file that is encrypted with age"
    case .sqlite: "an SQLite database"
    case .zstd: "a zstd-compressed file"
    case .other(let name): name
    case .text: "a text file"
    case .empty: "an empty file"
    case .unknown: nil
    }
  }

  /// A summary of a file: its kind, its size and its digest.
  ///
  /// - Throws: `BuckiaError` when the file cannot be read.
  package static func summary(of path: String) throws -> String {
    try BuckiaError.wrapping {
      let file = try PosixFile(reading: path)
      var hasher = ContentHasher()
      var count: Int64 = 0
      let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 1)
      defer { piece.deallocate() }
      while true {
        let read = try file.read(into: piece)
        guard read > 0 else { break }
        hasher.update(UnsafeRawBufferPointer(rebasing: piece[..<read]))
        count += Int64(read)
      }
      return "\(FileKind(of: path).name ?? "a file"), \(count) bytes, sha256 \(hasher.digest)"
    }
  }

  /// A sentence that names the kind of an unexpected file; nil if it is unknown, or the file is of the expected kind
  /// but damaged.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - expected: The expected kind, with its article.
  package static func refusal(of path: String?, where expected: String) -> String? {
    guard let path, let name = FileKind(of: path).name, name != expected else { return nil }
    return "\(path): this is \(name), where \(expected) was expected"
  }
}

extension FileKind {
  /// True for the beginning of a changeset or a patchset, but not of text and other files that begin with the same
  /// letter.
  private static func isChangeset(_ bytes: [UInt8]) -> Bool {
    guard let first = bytes.first, first == UInt8(ascii: "T") || first == UInt8(ascii: "P") else { return false }
    guard let (columns, start) = columnCount(bytes) else { return false }
    let flags = bytes[start...].prefix(columns)
    guard flags.count == columns else { return flags.allSatisfy { Int($0) <= columns } && bytes.count > 512 }
    // The places of the key's columns in the key, or a one for each.
    let key = flags.filter { $0 != 0 }.sorted()
    guard key.allSatisfy({ $0 == 1 }) || key.elementsEqual(1...UInt8(clamping: max(1, key.count))) else { return false }
    let name = bytes[(start + columns)...]
    guard let end = name.firstIndex(of: 0) else { return false }
    return end > name.startIndex && isUTF8(name[..<end])
  }

  /// The number of columns, a varint, and the offset of its end.
  private static func columnCount(_ bytes: [UInt8]) -> (Int, end: Int)? {
    var count = 0
    for (index, byte) in bytes.dropFirst().prefix(3).enumerated() {
      count = count << 7 | Int(byte & 0x7f)
      if byte < 0x80 { return (1...32_767).contains(count) ? (count, index + 2) : nil }
    }
    return nil
  }
}

extension DiffFileError {
  /// The error with the kind of the file, unless it is a damaged diff file or changeset.
  func namingKind(of path: String) -> DiffFileError {
    guard !isTransient, code != .notRegularFile else { return self }
    let kind = FileKind(of: path)
    switch kind {
    case .diffFile, .changeset, .encrypted, .unknown, .empty: return self
    // A damaged diff file is one, too.
    case .zstd where code != .badTarHeader: return self
    default: break
    }
    guard let name = kind.name else { return self }
    return DiffFileError(
      .otherKind, "this is \(name), where a diff file or a changeset was expected", path: path)
  }
}
