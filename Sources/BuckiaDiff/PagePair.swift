import SQLiteSchemas
import SQLiteConnections
import SQLiteFiles

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
    (older: try RootPages(older.source.connection), newer: try RootPages(newer.source.connection))
  }

  /// - Parameters:
  ///   - older: The database to start from.
  ///   - newer: The database to arrive at.
  ///   - refusal: Why the pages are not to be read; nil where they are.
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

  /// The comparison, made now if it has not been; nil where there is none, and `refusal` says why.
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

  /// Whether a table is the same in both databases as far as can be told without reading its definition. Most tables of a
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

  /// Whether a log was restarted while it was read, so that what was found may be wrong.
  func isStale() throws -> Bool {
    guard case .compared(let comparison) = state else { return false }
    return try comparison.older.isStale() || comparison.newer.isStale()
  }
}
