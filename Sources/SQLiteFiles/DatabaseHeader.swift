/// The header of a database file: its first 100 bytes. See <https://sqlite.org/fileformat2.html#the_database_header>.
public struct DatabaseHeader: Equatable, Sendable {
  /// The encoding of all text in the database.
  public enum TextEncoding: UInt32, Sendable {
    /// Nothing has been stored yet.
    case undecided = 0
    /// UTF-8.
    case utf8 = 1
    /// UTF-16, little-endian.
    case utf16LittleEndian = 2
    /// UTF-16, big-endian.
    case utf16BigEndian = 3
  }

  /// The size of the header in bytes.
  public static let byteCount = 100

  /// The page size in bytes: a power of two from 512 to 65,536.
  public let pageSize: Int
  /// The number of reserved bytes at the end of each page, which extensions use.
  public let reservedBytes: Int
  /// Whether the database is in WAL mode, by its read version.
  public let usesWAL: Bool
  /// The number of pages; nil when the header's number is out of date and the size of the file counts.
  public let pageCount: Int?
  /// The page number of the first freelist trunk page; 0 when the freelist is empty.
  public let firstFreelistTrunkPage: Int
  /// The number of freelist pages.
  public let freelistPageCount: Int
  /// The schema cookie, which changes with every change of the schema.
  public let schemaCookie: UInt32
  /// The page number of the largest root page in an auto-vacuum or incremental-vacuum database; else 0.
  public let largestRootPage: Int
  /// The encoding of all text in the database.
  public let encoding: TextEncoding
  /// The user version, set by `PRAGMA user_version`.
  public let userVersion: UInt32
  /// The application id, set by `PRAGMA application_id`.
  public let applicationID: UInt32

  /// The usable size of a page in bytes: the page size less the reserved bytes.
  public var usableSize: Int { pageSize - reservedBytes }

  /// Whether a page is a pointer map page, which only auto-vacuum databases have. See
  /// <https://sqlite.org/fileformat2.html#pointer_map_or_ptrmap_pages>.
  func isPointerMap(_ page: Int) -> Bool {
    guard largestRootPage > 0, page >= 2 else { return false }
    let stride = usableSize / 5 + 1
    let place = (page - 2) / stride * stride + 2
    return page == (place == lockBytePage ? place + 1 : place)
  }

  /// The number of the lock-byte page, the one that contains the byte at 1 GiB. See
  /// <https://sqlite.org/fileformat2.html#the_lock_byte_page>.
  var lockBytePage: Int { (1 << 30) / pageSize + 1 }

  /// Reads a header.
  ///
  /// - Parameter bytes: The first bytes of the file, at least ``byteCount`` of them.
  /// - Throws: `DatabaseFileError` with `notADatabase` or `badHeader`.
  public init(_ bytes: UnsafeRawBufferPointer) throws(DatabaseFileError) {
    guard bytes.count >= Self.byteCount, bytes.prefix(16).elementsEqual("SQLite format 3\0".utf8) else {
      throw DatabaseFileError(.notADatabase, "the file is not an SQLite database, or is encrypted")
    }
    let size = bytes.number16(at: 16)
    pageSize = size == 1 ? 65_536 : size
    guard pageSize >= 512, pageSize & (pageSize - 1) == 0 else { throw Self.invalid("page size", size) }
    reservedBytes = Int(bytes[20])
    guard pageSize - reservedBytes >= 480 else { throw Self.invalid("number of reserved bytes", reservedBytes) }
    guard bytes[21] == 64, bytes[22] == 32, bytes[23] == 32 else {
      throw DatabaseFileError(.badHeader, "the payload fractions in the database header are invalid")
    }
    guard (1...2).contains(bytes[18]), (1...2).contains(bytes[19]) else {
      throw DatabaseFileError(.badHeader, "the database needs a newer version of SQLite")
    }
    usesWAL = bytes[19] == 2
    let count = bytes.number32(at: 28)
    // Versions of SQLite before 3.7.0 do not write the count. They increment the change counter at 24, but not its copy
    // at 92 (https://sqlite.org/fileformat2.html#in_header_database_size).
    pageCount = count > 0 && bytes.number32(at: 24) == bytes.number32(at: 92) ? Int(count) : nil
    firstFreelistTrunkPage = Int(bytes.number32(at: 32))
    freelistPageCount = Int(bytes.number32(at: 36))
    schemaCookie = bytes.number32(at: 40)
    largestRootPage = Int(bytes.number32(at: 52))
    guard let encoding = TextEncoding(rawValue: bytes.number32(at: 56)) else {
      throw Self.invalid("text encoding", Int(bytes.number32(at: 56)))
    }
    self.encoding = encoding
    userVersion = bytes.number32(at: 60)
    applicationID = bytes.number32(at: 68)
  }

  private static func invalid(_ field: String, _ value: Int) -> DatabaseFileError {
    DatabaseFileError(.badHeader, "the \(field) in the database header is \(value), which is invalid")
  }
}
