import BuckiaSchemaPlans
import SQLiteConnections
import SQLiteFiles
import SQLiteSchemas

/// The pages of two databases: compared when the first table asks, or the reason why they cannot be.
final class PagePair {
  private enum State {
    case unread(DatabasePages, DatabasePages)
    case compared(PageComparison)
    case refused(String)
  }

  /// One of the two databases.
  enum Side: Hashable { case older, newer }

  private var state: State
  private var roots: [Side: RootPages] = [:]

  /// - Parameters:
  ///   - older: The database to start from.
  ///   - newer: The database to arrive at.
  init(_ older: borrowing DatabaseSnapshot, _ newer: borrowing DatabaseSnapshot) throws {
    do {
      if let reason = older.pagesRefusal {
        state = .refused("the older database cannot be read by its pages: \(reason)")
      } else if let reason = newer.pagesRefusal {
        state = .refused("the newer database cannot be read by its pages: \(reason)")
      } else if let one = try older.pages(), let two = try newer.pages() {
        state = Self.begin(one, two)
      } else {
        state = .refused("the pages cannot be read")
      }
    } catch let error as DatabaseFileError {
      state = .refused("\(error)")
    }
  }

  /// Pages that are not to be read.
  init(refusedFor reason: String) { state = .refused(reason) }

  private static func begin(_ older: DatabasePages, _ newer: DatabasePages) -> State {
    guard PageComparison.canCompare(older, newer) else {
      return .refused(
        "the pages of the two databases differ in size (\(size(of: older)) and \(size(of: newer)) bytes)")
    }
    let encodings = [older.header.encoding, newer.header.encoding]
    guard encodings.allSatisfy({ $0 == .utf8 || $0 == .undecided }) else {
      return .refused("text is stored as UTF-16")
    }
    return .unread(older, newer)
  }

  private static func size(of pages: DatabasePages) -> String {
    pages.header.reservedBytes == 0
      ? "\(pages.header.pageSize)" : "\(pages.header.pageSize) less \(pages.header.reservedBytes)"
  }

  /// Why the pages are of no use; nil when they are.
  var refusal: String? { if case .refused(let reason) = state { reason } else { nil } }

  /// The comparison, made now if it has not been.
  ///
  /// - Returns: nil when there is none.
  func comparison() throws -> PageComparison? {
    switch state {
    case .compared(let comparison): return comparison
    case .refused: return nil
    case .unread(let older, let newer):
      do {
        let comparison = try PageComparison(older: older, newer: newer)
        state = .compared(comparison)
        return comparison
      } catch let error as DatabaseFileError {
        state = .refused("\(error)")
        return nil
      }
    }
  }

  /// Where the trees of a database begin, read when the first table asks.
  func roots(of side: Side, on connection: borrowing SQLiteConnection) throws -> RootPages {
    if let known = roots[side] { return known }
    let read = try RootPages(connection)
    roots[side] = read
    return read
  }

  /// Whether a table is the same in both databases as far as can be told without reading its definition. Most tables of a
  /// database with thousands of them are one page, and as they were.
  func isUnchanged(
    _ olderEntry: SchemaEntry, _ newerEntry: SchemaEntry, _ older: borrowing SQLiteConnection,
    _ newer: borrowing SQLiteConnection
  ) throws -> Bool {
    guard newerEntry.isDefined(like: olderEntry), Replicability.isPlain(newerEntry), let comparison = try comparison()
    else { return false }
    let page = try roots(of: .newer, on: newer)[newerEntry.name]
    guard let page, try page == roots(of: .older, on: older)[olderEntry.name] else { return false }
    return comparison.isEqualLeaf(page)
  }

  /// Whether a log was begun anew while it was read, so that what was found may be wrong.
  func isStale() throws -> Bool {
    guard case .compared(let comparison) = state else { return false }
    return try comparison.older.isStale() || comparison.newer.isStale()
  }
}
