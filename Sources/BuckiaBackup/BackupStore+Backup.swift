import Buckia
import BuckiaBytes
import BuckiaFormat
import BuckiaStorage
import SQLiteConnections
import SQLiteFiles

/// How a backup is made.
public struct BackupOptions: Sendable {
  /// A note that is kept with the point, of at most 1,000 bytes.
  public var note: String?
  /// The keys that open the backup; empty for those of the last backup, if there are any. Backups can be made without any
  /// of their secrets.
  public var recipients: [AgeRecipient] = []
  /// False to stop encrypting.
  public var encrypts = true
  /// True to sign with the identity of the database's home, if it has one.
  public var signs = true
  /// True to back up a database that is damaged, or that has lost all tables, too.
  public var acceptsDamage = false
  /// True for the state that a restored point replaces.
  var isBeforeRestore = false

  /// Creates the default options.
  public init() {}
}

/// What a backup has stored.
public struct BackupReport: Hashable, Sendable {
  /// The point with the present state.
  public let point: BackupPoint
  /// False if the database has not changed since that point was made, and nothing was stored.
  public let isNew: Bool
  /// True if the object has all pages.
  public let isComplete: Bool
  /// The number of stored pages.
  public let pageCount: Int64
  /// The size of the object in bytes.
  public let byteCount: Int64
}

extension BackupStore {
  /// Stores the present state of a database, whatever other connections do with it.
  ///
  /// The state is that of one read transaction. The point is in the store complete or not at all. If the database has not
  /// changed since the last backup, nothing is stored.
  ///
  /// - Parameters:
  ///   - database: The database.
  ///   - options: How the backup is made.
  /// - Returns: What was stored.
  /// - Throws: `BuckiaError`: `damagedDatabase` for a database that is empty, damaged, or has lost all tables; `busy`;
  ///   `misuse` for a note that is too long. `StorageError` of the store. Earlier points stay as they are.
  @discardableResult
  public func backUp(_ database: DatabaseManager, _ options: BackupOptions = BackupOptions()) async throws
    -> BackupReport
  {
    let record = try StoreFiles(of: self, in: database.home).record(of: database)
    let lock = try await runBlocking { try Self.lock("\(record).lock") }
    defer { withExtendedLifetime(lock) {} }
    let (present, greatest) = try await objects(
      knownFrom: runBlocking { PageRecord(at: record)?.document.objects ?? [] }, options)
    let files = try await runBlocking { try WorkingFiles(besides: record) }
    let draft = try await CancellationFlag.onThreadOfItsOwn { _ in
      HandedOver(try BackupDraft(of: database, options, record, present, after: greatest, into: files.object))
    }.value
    if let object = draft.object {
      try await storage.upload(file: files.object, to: path("\(object.id)\(Self.suffix)"), .ifAbsent)
    }
    let output = HandedOver(draft.record)
    try await runBlocking { try output.value?.publish() }
    guard let object = draft.object else {
      return BackupReport(point: draft.point, isNew: false, isComplete: false, pageCount: 0, byteCount: 0)
    }
    return BackupReport(
      point: object.point, isNew: true, isComplete: object.payload.base == nil, pageCount: object.payload.pageCount,
      byteCount: object.byteCount)
  }

  /// The objects with the pages of the last point, if the store still has all of them. A pruning may have changed them.
  ///
  /// - Returns: The objects, the oldest first, and the greatest id in the store.
  private func objects(
    knownFrom record: [PageRecord.Entry], _ options: BackupOptions
  ) async throws -> (present: [PageRecord.Entry], greatest: KSUID?) {
    let listing = try await list(orBegin: true)
    let greatest = listing.objects.keys.max()
    guard let last = record.last.flatMap({ KSUID($0.id) }) else {
      if options.recipients.isEmpty, options.encrypts, let newest = greatest.flatMap({ listing.objects[$0] }),
        try await object(newest.object).payload.isEncrypted
      {
        throw BuckiaError(
          .misuse,
          "the store is encrypted, and this device does not know for whom; name them (--to), or stop encrypting (--unencrypted)"
        )
      }
      return ([], greatest)
    }
    if record.allSatisfy({ listing.has($0) }) { return (record, greatest) }
    do {
      let chain = try await chain(to: .id(last), of: nil).reversed()
      return (chain.map { PageRecord.Entry(id: $0.id.description, byteCount: $0.byteCount) }, greatest)
    } catch let error as StorageError where [.damaged, .truncated, .notFound].contains(error.code) {
      return ([], greatest)
    }
  }

