/// An object in a storage, as far as the storage tells.
public struct StoredObject: Sendable, Hashable {
  /// Its name.
  public let path: RemotePath
  /// Its size in bytes.
  public var byteCount: Int64
  /// Names its present contents: changes with them. Nil where the storage has nothing of the kind.
  public var version: ObjectVersion?
  /// When it was written, in milliseconds since 1970; nil where the storage does not say.
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

/// What a storage calls the present contents of an object: an entity tag, for HTTP (RFC 9110, section 8.8.3).
public struct ObjectVersion: Hashable, Sendable, CustomStringConvertible {
  /// The storage's own text, with its quotation marks.
  public let text: String

  /// Takes what a storage has said.
  public init(_ text: String) { self.text = text }

  /// Whether equal versions stand for equal bytes. A weak entity tag (`W/"…"`) does not promise that.
  public var isStrong: Bool { !text.hasPrefix("W/") }

  /// The text.
  public var description: String { text }
}

/// A digest of an object's contents.
public struct ContentChecksum: Hashable, Sendable, CustomStringConvertible {
  /// How it is computed.
  public enum Algorithm: String, Sendable, CaseIterable {
    /// MD5: says whether bytes were altered by accident, and no more.
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

  /// Takes a digest.
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
