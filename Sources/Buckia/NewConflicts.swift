import BuckiaLedger
import SQLiteConnections

/// The conflicts that have been recorded since some time, for a report.
struct NewConflicts {
  /// The most conflicts that a report has.
  private static let limit = 10_000

  private let selection: ConflictSelection?

  /// - Parameter number: That of the newest conflict before.
  init(after number: Int64) {
    // None comes behind the greatest number there is.
    guard number < .max else {
      selection = nil
      return
    }
    var selection = ConflictSelection()
    selection.numbers = (number + 1)...Int64.max
    self.selection = selection
  }

  /// How many of them are alike.
  func counts(on connection: borrowing SQLiteConnection) throws -> [ConflictCount] {
    try selection.map { try ConflictRecord.counts($0, on: connection) } ?? []
  }

  /// The first of them, with the rows that they refer to.
  ///
  /// - Parameter senders: What is known of the senders, whose names conflicts have.
  func first(naming senders: KnownSenders, on connection: borrowing SQLiteConnection) throws -> [ConflictRecord] {
    guard let selection else { return [] }
    let parents = MissingParents(on: connection)
    return try ConflictRecord.all(selection, limit: Self.limit, naming: senders, on: connection).map(parents.named)
  }
}