  /// The keys that open the last backup of a database, by the record of this device.
  package func recipients(of database: DatabaseManager) throws -> [AgeRecipient] {
    let record = try StoreFiles(of: self, in: database.home).record(of: database)
    return try PageRecord(at: record)?.recipients() ?? []
  }

  /// Waits until no other backup of the database to the store is being made.
  private static func lock(_ path: String) throws -> HandedOver<PosixFile> {
    let file = try PosixFile(updating: path)
    guard file.lock() else { throw BuckiaError(.unwritable, "it cannot be locked", path: path) }
    return HandedOver(file)
  }
}

/// A point in the making.
private struct BackupDraft {
  /// The point with the present state.
  let point: BackupPoint
  /// The object of a new point; nil if the database has not changed.
  private(set) var object: BackupObject?
  /// The record of the new point.
  private(set) var record: AtomicFileOutput?

  private static let windowBytes = 4 << 20
  /// The most objects with only changed pages, one after the other: all of them are read to restore a point.
  private static let deltaLimit = 200

  /// Reads a database, and writes the object of a new point if it has changed.
  ///
  /// - Parameters:
  ///   - path: The record of the last point.
  ///   - present: The objects of the store with the pages of the last point; empty if one is missing.
  ///   - greatest: The greatest id in the store.
  ///   - file: The file for the object.
  init(
    of database: DatabaseManager, _ options: BackupOptions, _ path: String, _ present: [PageRecord.Entry],
    after greatest: KSUID?, into file: String
  ) throws {
    if let note = options.note, note.utf8.count > BackupObject.noteLimit {
      throw BuckiaError(
        .misuse, "the note has \(note.utf8.count) bytes, and at most \(BackupObject.noteLimit) are kept")
    }
    let signer = try options.signs ? database.home.backupSigner() : nil
    let files = try Self.identity(ofFilesOf: database.path)
    let last = PageRecord(at: path)
    let known = present.isEmpty ? nil : last
    let recipients =
      try options.encrypts && options.recipients.isEmpty ? last?.recipients() ?? [] : options.recipients
    let keys = recipients.map(\.description).sorted() + [signer?.identity.description ?? ""]
    if let known, known.document.databaseFiles == files, known.document.keys == keys, options.note == nil {
      point = known.point
      return
    }
    self = try database.withPages { pages, connection in
      try Self.check(connection, isFirst: last == nil, options, database.path)
      let base = known.flatMap { $0.canGrow(pages.header.pageSize, keys, present, Self.deltaLimit) ? $0 : nil }
      let output = try PageOutput(
        at: file, for: recipients.isEmpty ? nil : Encryption(to: recipients))
      let record = try AtomicFileOutput(at: path, replacing: true, isPrivate: true)
      let sum = try Self.copy(pages, besides: base, to: output, record)
      let pageCount = Int64(pages.pageCount)
      if let last = known, last.point.sum == sum, last.point.pageCount == pageCount, last.document.keys == keys,
        options.note == nil
      {
        var document = last.document
        document.databaseFiles = files
        try PageRecord.finish(record, document)
        return BackupDraft(point: last.point, record: record)
      }
      let now = WallClock.unixMilliseconds
      var generator = SystemRandomNumberGenerator()
      let point = BackupPoint(
        id: try database.home.newIDs(after: [greatest].compactMap { $0 }, unixSeconds: now / 1_000).ids[0],
        historyID: last?.point.historyID ?? .random(using: &generator) ?? BackupPoint.HistoryID(checked: []),
        sequence: (last?.point.sequence ?? 0) + 1, time: now, note: options.note, pageSize: pages.header.pageSize,
        pageCount: pageCount, isBeforeRestore: options.isBeforeRestore, sum: sum,
        previous: last.map { ContentDigest(of: Array($0.document.statements.utf8)) }, signer: signer?.identity)
      let payload = try output.finish(base: base?.point.id, signer: signer?.identity) {
        try BackupObject.header(of: point, $0, signer: signer)
      }
      let object = try BackupObject(
        point: point, digest: ContentDigest(of: Array(point.statements.utf8)), payload: payload,
        path: RemotePath("\(point.id)"))
      try PageRecord.finish(record, .init(of: object, files, keys, after: base == nil ? [] : present))
      return BackupDraft(point: point, object: object, record: record)
    }
  }

