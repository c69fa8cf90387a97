import SQLiteConnections

/// The searches by content that the changes of one file need.
final class ContentSearches {
  private struct Key: Hashable {
    let statements: ObjectIdentifier
    let compared: ColumnMask
  }

  /// The most tables, or sets of columns, that have an index at the same time.
  private static let indexLimit = 4
  /// The most searches that are kept: changes can come in any number of shapes.
  private static let searchLimit = 1_024

  private let policy: ContentPolicy
  private let storesUTF16: Bool
  private let progress: (Int) throws -> Void
  private var searches: [Key: ContentSearch] = [:]
  private var latest: (key: Key, search: ContentSearch)?
  /// The searches with an index, by its slot.
  private var indexed: [ContentSearch] = []
  private var nextSlot = 0
  /// How many changes have been applied.
  var changeCount = 0
  /// Whether indexes may be made: not inside a savepoint that is rolled back while the work goes on.
  var mayMakeIndexes = true

  /// - Parameters:
  ///   - policy: How rows are found.
  ///   - storesUTF16: Whether the database stores text as UTF-16.
  ///   - progress: Is called with the number of applied changes now and then. May throw to stop.
  init(_ policy: ContentPolicy, storesUTF16: Bool, progress: @escaping (Int) throws -> Void) {
    self.policy = policy
    self.storesUTF16 = storesUTF16
    self.progress = progress
  }

  /// The search for rows of a table.
  ///
  /// - Parameters:
  ///   - statements: Those of the table.
  ///   - compared: The columns of the changeset that are compared, besides the key.
  /// - Throws: `SQLiteError`; what `progress` throws. The transaction or savepoint must be rolled back then.
  func search(_ statements: TableStatements, _ compared: ColumnMask) throws -> ContentSearch {
    let key = Key(statements: ObjectIdentifier(statements), compared: compared)
    let search = try latest?.key == key ? latest?.search ?? find(key, statements) : find(key, statements)
    if mayMakeIndexes, search.canHaveIndex, try needsIndex(search) { try makeIndex(for: search) }
    return search
  }

  private func find(_ key: Key, _ statements: TableStatements) throws -> ContentSearch {
    if let known = searches[key] {
      latest = (key, known)
      return known
    }
    if searches.count >= Self.searchLimit, mayMakeIndexes { try end() }
    // It keeps the statements, so that no others get their identity.
    let made = ContentSearch(of: statements, key.compared, storesUTF16: storesUTF16)
    searches[key] = made
    latest = (key, made)
    return made
  }

  private func needsIndex(_ search: ContentSearch) throws -> Bool {
    switch policy {
    case .search: false
    case .indexWhereFaster: try search.isIndexFaster()
    case .index: true
    }
  }

  private func makeIndex(for search: ContentSearch) throws {
    let slot = nextSlot
    nextSlot = (slot + 1) % Self.indexLimit
    if indexed.count > slot { try indexed[slot].endIndex() }
    do {
      try search.makeIndex(slot: slot) { try progress(changeCount) }
    } catch let error as SQLiteError where error.isNotAuthorized {
      // The application allows no TEMP tables or triggers.
      return search.renounceIndex()
    }
    if indexed.count > slot { indexed[slot] = search } else { indexed.append(search) }
  }

  /// Gives all indexes up: to be called when the changes are applied. When they are rolled back, so are the indexes.
  func end() throws {
    for search in indexed { try search.endIndex() }
    indexed.removeAll()
    searches.removeAll()
    latest = nil
    nextSlot = 0
  }
}

extension SQLiteError {
  /// Whether the application's authorizer forbids the statement: `SQLITE_AUTH`.
  fileprivate var isNotAuthorized: Bool { primaryCode == 23 }
}
