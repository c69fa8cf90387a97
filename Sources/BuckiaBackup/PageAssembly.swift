import BuckiaBytes
import BuckiaFormat
import BuckiaStorage
import SQLiteConnections
import SQLiteFiles

/// A file of a database's size into which the pages of several objects are written, those of the newest object first.
final class PageAssembly {
  private let path: String
  private let point: BackupPoint
  private let file: PosixFile
  /// The pages that have been written, numbered from 0.
  private let written: PageBitmap
  /// The number of pages that have not been written.
  private(set) var missingCount: Int64

  private static let windowBytes = 4 << 20

  /// Begins with no pages.
  ///
  /// - Parameter point: The point whose pages are gathered.
  /// - Throws: `ByteStreamError`.
  init(at path: String, _ point: BackupPoint) throws {
    self.path = path
    self.point = point
    file = try PosixFile(updating: path)
    try file.truncate(to: 0)
    try file.truncate(to: point.databaseByteCount)
    written = PageBitmap(upTo: Int(point.pageCount))
    missingCount = point.pageCount
  }

  /// Writes the pages of an object that no newer one has.
  ///
  /// - Parameters:
  ///   - path: A local copy of the object.
  ///   - object: Its header.
  ///   - decryption: The secrets for an encrypted one.
  /// - Throws: `StorageError` with `damaged`; `ByteStreamError`.
  func add(_ path: String, _ object: BackupObject, _ decryption: Decryption?) throws {
    let source = try PosixFile(reading: path)
    var header = [UInt8](repeating: 0, count: BackupObject.headerByteCount)
    guard try header.withUnsafeMutableBytes({ try source.read(into: $0, at: 0) }) == header.count,
      source.initialByteCount == object.byteCount
    else { throw StorageError.cutOff(object.path) }
    let input = DigestingInput(PositionedInput(source, from: header.count), ContentHasher())
    do {
      let reader = try PageInput(
        input, with: object.payload.isEncrypted ? decryption ?? Decryption(identities: []) : nil,
        pageSize: point.pageSize)
      let window = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.windowBytes, alignment: 4_096)
      defer { window.deallocate() }
      while let (first, count) = try reader.pages(into: window) {
        try Self.forEachRun(in: 0..<count) {
          let page = first + Int64($0)
          guard page < point.pageCount, written.insert(Int(page)) else { return false }
          missingCount -= 1
          return true
        } body: { run in
          let bytes = window[run.lowerBound * point.pageSize..<run.upperBound * point.pageSize]
          try file.write(
            UnsafeRawBufferPointer(rebasing: bytes), at: Int(first + Int64(run.lowerBound)) * point.pageSize)
        }
      }
    } catch let error as ByteStreamError where error.code != .noMatchingIdentity {
      throw StorageError(.damaged, "its pages cannot be read: \(error.message)", path: object.path, cause: error)
    }
    guard input.hasher.digest == object.payload.digest else {
      throw StorageError(.damaged, "its pages are not those that were stored", path: object.path)
    }
  }

  /// Calls `body` for each maximal run of numbers that are wanted.
  static func forEachRun(
    in range: Range<Int>, where isWanted: (Int) throws -> Bool, body: (Range<Int>) throws -> Void
  ) rethrows {
    var start: Int?
    for number in range.lowerBound...range.upperBound {
      if number < range.upperBound, try isWanted(number) {
        start = start ?? number
      } else if let begin = start {
        try body(begin..<number)
        start = nil
      }
    }
  }

  /// Reads the written pages in order, many at a time.
  func forEachRun(_ body: (_ pages: UnsafeRawBufferPointer, _ first: Int64) throws -> Void) throws {
    let window = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.windowBytes, alignment: 4_096)
    defer { window.deallocate() }
    let step = window.count / point.pageSize
    for first in stride(from: Int64(0), to: point.pageCount, by: step) {
      let count = Int(min(Int64(step), point.pageCount - first))
      try Self.forEachRun(in: 0..<count, where: { written.contains(Int(first) + $0) }) { run in
        let bytes = UnsafeMutableRawBufferPointer(rebasing: window[..<(run.count * point.pageSize)])
        let page = first + Int64(run.lowerBound)
        guard try file.read(into: bytes, at: Int(page) * point.pageSize) == bytes.count else {
          throw StorageError(.unreadable, "\(path) cannot be read back")
        }
        try body(UnsafeRawBufferPointer(bytes), page)
      }
    }
  }

  /// Requires that the file is the state of the point, and brings it to the disk.
  ///
  /// - Throws: `StorageError` with `damaged`.
  func finish() throws {
    var sum = PageSum()
    try forEachRun { pages, first in
      let digests = PageSum.digests(of: pages, from: first, pageSize: point.pageSize)
      for place in stride(from: 0, to: digests.count, by: PageSum.digestBytes) {
        sum.add(digests[place..<place + PageSum.digestBytes])
      }
    }
    guard missingCount == 0, sum == point.sum else {
      throw StorageError(.damaged, "the pages in the store do not lead to the state of \(point.id)")
    }
    try file.syncAndClose()
  }
}