  private init(point: BackupPoint, object: BackupObject? = nil, record: AtomicFileOutput? = nil) {
    self.point = point
    self.object = object
    self.record = record
  }

  /// The identity of the files of a database.
  ///
  /// A file that was written just now has a text that no other one equals, since a later write in the same tick of the
  /// clock would not show.
  private static func identity(ofFilesOf path: String) throws -> String {
    let files = try ["", "-wal"].map { try FileIdentity.current(at: path + $0) }
    let settled = WallClock.unixMilliseconds - 2_000
    if files.contains(where: { $0.map { $0.modifiedMilliseconds > settled } ?? false }) {
      return "changing at \(WallClock.unixMilliseconds)"
    }
    return files.map { $0?.text ?? "-" }.joined(separator: " ")
  }

  /// Requires that the database is worth a backup.
  private static func check(
    _ connection: borrowing SQLiteConnection, isFirst: Bool, _ options: BackupOptions, _ path: String
  ) throws {
    guard !options.acceptsDamage else { return }
    let advice = "restore a point of the store, or use --accept-damage to back it up all the same"
    if let fault = try connection.damage() {
      throw BuckiaError(.damagedDatabase, "it is damaged, and no backup was made (\(fault)); \(advice)", path: path)
    }
    if !isFirst, try connection.integer("SELECT count(*) FROM main.sqlite_schema") == 0 {
      throw BuckiaError(.damagedDatabase, "it has lost all tables, and no backup was made; \(advice)", path: path)
    }
  }

  /// Reads all pages, writes those that differ from the last point's, and writes the digests of all.
  ///
  /// - Returns: The sum of the digests.
  private static func copy(
    _ pages: DatabasePages, besides base: PageRecord?, to output: PageOutput, _ record: AtomicFileOutput
  ) throws -> PageSum {
    let (pageSize, pageCount, size) = (pages.header.pageSize, pages.pageCount, PageSum.digestBytes)
    var sum = base?.point.sum ?? PageSum()
    let window = UnsafeMutableRawBufferPointer.allocate(byteCount: windowBytes, alignment: 4_096)
    defer { window.deallocate() }
    for first in stride(from: 0, to: pageCount, by: windowBytes / pageSize) {
      let count = min(pageCount - first, windowBytes / pageSize)
      let bytes = UnsafeRawBufferPointer(rebasing: window[..<(count * pageSize)])
      try pages.readAll(count, from: first + 1, into: window)
      let digests = PageSum.digests(of: bytes, from: Int64(first), pageSize: pageSize)
      let former = try base?.digests(from: Int64(first), count) ?? []
      try PageAssembly.forEachRun(in: 0..<count) { page in
        let place = page * size..<(page + 1) * size
        if place.upperBound <= former.count {
          guard former[place] != digests[place] else { return false }
          sum.subtract(former[place])
        }
        sum.add(digests[place])
        return true
      } body: { run in
        try output.write(
          UnsafeRawBufferPointer(rebasing: bytes[run.lowerBound * pageSize..<run.upperBound * pageSize]),
          from: Int64(first + run.lowerBound), pageSize: pageSize)
      }
      try record.write(digests)
    }
    guard let base else { return sum }
    for first in stride(from: Int64(pageCount), to: base.point.pageCount, by: 4_096) {
      let former = try base.digests(from: first, 4_096)
      for place in stride(from: 0, to: former.count, by: size) { sum.subtract(former[place..<place + size]) }
    }
    return sum
  }
}

extension PageRecord {
  /// True if the next object may have only the pages that have changed.
  ///
  /// - Parameters:
  ///   - present: The objects with the pages of the point.
  ///   - limit: The most objects with only changed pages.
  fileprivate func canGrow(_ pageSize: Int, _ keys: [String], _ present: [Entry], _ limit: Int) -> Bool {
    let bytes = present.map(\.byteCount)
    return point.pageSize == pageSize && document.keys == keys && bytes.count <= limit
      && bytes.dropFirst().reduce(0, +) <= max(bytes[0], 1 << 20)
  }
}

extension PageRecord.Document {
  fileprivate init(of object: BackupObject, _ files: String, _ keys: [String], after objects: [PageRecord.Entry]) {
    let entry = PageRecord.Entry(id: object.id.description, byteCount: object.byteCount)
    self.init(
      statements: object.point.statements, databaseFiles: files, objects: objects + [entry], keys: keys)
  }
}
