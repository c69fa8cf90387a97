import Buckia
import BuckiaBytes
import BuckiaStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A replica that [Litestream](https://litestream.io) 0.5 has made of a database, in a folder or a storage.
///
/// ```swift
/// let point = try await LitestreamReplica(folder: "/media/replica").restore(to: "restored.sqlite")
/// print(point.transaction, point.time)
/// ```
public struct LitestreamReplica: Sendable {
  private let storage: any StorageProvider
  private let folder: RemotePath?

  /// A replica in a storage.
  ///
  /// - Parameter folder: The `path` in Litestream's settings; nil for the storage itself.
  public init(_ storage: any StorageProvider, folder: RemotePath? = nil) {
    self.storage = storage
    self.folder = folder
  }

  /// A replica in a local folder, in which Litestream's folder `ltx` is.
  public init(folder path: String) {
    self.init(LocalFolder(URL(filePath: path).standardizedFileURL.path(percentEncoded: false)))
  }

  /// Which state is meant.
  public enum Selection: Hashable, Sendable {
    /// The newest.
    case newest
    /// The newest before a time, in milliseconds since 1970.
    case time(Int64)
    /// The one after a transaction.
    case transaction(UInt64)
  }

  /// A state.
  public struct Point: Hashable, Sendable {
    /// The number of its last transaction.
    public let transaction: UInt64
    /// The time of that, in milliseconds since 1970.
    public let time: Int64
    /// The size of the database in bytes.
    public let byteCount: Int64
  }

  /// Restores a state to a file, with the same bytes as `litestream restore` does.
  ///
  /// The file appears complete or not at all. Only its owner can read it.
  ///
  /// - Parameters:
  ///   - path: The file. One of that name is never replaced.
  ///   - selection: The state.
  /// - Returns: The state.
  /// - Throws: `StorageError`: `notFound` if there is no such state, `alreadyExists` if there is a file of that name,
  ///   `damaged` if a file of the replica is damaged or missing.
  @discardableResult
  public func restore(to path: String, at selection: Selection = .newest) async throws -> Point {
    guard try await !runBlocking({ try FileIdentity.current(at: path) != nil }) else { throw StorageError.taken(path) }
    let chain = try await chain(to: selection)
    let files = try await runBlocking { try WorkingFiles(besides: path) }
    var last: LTXFile?
    for part in chain {
      try await storage.download(part.object.path, to: files.object, expecting: part.object, isPrivate: true)
      last = try await CancellationFlag.onThreadOfItsOwn { _ in
        try Self.add(files.object, part.object.path, to: files.assembly)
      }
    }
    guard let last, let end = chain.last else { throw Self.missing }
    try await runBlocking {
      let output = try PosixFile(updating: files.assembly)
      try output.truncate(to: Int64(last.pageSize) * last.pageCount)
      try output.syncAndClose()
      try files.publish(at: path)
    }
    return Point(transaction: end.last, time: last.time, byteCount: Int64(last.pageSize) * last.pageCount)
  }

  private static let missing = StorageError(.notFound, "the replica has no such state")

  /// Writes the pages of a file into the database.
  private static func add(_ path: String, _ object: RemotePath, to database: String) throws -> LTXFile? {
    let output = try PosixFile(updating: database)
    var file: LTXFile?
    try LTXFile.read(path, object) {
      file = $0
      try output.write($2, at: Int($1 - 1) * $0.pageSize)
    }
    return file
  }

  /// A file of the replica: the changes of some transactions, or all pages after them.
  private struct Part {
    let object: StoredObject
    let level: Int
    let first: UInt64
    let last: UInt64

    /// The level of snapshots.
    static let snapshot = 9

    /// - Returns: nil for another file: the path is `ltx/<level>/<first>-<last>.ltx` in a folder, and without `ltx` and
    ///   with four digits for the level in a bucket.
    init?(_ object: StoredObject, in folder: RemotePath?) {
      var names = object.path.segments.dropFirst(folder?.segments.count ?? 0)
      if names.count == 3, names.first == "ltx" { names.removeFirst() }
      guard names.count == 2, let name = names.last, name.hasSuffix(".ltx"),
        let level = names.first.flatMap({ Int($0) })
      else { return nil }
      let numbers = name.dropLast(4).split(separator: "-").map { UInt64($0, radix: 16) }
      guard numbers.count == 2, let first = numbers[0], let last = numbers[1], (0...Self.snapshot).contains(level),
        first <= last
      else { return nil }
      (self.object, self.level, self.first, self.last) = (object, level, first, last)
    }

    /// True if it is the better next file: the one that leads further, or else is larger or compacted more often.
    func isBetter(than other: Part) -> Bool {
      if last != other.last { return last > other.last }
      return first != other.first ? first < other.first : level > other.level
    }
  }

  /// The files that lead to a state, the oldest first: the newest snapshot, and what extends it.
  private func chain(to selection: Selection) async throws -> [Part] {
    var parts = try await storage.listAll(folder).objects.compactMap { Part($0, in: folder) }
    switch selection {
    case .newest: break
    case .transaction(let limit): parts.removeAll { $0.last > limit }
    case .time(let limit):
      var early: [Part] = []
      for part in parts where try await time(of: part) < limit { early.append(part) }
      parts = early
    }
    var chain = parts.filter { $0.level == Part.snapshot }.max { $0.last < $1.last }.map { [$0] } ?? []
    parts.removeAll { $0.level == Part.snapshot }
    var end: UInt64 { chain.last?.last ?? 0 }
    while let next = parts.filter({ $0.first <= end + 1 && $0.last > end }).max(by: { $1.isBetter(than: $0) }) {
      chain.append(next)
    }
    if selection == .newest, let later = parts.first(where: { $0.first > end + 1 }) {
      throw StorageError(.damaged, "the transactions between \(end) and this file are missing", path: later.object.path)
    }
    if case .transaction(let limit) = selection, end < limit { throw Self.missing }
    guard !chain.isEmpty else { throw Self.missing }
    return chain
  }

  private func time(of part: Part) async throws -> Int64 {
    let count = LTXFile.headerByteCount
    let request = GetRequest(count: Int64(count))
    let header = try await storage.get(part.object.path, request).chunks.bytes(upTo: count)
    return try LTXFile(header: header, at: part.object.path).time
  }
}
