import Buckia
import BuckiaBytes
import BuckiaFormat
import BuckiaStorage
import SQLiteFiles

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The files of this device about a store, in the person's home.
struct StoreFiles: Sendable {
  /// What the paths begin with.
  private let path: String

  init(of store: BackupStore, in home: BuckiaHome) throws {
    path = try "\(home.backupFolder())/\(Self.digest("\(store.storage.name)\n\(store.folder?.text ?? "")"))"
  }

  private init(path: String) { self.path = path }

  /// The files about all stores that have a record of a database.
  static func all(of database: DatabaseManager) throws -> [StoreFiles] {
    guard FileSystem.exists("\(database.home.path)/backups") else { return [] }
    let folder = try database.home.backupFolder()
    let suffix = Self.suffix(of: database)
    return try FileSystem.names(in: folder).filter { $0.hasSuffix(suffix) }.sorted()
      .map { StoreFiles(path: "\(folder)/\($0.dropLast(suffix.count))") }
  }

  private static func digest(_ text: String) -> Substring { "\(ContentDigest(of: Array(text.utf8)))".prefix(32) }

  /// The record of the last point of a database.
  func record(of database: DatabaseManager) -> String { path + Self.suffix(of: database) }

  private static func suffix(of database: DatabaseManager) -> String {
    let database = PosixFile.target(ofLink: database.path)
    let folder = FileSystem.folder(of: database)
    return "-\(digest("\(FileSystem.resolved(folder) ?? folder)/\(FileSystem.name(of: database))"))"
  }

  /// The records of the last points of all databases.
  func records() throws -> [PageRecord] {
    let name = FileSystem.name(of: path)
    return try FileSystem.names(in: FileSystem.folder(of: path)).filter {
      $0.hasPrefix("\(name)-") && !$0.contains(".")
    }
    .sorted()
    .compactMap { PageRecord(at: "\(FileSystem.folder(of: path))/\($0)") }
  }

  /// The record of a point whose object may not be in the store yet.
  static func unconfirmed(_ record: String) -> String { "\(record).next" }

  /// Makes the unconfirmed record the one that counts.
  static func confirm(_ record: String) throws(ByteStreamError) {
    guard rename(unconfirmed(record), record) == 0 else {
      throw ByteStreamError("it cannot be written", errno: errno, path: record, otherwise: .unwritable)
    }
  }

  /// A path beside which points are restored for a check.
  var drill: String { "\(path).drill" }

  /// Notes what came of restoring a point for a check.
  func note(_ result: DrillResult) throws {
    let file = try PosixFile(appendingTo: "\(path).drills")
    let fault = result.fault?.replacing("\n", with: " ")
    try file.write(Array("\(result.point.id) \(result.point.history) \(result.time) \(fault ?? "ok")\n".utf8))
  }

  /// The check of a restored point.
  struct Drill {
    let id: KSUID
    let history: String
    let time: Int64
    let fault: String?
  }

  /// The checks of restored points, the oldest first.
  ///
  /// - Parameter history: The history of the points; nil for all.
  func drills(of history: String? = nil) throws -> [Drill] {
    guard try FileIdentity.current(at: "\(path).drills") != nil else { return [] }
    let bytes = try PosixFile(reading: "\(path).drills").contents(limit: 16 << 20) ?? []
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n").compactMap { line in
      let parts = line.split(separator: " ", maxSplits: 3)
      guard parts.count == 4, let id = KSUID(String(parts[0])), let time = Int64(parts[2]),
        history == nil || parts[1] == history ?? ""
      else { return nil }
      return Drill(
        id: id, history: String(parts[1]), time: time, fault: parts[3] == "ok" ? nil : String(parts[3]))
    }
  }
}

/// What a device knows of the last point of a database in a store: the hashes of its pages, by which the next backup
/// finds the changed ones, and the objects that have them.
///
/// A file of 48 bytes for each page, a JSON document, and the size of the document in 4 bytes, big-endian. The 48 bytes
/// are a keyed hash, which is computed faster than a digest, and the page's digest in the sum of the point.
struct PageRecord {
  /// The document.
  struct Document: Codable {
    var format = 1
    /// The address of the store.
    let store: String
    /// The statements about the point.
    let statements: String
    /// The identity of the files of the database before the state was read. Unchanged files mean an unchanged database.
    var databaseFiles: String
    /// The objects with the pages of the point: first one with all pages, last that of the point.
    let objects: [Entry]
    /// The keys that the objects are encrypted for, and that they are signed with.
    let keys: [String]
    /// The device that has made the point; nil if it was not named.
    let device: String?
    /// The secret of the keyed hashes.
    let hashKey: [UInt8]
    /// True if no damage was found in the pages.
    var isChecked: Bool
  }

