/// The first 100 bytes of a database file. See <https://sqlite.org/fileformat2.html#the_database_header>.
public struct DatabaseHeader: Equatable, Sendable {
  /// How text is stored.
  public enum TextEncoding: UInt32, Sendable {
    /// Nothing is stored yet.
    case undecided = 0
    case utf8 = 1
    case utf16LittleEndian = 2
    case utf16BigEndian = 3
  }

  /// How many bytes the header has.
  public static let byteCount = 100

  /// The size of a page in bytes: a power of two from 512 to 65,536.
  public let pageSize: Int
  /// How many bytes at the end of each page SQLite leaves to extensions.
  public let reservedBytes: Int
  /// Whether the database is, or was last, in WAL mode.
  public let usesLog: Bool
  /// How many pages there are, where the header can be believed; nil where the size of the file tells.
  public let pageCount: Int?
  /// The first trunk page of the list of free pages; 0 for none.
  public let firstFreelistTrunkPage: Int
  /// How many pages are free.
  public let freelistPageCount: Int
  /// Changes whenever the schema does.
  public let schemaCookie: UInt32
  /// The largest root page; not 0 where the database is auto-vacuumed, which means that it has pointer map pages.
  public let largestRootPage: Int
  /// How text is stored.
  public let encoding: TextEncoding
  /// The user version, which belongs to the application.
  public let userVersion: UInt32
  /// The application's id.
  public let applicationID: UInt32

  /// How many bytes of a page are used.
  public var usableSize: Int { pageSize - reservedBytes }

  /// Whether a page is one of those in which auto-vacuum notes what leads to the pages behind it. See
  /// <https://sqlite.org/fileformat2.html#pointer_map_or_ptrmap_pages>.
  public func isPointerMap(_ page: Int) -> Bool {
    guard largestRootPage > 0, page >= 2 else { return false }
    let stride = usableSize / 5 + 1
    let place = (page - 2) / stride * stride + 2
    return page == (place == lockBytePage ? place + 1 : place)
  }

  /// The page behind the first gibibyte, which is locked and never written. See
  /// <https://sqlite.org/fileformat2.html#the_lock_byte_page>.
  var lockBytePage: Int { (1 << 30) / pageSize + 1 }

  /// Reads a header.
  ///
  /// - Parameter bytes: The first bytes of the file, at least 100 of them.
  /// - Throws: `DatabaseFileError` with `notADatabase` or `badHeader`.
  public init(_ bytes: UnsafeRawBufferPointer) throws(DatabaseFileError) {
    guard bytes.count >= Self.byteCount, bytes.prefix(16).elementsEqual("SQLite format 3\0".utf8) else {
      throw DatabaseFileError(.notADatabase, "it is not an SQLite database, or is encrypted")
    }
    let size = bytes.number16(at: 16)
    pageSize = size == 1 ? 65_536 : size
    guard pageSize >= 512, pageSize & (pageSize - 1) == 0 else { throw Self.fault("the page size is \(size)") }
    reservedBytes = Int(bytes[20])
    guard pageSize - reservedBytes >= 480 else { throw Self.fault("\(reservedBytes) bytes are reserved on each page") }
    guard bytes[21] == 64, bytes[22] == 32, bytes[23] == 32 else { throw Self.fault("the payload fractions are wrong") }
    guard (1...2).contains(bytes[18]), (1...2).contains(bytes[19]) else {
      throw Self.fault("it needs a newer version of SQLite")
    }
    usesLog = bytes[19] == 2
    let count = bytes.number32(at: 28)
    // Old versions of SQLite do not write the count; then the change counter has moved on alone.
    pageCount = count > 0 && bytes.number32(at: 24) == bytes.number32(at: 92) ? Int(count) : nil
    firstFreelistTrunkPage = Int(bytes.number32(at: 32))
    freelistPageCount = Int(bytes.number32(at: 36))
    schemaCookie = bytes.number32(at: 40)
    largestRootPage = Int(bytes.number32(at: 52))
    guard let encoding = TextEncoding(rawValue: bytes.number32(at: 56)) else {
      throw Self.fault("the text encoding is \(bytes.number32(at: 56))")
    }
    self.encoding = encoding
    userVersion = bytes.number32(at: 60)
    applicationID = bytes.number32(at: 68)
  }

  private static func fault(_ message: String) -> DatabaseFileError { DatabaseFileError(.badHeader, message) }
}

extension UnsafeRawBufferPointer {
  /// Two bytes as a big-endian number; the caller has checked that they are there.
  @inline(__always)
  func number16(at offset: Int) -> Int { Int(self[offset]) << 8 | Int(self[offset + 1]) }

  /// Four bytes as a big-endian number; the caller has checked that they are there.
  @inline(__always)
  func number32(at offset: Int) -> UInt32 {
    UInt32(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }
}
