import Buckia
import BuckiaBytes
import BuckiaFormat
import BuckiaStorage
import Crypto
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
  /// The device, if several can have copies of one home: each continues a history of its own.
  package var device: String?
  /// True to store all pages, because earlier objects are damaged.
  package var isComplete = false

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

/// A backup, and what was done after it.
package struct BackupRun: Sendable {
  package let backup: BackupReport
  package fileprivate(set) var pruned: PruneReport?
  package fileprivate(set) var drill: DrillResult?
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
    try await settle(record)
    let (known, greatest) = try await objects(of: runBlocking { PageRecord(at: record)?.known }, options, database.home)
    let present = options.isComplete ? [] : known
    let files = try await runBlocking { try WorkingFiles(besides: record) }
    let draft = try await CancellationFlag.onThreadOfItsOwn { _ in
      HandedOver(
        try BackupDraft(of: database, for: address, options, record, present, after: greatest, into: files.object))
    }.value
    let output = HandedOver(draft.record)
    try await runBlocking { try output.value?.publish() }
    if let object = draft.object {
      let contents = try await runBlocking { try StorageContents(file: files.object) }
      do { try await storage.putConfirmed(contents, to: path(of: object.point), .ifAbsent) } catch {
        unlink(StoreFiles.unconfirmed(record))
        throw error
      }
    }
    if output.value != nil { try await runBlocking { try StoreFiles.confirm(record) } }
    guard let object = draft.object else {
      return BackupReport(point: draft.point, isNew: false, isComplete: false, pageCount: 0, byteCount: 0)
    }
    return BackupReport(
      point: object.point, isNew: true, isComplete: object.payload.base == nil, pageCount: object.payload.pageCount,
      byteCount: object.byteCount)
  }

  /// Makes a backup, and then prunes its history and restores the point for a check, as wanted.
  ///
  /// - Throws: As ``backUp(_:_:)``, ``prune(keeping:of:home:with:for:isDryRun:)`` and ``drill(_:home:with:)``. What was
  ///   done before that stays.
  package func backUp(
    _ database: DatabaseManager, _ options: BackupOptions, keeping policy: RetentionPolicy?, drills: Bool,
    with identities: [AgeIdentity]
  ) async throws -> BackupRun {
    let recipients = options.recipients.isEmpty ? try recipients(of: database) : options.recipients
    if drills, options.encrypts, identities.isEmpty, !recipients.isEmpty {
      throw BuckiaError(
        .misuse, "the check restores the point, which is encrypted; name a key that opens it (--identity)")
    }
    var run = BackupRun(backup: try await backUp(database, options))
    if let policy {
      run.pruned = try await prune(
        keeping: policy, of: run.backup.point.history, home: database.home, with: identities, for: recipients)
    }
    if drills { run.drill = try await drill(.id(run.backup.point.id), home: database.home, with: identities) }
    return run
  }

  /// Confirms or removes the record of a backup that was stopped: confirms it if the store has its object, unharmed.
  private func settle(_ record: String) async throws {
    let point = try await runBlocking { PageRecord(at: StoreFiles.unconfirmed(record))?.point }
    guard let point else { return }
    do {
      guard let stored = try await list(orBegin: true).objects[point.id] else {
        throw StorageError(.notFound, "the point is not in the store")
      }
      try await check(object(stored.object, of: point.id))
    } catch let error as StorageError where [.damaged, .truncated, .notFound].contains(error.code) {
      unlink(StoreFiles.unconfirmed(record))
      return
    }
    try await runBlocking { try StoreFiles.confirm(record) }
  }

  /// The objects with the pages of the last point, if the store still has all of them. A pruning may have changed them.
  ///
  /// - Returns: The objects, the oldest first, and the greatest id in the store. No objects, if restoring a point that needs
  ///   them has failed.
  private func objects(
    of known: (history: String, objects: [PageRecord.Entry])?, _ options: BackupOptions, _ home: BuckiaHome
  ) async throws -> (present: [PageRecord.Entry], greatest: KSUID?) {
    let listing = try await list(orBegin: true)
    let greatest = listing.objects.keys.max()
    guard let (history, objects) = known, let last = objects.last.flatMap({ KSUID($0.id) }) else {
      if options.recipients.isEmpty, options.encrypts, try await isEncrypted(listing) {
        throw BuckiaError(
          .misuse,
          "the store is encrypted, and this device does not know for whom; name them (--to), or stop encrypting (--unencrypted)"
        )
      }
      return ([], greatest)
    }
    let drill = try await runBlocking { try StoreFiles(of: self, in: home).drills(of: history).last }
    if let drill, drill.fault != nil, objects.contains(where: { $0.id == drill.id.description }) {
      return ([], greatest)
    }
    if objects.allSatisfy({ listing.has($0) }) { return (objects, greatest) }
    do {
      let chain = try await chain(to: .id(last), of: nil).reversed()
      return (chain.map { PageRecord.Entry(id: $0.id.description, byteCount: $0.byteCount) }, greatest)
    } catch let error as StorageError where [.damaged, .truncated, .notFound].contains(error.code) {
      return ([], greatest)
    }
  }

  /// True if the newest readable object is encrypted.
  private func isEncrypted(_ listing: Listing) async throws -> Bool {
    for (_, entry) in listing.objects.sorted(by: { $0.key > $1.key }) {
      do { return try await object(entry.object).payload.isEncrypted } catch let error as StorageError
        where [.damaged, .truncated].contains(error.code)
      {}
    }
    return false
  }

  /// The record of the last point of a database.
  private func record(of database: DatabaseManager) throws -> PageRecord? {
    try PageRecord(at: StoreFiles(of: self, in: database.home).record(of: database))
  }

  /// The history of a database, by the record of this device; nil if it was not backed up from here.
  func knownHistory(of database: DatabaseManager) throws -> String? { try record(of: database)?.point.history }

  /// The object of a new point.
  package func path(of point: BackupPoint) throws(StorageError) -> RemotePath { try path("\(point.id)\(Self.suffix)") }

  /// The keys that open the last backup of a database, by the record of this device.
  package func recipients(of database: DatabaseManager) throws -> [AgeRecipient] {
    try record(of: database)?.recipients() ?? []
  }

  /// True if the last point has the present state of a database, by the record of this device.
  package func isCurrent(_ database: DatabaseManager, _ options: BackupOptions) throws -> Bool {
    guard let record = try record(of: database) else { return false }
    let files = try BackupDraft.identity(ofFilesOf: database.path)
    return try record.isCurrent(files, BackupDraft.keys(options, database, record), options)
  }

  /// True if this device has backed a database up, and the store is empty now.
  package func isGone(for database: DatabaseManager) async throws -> Bool {
    guard try await runBlocking({ try record(of: database) != nil }) else { return false }
    return try await list(orBegin: true).objects.isEmpty
  }

  /// Checks the objects with the pages of the last point of a database.
  ///
  /// - Returns: What is wrong; nil for nothing.
  package func fault(inLastOf database: DatabaseManager) async throws -> StorageError? {
    guard let last = try await runBlocking({ try record(of: database)?.point.id }) else { return nil }
    do {
      for object in try await chain(to: .id(last), of: nil) { try await check(object) }
      return nil
    } catch let error as StorageError where [.damaged, .truncated, .notFound].contains(error.code) { return error }
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
  /// How often pages are read if other programs reset the write-ahead log meanwhile. After a reset, SQLite keeps the log
  /// for the reader.
  private static let attemptLimit = 10
  /// The usual length of a tick of a file system's clock, and some more, in milliseconds.
  private static let tick: Int64 = 20
  /// The most objects with only changed pages, one after the other: all of them are read to restore a point.
  private static let deltaLimit = 200

  /// Reads a database, and writes the object of a new point if it has changed.
  ///
  /// - Parameters:
  ///   - store: The address of the store.
  ///   - path: The record of the last point.
  ///   - present: The objects of the store with the pages of the last point; empty if one is missing.
  ///   - greatest: The greatest id in the store.
  ///   - file: The file for the object.
  init(
    of database: DatabaseManager, for store: String, _ options: BackupOptions, _ path: String,
    _ present: [PageRecord.Entry], after greatest: KSUID?, into file: String
  ) throws {
    if let note = options.note, note.utf8.count > BackupObject.noteLimit {
      throw BuckiaError(
        .misuse, "the note has \(note.utf8.count) bytes, and at most \(BackupObject.noteLimit) are kept")
    }
    let signer = try options.signs ? database.home.backupSigner() : nil
    let files = try Self.identity(ofFilesOf: database.path)
    let kept = PageRecord(at: path)
    let recipients = try Self.recipients(options, kept)
    let keys = Self.keys(recipients, signer)
    let last = kept.flatMap { $0.isOf(options.device) ? $0 : nil }
    let known = present.isEmpty ? nil : last
    if let known, known.isCurrent(files, keys, options) {
      point = known.point
      return
    }
    var draft: BackupDraft?
    for _ in 0..<Self.attemptLimit where draft == nil {
      draft = try database.withPages { pages, connection in
        if last != nil { try Self.requireTables(connection, options, database.path) }
        let base = try known.flatMap { $0.canGrow(pages.header.pageSize, keys, present, Self.deltaLimit) ? $0 : nil }
          .flatMap { try $0.isWhole() ? $0 : nil }
        let encryption = try recipients.isEmpty ? nil : Encryption(to: recipients)
        let output = try PageOutput(at: file, for: encryption)
        let record = try AtomicFileOutput(at: StoreFiles.unconfirmed(path), replacing: true, isPrivate: true)
        let key = base?.document.hashKey ?? SymmetricKey(size: .bits128).withUnsafeBytes { Array($0) }
        let sum: PageSum
        do {
          let changed: PageBitmap
          (sum, changed) = try Self.copy(pages, besides: base, key, to: output, record)
          if !options.acceptsDamage {
            let isEnough = base?.document.isChecked == true
            try Self.requireUndamaged(pages, isEnough ? changed : nil, connection, database)
          }
        } catch {
          if try pages.isStale() { return nil }
          throw error
        }
        if try pages.isStale() { return nil }
        let pageCount = Int64(pages.pageCount)
        if let last = known, last.point.sum == sum, last.point.pageCount == pageCount, last.document.keys == keys,
          options.note == nil
        {
          var document = last.document
          document.databaseFiles = files
          document.isChecked = document.isChecked || !options.acceptsDamage
          try PageRecord.finish(record, document)
          return BackupDraft(point: last.point, record: record)
        }
        let now = WallClock.unixMilliseconds
        var generator = SystemRandomNumberGenerator()
        let point = try BackupPoint(
          id: try database.home.newIDs(after: [greatest].compactMap { $0 }, unixSeconds: now / 1_000).ids[0],
          historyID: last?.point.historyID ?? .random(using: &generator) ?? BackupPoint.HistoryID(checked: []),
          sequence: (last?.point.sequence ?? 0) + 1, time: now, note: options.note, for: encryption,
          pageSize: pages.header.pageSize,
          pageCount: pageCount, isBeforeRestore: options.isBeforeRestore, sum: sum,
          previous: last.map { ContentDigest(of: Array($0.document.statements.utf8)) }, signer: signer?.identity)
        let payload = try output.finish(base: base?.point.id, signer: signer?.identity) {
          try BackupObject.header(of: point, $0, signer: signer)
        }
        let object = try BackupObject(
          point: point, digest: ContentDigest(of: Array(point.statements.utf8)), payload: payload,
          path: RemotePath("\(point.id)"))
        let device = options.device ?? last?.document.device
        try PageRecord.finish(
          record,
          .init(
            store: store, statements: point.statements, databaseFiles: files,
            objects: (base == nil ? [] : present) + [.init(id: point.id.description, byteCount: object.byteCount)],
            keys: keys, device: device, hashKey: key, isChecked: !options.acceptsDamage))
        return BackupDraft(point: point, object: object, record: record)
      }
    }
    guard let draft else {
      throw BuckiaError(.busy, "other programs write to the database all the time", path: database.path)
    }
    self = draft
  }

  private init(point: BackupPoint, object: BackupObject? = nil, record: AtomicFileOutput? = nil) {
    self.point = point
    self.object = object
    self.record = record
  }

  /// The keys that open the next backup.
  private static func recipients(_ options: BackupOptions, _ record: PageRecord?) throws -> [AgeRecipient] {
    try options.encrypts && options.recipients.isEmpty ? record?.recipients() ?? [] : options.recipients
  }

  private static func keys(_ recipients: [AgeRecipient], _ signer: ManifestSigner?) -> [String] {
    recipients.map(\.description).sorted() + [signer?.identity.description ?? ""]
  }

  /// The keys that the next backup is encrypted for, and that it is signed with.
  static func keys(_ options: BackupOptions, _ database: DatabaseManager, _ record: PageRecord?) throws -> [String] {
    try keys(recipients(options, record), options.signs ? database.home.backupSigner() : nil)
  }

  /// The identity of the files of a database.
  ///
  /// A later write in the same tick of the file system's clock would not show. The call waits for the next tick, and a
  /// file that is still being written has a text that no other one equals. Some clocks have ticks of two seconds.
  static func identity(ofFilesOf path: String) throws -> String {
    let path = PosixFile.target(ofLink: path)
    for isLast in [false, true] {
      let files = try ["", "-wal"].map { try FileIdentity.current(at: path + $0) }
      let isSettled = files.compactMap(\.?.modifiedMilliseconds).allSatisfy {
        $0 + ($0 % 1_000 == 0 ? 2_000 : tick) < WallClock.unixMilliseconds
      }
      if isSettled { return files.map { $0?.text ?? "-" }.joined(separator: " ") }
      if !isLast { usleep(UInt32(tick) * 1_000) }
    }
    return "changing at \(WallClock.unixMilliseconds)"
  }

  private static let advice =
    "restore a point of the store, or back it up all the same with `buckia backup --accept-damage`"

  private static func requireTables(
    _ connection: borrowing SQLiteConnection, _ options: BackupOptions, _ path: String
  ) throws {
    if !options.acceptsDamage, try connection.integer("SELECT count(*) FROM main.sqlite_schema") == 0 {
      throw BuckiaError(.damagedDatabase, "it has lost all tables, and no backup was made; \(advice)", path: path)
    }
  }

  /// Requires that the pages of the database are in order.
  ///
  /// - Parameter changed: The pages that have changed since a point whose pages were; nil to check all.
  private static func requireUndamaged(
    _ pages: DatabasePages, _ changed: PageBitmap?, _ connection: borrowing SQLiteConnection,
    _ database: DatabaseManager
  ) throws {
    func refused(_ fault: String) -> BuckiaError {
      BuckiaError(
        .damagedDatabase, "it is damaged, and no backup was made (\(fault)); \(advice)", path: database.path)
    }
    do {
      if let changed, try pages.checkChanges(changed) { return }
      try connection.requireUndamagedPages(polling: database.poll)
    } catch let error as DatabaseFileError where error.code != .unreadable {
      throw refused(error.description)
    } catch let error as SQLiteError where error.isCorrupt {
      throw refused(error.message)
    }
  }

  /// Reads all pages, writes those that differ from the last point's, and writes the record of all.
  ///
  /// - Parameter key: The secret of the hashes in the record.
  /// - Returns: The sum of the digests, and the numbers of the written pages.
  private static func copy(
    _ pages: DatabasePages, besides base: PageRecord?, _ key: [UInt8], to output: PageOutput,
    _ record: AtomicFileOutput
  ) throws -> (PageSum, PageBitmap) {
    let (pageSize, pageCount) = (pages.header.pageSize, pages.pageCount)
    let hasher = PageHasher(key: key, pageSize: pageSize)
    let changed = PageBitmap(upTo: pageCount)
    var sum = base?.point.sum ?? PageSum()
    let window = UnsafeMutableRawBufferPointer.allocate(byteCount: windowBytes, alignment: 4_096)
    defer { window.deallocate() }
    for first in stride(from: 0, to: pageCount, by: windowBytes / pageSize) {
      let count = min(pageCount - first, windowBytes / pageSize)
      func bytes(_ pages: Range<Int>) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: window[pages.lowerBound * pageSize..<pages.upperBound * pageSize])
      }
      try pages.readAll(count, from: first + 1, into: window)
      var entries = PageRecord.Entries(try base?.entries(from: Int64(first), count), count)
      try PageAssembly.forEachRun(in: 0..<count) { page in
        entries.setHash(hasher.hash(bytes(page..<page + 1)), of: page)
      } body: { run in
        let digests = PageSum.digests(of: bytes(run), from: Int64(first + run.lowerBound), pageSize: pageSize)
        for page in run {
          changed.insert(first + page + 1)
          if let former = entries.digest(of: page) { sum.subtract(former) }
          let place = (page - run.lowerBound) * PageSum.digestBytes
          let digest = digests[place..<place + PageSum.digestBytes]
          sum.add(digest)
          entries.setDigest(digest, of: page)
        }
        try output.write(bytes(run), from: Int64(first + run.lowerBound), pageSize: pageSize)
      }
      try record.write(entries.bytes)
    }
    guard let base else { return (sum, changed) }
    for first in stride(from: Int64(pageCount), to: base.point.pageCount, by: 4_096) {
      let former = PageRecord.Entries(try base.entries(from: first, 4_096))
      for page in 0..<former.knownCount { former.digest(of: page).map { sum.subtract($0) } }
    }
    return (sum, changed)
  }
}

extension PageRecord {
  /// The history of the point, and the objects with its pages.
  fileprivate var known: (history: String, objects: [Entry]) { (point.history, document.objects) }

  /// True if it is of a device; nil for any.
  fileprivate func isOf(_ device: String?) -> Bool {
    device == nil || document.device == nil || document.device == device
  }

  /// True if the point has the present state of the database.
  fileprivate func isCurrent(_ files: String, _ keys: [String], _ options: BackupOptions) -> Bool {
    isOf(options.device) && document.databaseFiles == files && document.keys == keys && options.note == nil
  }

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
