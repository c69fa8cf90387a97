import SQLiteConnections
import SQLiteFiles
import SQLiteSchemas

/// The pages of two snapshots: compared when the first table asks for them, or the reason why they cannot be.
final class PagePair {
  private enum State {
    case unread(DatabasePages, DatabasePages)
    case compared(PageComparison)
    case refused(SkipReason)
  }

  let older: DatabaseSnapshot
  let newer: DatabaseSnapshot
  private var state: State
  private let progress: ProgressReporter
  /// Where the trees of both databases begin; read when the first table asks.
  private lazy var roots = Result {
    (older: try rootPages(older.source.connection), newer: try rootPages(newer.source.connection))
  }

  /// - Parameters:
  ///   - older: The database to start from.
  ///   - newer: The database to arrive at.
  ///   - refusal: Why the pages are not to be read; nil if they are.
  init(
    _ older: DatabaseSnapshot, _ newer: DatabaseSnapshot, refusedFor refusal: SkipReason? = nil,
    _ progress: ProgressReporter
  ) throws {
    self.older = older
    self.newer = newer
    self.progress = progress
    if let refusal {
      state = .refused(refusal)
    } else if case .unavailable(let reason) = older.pages {
      state = .refused(SkipReason(.pagesUnavailable, "older", reason.rawValue))
    } else if case .unavailable(let reason) = newer.pages {
      state = .refused(SkipReason(.pagesUnavailable, "newer", reason.rawValue))
    } else {
      do {
        state = try Self.state(older.pages.open(progress), newer.pages.open(progress))
      } catch let error as DatabaseFileError {
        state = .refused(SkipReason(.pagesDamaged, "\(error)"))
      }
    }
  }

  private static func state(_ older: DatabasePages?, _ newer: DatabasePages?) -> State {
    guard let older, let newer else { return .refused(SkipReason(.pagesDamaged, "the pages cannot be read")) }
    guard PageComparison.canCompare(older, newer) else {
      return .refused(SkipReason(.pageSizeDiffers, size(of: older), size(of: newer)))
    }
    let encodings = [older.header.encoding, newer.header.encoding]
    guard encodings.allSatisfy({ $0 == .utf8 || $0 == .undecided }) else { return .refused(SkipReason(.notUTF8)) }
    return .unread(older, newer)
  }

  private static func size(of pages: DatabasePages) -> String {
    pages.header.reservedBytes == 0
      ? "\(pages.header.pageSize)" : "\(pages.header.pageSize) less \(pages.header.reservedBytes)"
  }

  /// The comparison, made now if it has not been; nil if there is none, and `refusal` says why.
  private func comparison() throws -> PageComparison? {
    if case .unread(let older, let newer) = state {
      do {
        state = .compared(try PageComparison(older: older, newer: newer))
      } catch let error as DatabaseFileError {
        state = .refused(SkipReason(.pagesDamaged, "\(error)"))
      }
    }
    if case .compared(let comparison) = state { return comparison }
    return nil
  }

  private var refusal: SkipReason? { if case .refused(let reason) = state { reason } else { nil } }

  /// True if a table is the same in both databases as far as is known without reading its definition. Most tables of a
  /// database with thousands of them are one page, and as they were.
  func isUnchanged(_ entry: SchemaEntry) throws -> Bool {
    guard let olderEntry = older.schema.entry(named: entry.name), entry.isDefined(like: olderEntry),
      Replicability.isPlain(entry),
      let comparison = try comparison()
    else { return false }
    let roots = try roots.get()
    guard let page = roots.newer[entry.name], page == roots.older[olderEntry.name] else { return false }
    return comparison.isEqualLeaf(page)
  }

  /// Compares a table by its pages.
  ///
  /// - Returns: Why that cannot be done; what has been collected is then of no use.
  func compare(
    _ table: TableDefinition, with olderTable: TableDefinition, into changes: ChangeCollector
  ) throws -> SkipReason? {
    do {
      guard let comparison = try comparison() else { return refusal }
      let roots = try roots.get()
      guard table.hasSameColumns(as: olderTable),
        let olderStorage = try TableStorage(olderTable, roots.older, on: older.source.connection),
        let newerStorage = try TableStorage(table, roots.newer, on: newer.source.connection),
        olderStorage.signature == newerStorage.signature
      else { return SkipReason(.definitionDiffers) }
      try PageMerge(table, older: olderStorage, newer: newerStorage, comparison, into: changes, progress).run()
      return nil
    } catch let error as DatabaseFileError {
      return SkipReason(.pagesDamaged, "\(error)")
    } catch is AddedColumnDefaults.Unknown {
      return SkipReason(.computedDefault)
    }
  }

  /// True if a log was restarted while it was read: the results may then be wrong.
  func isStale() throws -> Bool {
    guard case .compared(let comparison) = state else { return false }
    return try comparison.older.isStale() || comparison.newer.isStale()
  }

  /// True if a virtual table holds the same rows in both databases, as the pages of its shadow tables tell: then it need
  /// not be read. Most are the same, and a large one takes as long as all the rest.
  ///
  /// - Returns: false, too, when pages cannot tell.
  func hasSameShadowTables(_ table: TableDefinition) throws -> Bool {
    guard let module = table.module else { return false }
    for suffix in module.contentSuffixes {
      let name = TableName(table.name + suffix)
      guard let olderEntry = older.schema.entry(named: name), let newerEntry = newer.schema.entry(named: name),
        case .shadow = olderEntry.kind, case .shadow = newerEntry.kind
      else { return false }
      let definition = try newer.schema.definition(of: newerEntry)
      let olderDefinition = try older.schema.definition(of: olderEntry)
      let changes = ChangeCollector(of: definition)
      let refusal = try compare(definition, with: olderDefinition, into: changes)
      guard refusal == nil, changes.isEmpty else { return false }
    }
    return true
  }
}

