import BuckiaApply
import BuckiaByteStreams
import BuckiaDiff
import BuckiaDiffFiles
import BuckiaKSUID
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// What was changed in a database since it was last sent, found before the files of others are applied.
///
/// The next difference must hold it, so the next snapshot must not. That snapshot is the database as it is when the files
/// have been applied, less this: what the others have sent stays in it, also where it has met one of these changes and was
/// taken.
struct UnsentChanges {
  /// How many rows were changed.
  let count: Int
  /// The changes that lead back from the database to what the others know of it.
  private let reversal: TemporaryBuffer
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
    let known = try RowSource(opening: path)
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
    let summary = try ChangesetSummary.of(reversal)
    count = summary.tables.reduce(0) { $0 + $1.changeCount }
    let schema = try SchemaReader(connection)
    definitions = try summary.tables.map { table in
      guard let entry = schema.entry(named: TableName(table.table.name)) else {
        throw BuckiaError(
          .missingTable,
          "table \"\(table.table.name)\" was sent since this snapshot, and is gone now; make another one",
          path: path)
      }
      return try schema.definition(of: entry)
    }
  }

  /// The changes, for the policy `latest`, under which they count as later than all that arrives.
  func edits(on connection: borrowing SQLiteConnection) throws -> UnsentEdits {
    try UnsentEdits(takenBackBy: reversal, definitions, on: connection)
  }

  /// Takes the changes out of a copy of the database. A row that has changed otherwise since stays as it is.
  func remove(from copy: String) throws {
    guard !reversal.isEmpty else { return }
    var clock = KSUIDClock(last: nil)
    var random = SystemRandomNumberGenerator()
    let id = try clock.next(unixSeconds: WallClock.unixMilliseconds / 1_000, using: &random)
    let file = "\(copy).bdiff"
    let draft = DiffFileDraft(manifest: Manifest(id: id), schema: .included(definitions))
    try DiffFileWriter().write(draft, changeset: reversal, to: file)
    defer { unlink(file) }
    let report = try DatabaseManager(copy).processInboundChanges([file], options: ApplyOptions(schema: .exact))
    guard let outcome = report.diffs.first, outcome.state == .applied else {
      throw BuckiaError(
        .unsupported, "what was not sent yet cannot be told from what was: \(report.diffs.first?.reason ?? "")",
        path: copy)
    }
  }
}