  /// An object of the store.
  struct Entry: Codable, Hashable {
    let id: String
    let byteCount: Int64
  }

  let document: Document
  let point: BackupPoint
  private let file: PosixFile

  /// Reads the record.
  ///
  /// - Returns: nil if there is none, or it is damaged. The next backup has all pages then.
  init?(at path: String) {
    do {
      guard try FileIdentity.current(at: path) != nil else { return nil }
      file = try PosixFile(reading: path)
      let end = Int(file.initialByteCount)
      guard end > 4 else { return nil }
      let count = try Self.read(4, at: end - 4, of: file).reduce(0) { $0 << 8 | Int($1) }
      guard count <= 1 << 20, end - 4 - count >= 0 else { return nil }
      document = try JSONDecoder().decode(Document.self, from: Data(Self.read(count, at: end - 4 - count, of: file)))
      point = try BackupPoint(statements: document.statements)
      guard document.format == 1, document.hashKey.count == PageHasher.keyBytes,
        Int64(end - 4 - count) == Int64(Entries.pageBytes) * point.pageCount
      else { return nil }
    } catch { return nil }
  }

  private static func read(_ count: Int, at offset: Int, of file: PosixFile) throws -> [UInt8] {
    try [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      initialized = try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
    }
  }

  /// The keys that the objects are encrypted for.
  func recipients() throws -> [AgeRecipient] { try document.keys.dropLast().map { try AgeRecipient(parsing: $0) } }

  /// The hashes and digests of consecutive pages; fewer at the end.
  func entries(from first: Int64, _ count: Int) throws -> [UInt8] {
    let count = min(Int64(count), point.pageCount - first)
    return count > 0
      ? try Self.read(Entries.pageBytes * Int(count), at: Entries.pageBytes * Int(first), of: file) : []
  }

  /// True if the digests are those of the point.
  func isWhole() throws -> Bool {
    var sum = PageSum()
    for first in stride(from: Int64(0), to: point.pageCount, by: 4_096) {
      let entries = Entries(try entries(from: first, 4_096))
      for page in 0..<entries.knownCount { entries.digest(of: page).map { sum.add($0) } }
    }
    return sum == point.sum
  }

  /// What the record has of consecutive pages.
  struct Entries {
    /// A hash and a digest for each page.
    private(set) var bytes: [UInt8]
    /// The number of pages of which the record has had something.
    let knownCount: Int

    static let pageBytes = hashBytes + PageSum.digestBytes
    private static let hashBytes = 16

    /// - Parameters:
    ///   - known: What the last record has; nil for none.
    ///   - count: The number of pages; nil for those.
    init(_ known: [UInt8]?, _ count: Int? = nil) {
      bytes = known ?? []
      knownCount = bytes.count / Self.pageBytes
      if let count { bytes += repeatElement(0, count: count * Self.pageBytes - bytes.count) }
    }

    /// Replaces the hash of a page.
    ///
    /// - Returns: True if it is another one than before, or new.
    mutating func setHash(_ hash: PageHash, of page: Int) -> Bool {
      bytes.withUnsafeMutableBytes { bytes in
        let place = page * Self.pageBytes
        let (high, low) = (hash.high.littleEndian, hash.low.littleEndian)
        guard
          page >= knownCount || bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self) != high
            || bytes.loadUnaligned(fromByteOffset: place + 8, as: UInt64.self) != low
        else { return false }
        bytes.storeBytes(of: high, toByteOffset: place, as: UInt64.self)
        bytes.storeBytes(of: low, toByteOffset: place + 8, as: UInt64.self)
        return true
      }
    }

    private func place(of page: Int) -> Range<Int> {
      page * Self.pageBytes + Self.hashBytes..<(page + 1) * Self.pageBytes
    }

    /// The last digest of a page; nil for none.
    func digest(of page: Int) -> ArraySlice<UInt8>? { page < knownCount ? bytes[place(of: page)] : nil }

    mutating func setDigest(_ digest: ArraySlice<UInt8>, of page: Int) {
      bytes.replaceSubrange(place(of: page), with: digest)
    }
  }

  /// Ends a record whose entries have been written.
  static func finish(_ output: AtomicFileOutput, _ document: Document) throws {
    let bytes = Array(try JSONEncoder().encode(document))
    try output.write(bytes + withUnsafeBytes(of: UInt32(bytes.count).bigEndian) { Array($0) })
  }
}
