import BuckiaApply
import BuckiaByteStreams
import BuckiaDiff
import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// What was changed in a database since it was last sent, found before the files of others are applied.
///
/// The next difference must hold it, so the next snapshot must not. That snapshot is the database as it is when the files
/// have been applied, less this: what the others have sent stays in it, also where it has met one of these changes and was
/// taken.
package struct UnsentChanges {
  /// How many rows were changed.
  let count: Int
  /// The changes that lead back from the database to what the others know of it.
  private let reversal: TemporaryBuffer
  private let summary: ChangesetSummary
  /// The tables that they are about.
  private let definitions: [TableDefinition]

  /// Compares the database with the snapshot that was made last.
  ///
  /// - Parameters:
  ///   - connection: The database.
  ///   - path: The snapshot.
  /// - Returns: nil where there is no snapshot yet, or one that Buckia has not made: then all counts as sent.
  init?(in connection: borrowing SQLiteConnection, since path: String) throws {
    guard FileSystem.exists(path), FileKind(of: path) == .sqlite else { return nil }
    try self.init(in: connection, since: RowSource(opening: path))
  }

  /// The same where the snapshot is open.
  ///
  /// - Parameters:
  ///   - connection: The database.
  ///   - known: The snapshot.
  /// - Returns: nil where it is none that Buckia has made.
  package init?(in connection: borrowing SQLiteConnection, since known: RowSource) throws {
    guard try SentChanges.areKept(in: known.connection) else { return nil }
    let sent = try SentChanges.read(from: known.connection)
    let changed = try DatabaseComparison.run(from: known, to: RowSource(on: connection)).changeset
    let back = TemporaryBuffer()
    try Changesets.invert(changed, into: back)
    let whole = TemporaryBuffer()
    do {
      try Changesets.concatenate([back, sent], into: whole)
      reversal = whole
    } catch is ChangesetError {
      // Tables have got other columns since: what was sent is sent once more, which changes nothing for those who have it.
      reversal = back
    }
    summary = try ChangesetSummary.of(reversal)
    count = summary.tables.reduce(0) { $0 + $1.changeCount }
    let schema = try SchemaReader(connection)
    definitions = try summary.tables.map { table in
      guard let entry = schema.entry(named: TableName(table.table.name)) else {
        throw BuckiaError(
          .missingTable,
          "table \"\(table.table.name)\" was sent since this snapshot, and is gone now; make another one",
          path: known.connection.path)
      }
      return try schema.definition(of: entry)
    }
  }

  /// The changes, for the policy `latest`, under which they count as later than all that arrives.
  package func edits(on connection: borrowing SQLiteConnection) throws -> UnsentEdits {
    try UnsentEdits(takenBackBy: reversal, definitions, on: connection)
  }

  /// Takes the changes out of a copy of the database. A row that has changed otherwise since stays as it is.
  ///
  /// - Parameter copy: The copy, without the ledger.
  /// - Throws: `BuckiaError` when they do not fit it; `SQLiteError` when it cannot be written. It is unchanged then.
  func remove(from copy: borrowing SQLiteConnection) throws {
    guard !reversal.isEmpty else { return }
    do {
      // What others know may have a UNIQUE value that a row of the database has got since.
      try PlainChanges(reversal, definitions, summary).apply(to: copy, conflicts: .keepLocal)
    } catch let error as any FileFault where error.refusal != nil {
      let reason = error.refusal?.reason ?? ""
      throw BuckiaError(
        .unsupported, "what was not sent yet cannot be told from what was: \(reason)", path: copy.path)
    }
  }
}