extension VirtualModule {
  /// The suffixes of the names of those shadow tables that the rows are read from. The others only help to find them.
  fileprivate var contentSuffixes: [String] {
    switch self {
    case .spatial: ["_node", "_rowid"]
    case .fullText: ["_content"]
    }
  }
}

/// The pages of a database as a transaction sees them, read through the file handle that SQLite itself has open.
enum PageSource {
  /// The database file, and of its log the part up to a mark.
  case file(SQLiteFileHandle, log: SQLiteFileHandle?, WriteAheadLog.EndMark?)
  /// The pages cannot be had.
  case unavailable(Reason)

  /// Why pages cannot be had.
  enum Reason: String {
    case notInAFile = "it is not in a file"
    case busy = "others write to it all the time"
    case uncommittedChanges = "it has changes that are not committed"
    case earlierTransaction = "a transaction has begun on it before"
    case exclusiveLog = "its connection keeps the log's index to itself"
  }

  /// The pages that a new write transaction sees. No other connection can commit during it, so these are the pages of
  /// the last commit.
  init(ofNewWriteTransaction connection: borrowing SQLiteConnection) throws {
    guard let file = SQLiteFileHandle(.database, of: connection) else {
      self = .unavailable(.notInAFile)
      return
    }
    guard try connection.text("PRAGMA main.journal_mode") == "wal" else {
      self = .file(file, log: nil, nil)
      return
    }
    // Where the index of the log is not shared, a look at it would make a shared one.
    guard try connection.text("PRAGMA main.locking_mode") != "exclusive" else {
      self = .unavailable(.exclusiveLog)
      return
    }
    guard let log = SQLiteFileHandle(.log, of: connection), let state = file.logState() else {
      self = .unavailable(.busy)
      return
    }
    let mark = WriteAheadLog.EndMark(frameCount: state.frameCount, salts: state.salts, checksum: state.checksum)
    self = .file(file, log: state.frameCount > 0 ? log : nil, mark)
  }

  /// Reads the headers.
  ///
  /// - Parameter progress: Called with the number of read bytes; nil for no calls, and for pages that two threads read.
  /// - Returns: nil if the pages cannot be had.
  /// - Throws: `DatabaseFileError`, `SQLiteError`.
  func open(_ progress: ProgressReporter?) throws -> DatabasePages? {
    guard case .file(let file, let log, let mark) = self else { return nil }
    return try DatabasePages(HandleBytes(file, progress), log: log.map { HandleBytes($0, progress) }, upTo: mark)
  }
}

/// Finds out which pages a transaction sees that is about to begin.
///
/// SQLite does not tell which commit of the log a transaction sees. What the log's shared index says before and after the
/// transaction has begun is what it sees, if both are the same.
struct PageSourceProbe {
  private let file: SQLiteFileHandle?
  private let log: SQLiteFileHandle?
  private let isLogged: Bool
  private let before: SQLiteFileHandle.LogState?
  private let reason: PageSource.Reason?

  /// - Parameter connection: One that has read something already.
  init(_ connection: borrowing SQLiteConnection) throws {
    let state = connection.transactionState
    file = SQLiteFileHandle(.database, of: connection)
    isLogged = try file != nil && connection.text("PRAGMA main.journal_mode") == "wal"
    // Where the index of the log is not shared, a look at it would make a shared one.
    let isExclusive = try isLogged && connection.text("PRAGMA main.locking_mode") == "exclusive"
    log = isLogged ? SQLiteFileHandle(.log, of: connection) : nil
    reason =
      file == nil
      ? .notInAFile
      : state == .write
        ? .uncommittedChanges
        : !isLogged ? nil : isExclusive ? .exclusiveLog : state == .read ? .earlierTransaction : nil
    before = isLogged && reason == nil ? file?.logState() : nil
  }

  /// The pages of the transaction that has begun; nil if another connection has committed meanwhile.
  func source() -> PageSource? {
    if let reason { return .unavailable(reason) }
    guard let file else { return .unavailable(.notInAFile) }
    guard isLogged, let log else { return .file(file, log: nil, nil) }
    guard let before, before == file.logState() else { return nil }
    let mark = WriteAheadLog.EndMark(frameCount: before.frameCount, salts: before.salts, checksum: before.checksum)
    return .file(file, log: before.frameCount > 0 ? log : nil, mark)
  }
}

/// SQLite's own file handle as a source of bytes.
private final class HandleBytes: ByteSource {
  private let file: SQLiteFileHandle
  /// Nil in another thread than the caller's.
  private let progress: ProgressReporter?

  init(_ file: SQLiteFileHandle, _ progress: ProgressReporter?) {
    self.file = file
    self.progress = progress
  }

  func byteCount() throws -> Int64 { try file.byteCount() }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int {
    try progress?.add(bytes: buffer.count)
    return try file.read(into: buffer, at: offset)
  }

  func duplicate() -> (any ByteSource)? { file.another().map { HandleBytes($0, nil) } }
}
