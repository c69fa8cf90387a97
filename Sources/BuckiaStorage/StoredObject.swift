import BuckiaBytes

/// An object in a storage, with the facts that the storage returns.
public struct StoredObject: Sendable, Hashable {
  /// Its name.
  public let path: RemotePath
  /// Its size in bytes.
  public var byteCount: Int64
  /// Identifies its present contents, and changes with them. Nil if the storage has no versions.
  public var version: ObjectVersion?
  /// The time of its last write, in milliseconds since 1970; nil if unknown.
  public var modifiedAt: Int64?
  /// The digests that the storage itself has computed of the contents.
  public var checksums: [ContentChecksum]

  /// Describes an object.
  public init(
    path: RemotePath, byteCount: Int64, version: ObjectVersion? = nil, modifiedAt: Int64? = nil,
    checksums: [ContentChecksum] = []
  ) {
    self.path = path
    self.byteCount = byteCount
    self.version = version
    self.modifiedAt = modifiedAt
    self.checksums = checksums
  }
}

/// A storage's identifier for the present contents of an object: an entity tag, for HTTP (RFC 9110, section 8.8.3).
public struct ObjectVersion: Hashable, Sendable, CustomStringConvertible {
  /// The storage's own text, with its quotation marks.
  public let text: String

  /// Creates a version from a storage's text.
  public init(_ text: String) { self.text = text }

  /// True if equal versions guarantee equal bytes. A weak entity tag (`W/"…"`) does not.
  public var isStrong: Bool { !text.hasPrefix("W/") }

  /// The text.
  public var description: String { text }
}

/// A digest of an object's contents.
public struct ContentChecksum: Hashable, Sendable, CustomStringConvertible {
  /// How it is computed.
  public enum Algorithm: String, Sendable, CaseIterable {
    /// MD5, which detects only accidental changes.
    case md5
    /// SHA-1: the same.
    case sha1
    /// SHA-256.
    case sha256
  }

  /// How it was computed.
  public let algorithm: Algorithm
  /// The digest in lower-case hexadecimal.
  public let hex: String

  /// Creates a digest.
  ///
  /// - Parameters:
  ///   - algorithm: How it was computed.
  ///   - hex: The digest in hexadecimal, in letters of either case.
  public init(_ algorithm: Algorithm, hex: String) {
    self.algorithm = algorithm
    self.hex = hex.lowercased()
  }

  /// The algorithm and the digest.
  public var description: String { "\(algorithm.rawValue):\(hex)" }
}

/// The name of an object in a storage: segments that slashes separate, as in `7f3a/inbound/3MOszSZz3uTLnb7JQCqVqYrLuuY.bdiff`.
///
/// A path never begins or ends with a slash, and has no empty segment, no `.` or `..`, and no control character: it
/// means the same to every storage and cannot leave the folder. It is at most 1,024 bytes long in UTF-8, the limit of
/// S3. Paths are compared as bytes, which is the order in which S3 lists.
public struct RemotePath: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The path as text.
  public let text: String

  /// The maximum size of a path in bytes of UTF-8:
  /// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html>.
  public static let byteLimit = 1024

  /// Creates a path from its text.
  ///
  /// - Parameter text: The segments, with a slash between each two.
  /// - Throws: `StorageError` with `invalidName` when it is no path as described above.
  public init(_ text: String) throws(StorageError) {
    if let fault = Self.fault(in: text) {
      throw StorageError(.invalidName, "\"\(Self.printable(text))\" is no name for an object: \(fault)")
    }
    self.text = text
  }

  /// A path whose parts have been checked.
  private init(checked text: String) { self.text = text }

  /// The path of something in this folder.
  ///
  /// - Throws: `StorageError` with `invalidName`.
  public func appending(_ name: String) throws(StorageError) -> RemotePath { try RemotePath("\(text)/\(name)") }

  /// The last segment.
  public var name: String {
    // Compared as bytes: a slash before a combining mark is still a slash.
    text.utf8.split(separator: Self.slash).last.map { String(Substring($0)) } ?? text
  }

  /// The path of the folder; nil for a path of one segment.
  public var folder: RemotePath? {
    guard let end = text.utf8.lastIndex(of: Self.slash) else { return nil }
    return RemotePath(checked: String(text[..<end]))
  }

  /// The segments.
  public var segments: [String] { text.utf8.split(separator: Self.slash).map { String(Substring($0)) } }

  /// True if this lies in a folder, or in one of its folders.
  public func isIn(_ folder: RemotePath) -> Bool {
    let prefix = folder.text.utf8
    return text.utf8.count > prefix.count + 1 && text.utf8.starts(with: prefix)
      && text.utf8[text.utf8.index(text.utf8.startIndex, offsetBy: prefix.count)] == Self.slash
  }

  /// The path from a folder on; nil if this does not lie in it.
  public func relative(to folder: RemotePath) -> String? {
    guard isIn(folder) else { return nil }
    return String(Substring(text.utf8.dropFirst(folder.text.utf8.count + 1)))
  }

  /// The path.
  public var description: String { text }

  /// Compares the bytes of two paths.
  public static func < (one: RemotePath, other: RemotePath) -> Bool {
    one.text.utf8.lexicographicallyPrecedes(other.text.utf8)
  }

  // Swift compares text by canonical equivalence; storages compare bytes.
  /// True if two paths have the same bytes. Swift would compare by canonical equivalence, and storages do not.
  public static func == (one: RemotePath, other: RemotePath) -> Bool { one.text.utf8.elementsEqual(other.text.utf8) }

  /// Digests the bytes.
  public func hash(into hasher: inout Hasher) {
    for byte in text.utf8 { hasher.combine(byte) }
  }

  private static let slash = UInt8(ascii: "/")

  /// Why text is no path; nil if it is one.
  private static func fault(in text: String) -> String? {
    if text.isEmpty { return "it is empty" }
    if text.utf8.count > byteLimit { return "it is longer than \(byteLimit) bytes" }
    if text.unicodeScalars.contains(where: { isControl($0) }) { return "it has a control character" }
    for segment in text.utf8.split(separator: slash, omittingEmptySubsequences: false) {
      if segment.isEmpty { return "it has an empty part between slashes" }
      if segment.elementsEqual(".".utf8) || segment.elementsEqual("..".utf8) { return "it leads to another folder" }
    }
    return nil
  }

  private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
  }

  /// A foreign text without characters that control a terminal.
  private static func printable(_ text: String) -> String {
    var shown = ""
    for scalar in text.unicodeScalars.prefix(200) {
      let isHarmless = !isControl(scalar) && !scalar.properties.isBidiControl
      shown.unicodeScalars.append(isHarmless ? scalar : "\u{FFFD}")
    }
    return shown
  }
}

/// The condition for writing an object.
public enum PutCondition: Sendable, Equatable {
  /// Nothing: whatever has the name is replaced.
  case none
  /// No object has the name.
  case ifAbsent
  /// The object is this one.
  case ifVersion(ObjectVersion)
}

extension RemotePath: Codable {
  /// Reads a path from its text.
  public init(from decoder: any Decoder) throws { try self.init(decoder.singleValueContainer().decode(String.self)) }

  /// Writes its text.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}
