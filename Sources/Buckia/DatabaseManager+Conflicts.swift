import BuckiaLedger
import SQLiteConnections

extension DatabaseManager {
  /// Recorded conflicts, oldest first.
  ///
  /// There can be millions: see ``forEachConflict(matching:newest:_:)`` and ``conflictCounts(matching:)``.
  ///
  /// - Parameter filter: Which of them are wanted.
  /// - Throws: `BuckiaError` when the database cannot be read, has a newer ledger, or a record is damaged.
  public func conflicts(matching filter: ConflictFilter = ConflictFilter()) throws -> [ConflictRecord] {
    let senders = try home.knownSenders()
    return try withReader { connection in
      guard try Ledger.exists(on: connection) else { return [] }
      let parents = MissingParents(on: connection)
      return try ConflictRecord.all(filter.selection, naming: senders, on: connection).map(parents.named)
    }
  }

  /// Gives recorded conflicts to `body`, oldest first, without having all of them in memory.
  ///
  /// - Parameters:
  ///   - filter: Which of them are wanted.
  ///   - count: How many of these at most: the newest; nil for all.
  ///   - body: Takes a conflict. May throw to stop.
  /// - Throws: `BuckiaError` when the database cannot be read, has a newer ledger, or a record is damaged; whatever `body`
  ///   throws.
  public func forEachConflict(
    matching filter: ConflictFilter = ConflictFilter(), newest count: Int? = nil,
    _ body: (ConflictRecord) throws -> Void
  ) throws {
    let senders = try home.knownSenders()
    try withReader { connection in
      guard try Ledger.exists(on: connection) else { return }
      let parents = MissingParents(on: connection)
      try ConflictRecord.forEach(filter.selection, newest: count, naming: senders, on: connection) {
        try body(parents.named(in: $0))
      }
    }
  }

  /// How many recorded conflicts are alike: of one table, one kind and with one outcome, in the order in which they first came.
  ///
  /// - Parameter filter: Which of them are wanted.
  /// - Throws: `BuckiaError` when the database cannot be read, or has a newer ledger.
  public func conflictCounts(matching filter: ConflictFilter = ConflictFilter()) throws -> [ConflictCount] {
    try withReader { connection in
      guard try Ledger.exists(on: connection) else { return [] }
      return try ConflictRecord.counts(filter.selection, on: connection)
    }
  }
}
