import BuckiaLedger
import SQLiteChangesets
import SQLiteSchemas

/// What the conflicts of one table's INSERTs mean for others: rows that refer to either row, and what the author sends later.
final class FoundCollisions {
  private let refused: RefusedRows
  /// The keys that the sender contests; nil where new ones are not written down.
  private let contested: ContestedKeys?
  private let statements: TableStatements
  private let header: ChangesetTable
  private let key: RowKey
  /// The places in the layout of the table that foreign keys refer to.
  private let referredPlaces: Result<[Int], any Error>

  init(
    _ collisions: KeyCollisions, contested: ContestedKeys?, _ statements: TableStatements, _ header: ChangesetTable
  ) {
    refused = collisions.refused
    self.contested = contested
    self.statements = statements
    self.header = header
    key = RowKey(of: header)
    referredPlaces = Result { try collisions.referredPlaces(of: statements.match.local) }
  }

  /// Notes a row whose INSERT is left out, where others may refer to it.
  func noteRefused(_ change: DecodedChange, _ bytes: RawSpan, _ cause: RefusedRows.Cause) throws {
    guard try !referredPlaces.get().isEmpty else { return }
    try refused.note(key.identity(of: change, bytes), of: header.name, cause)
  }

  /// Notes a local row in whose place another is written, where others may refer to it.
  func noteReplaced(_ local: CurrentRow) throws {
    let places = try referredPlaces.get()
    guard !places.isEmpty else { return }
    let row = try local.copied()
    var writer = ChangesetWriter()
    row.record.withRawSpan { bytes in
      for place in places { writer.append(row.values[place], of: bytes) }
    }
    try refused.note(replaced: writer.bytes, of: statements.name)
  }

  /// Notes that the sender means another row by a key than the local one.
  ///
  /// - Parameter isTaken: Whether the sender's row is the local one from now on.
  func noteContested(_ change: DecodedChange, _ bytes: RawSpan, isTaken: Bool) throws {
    guard let contested, !change.hasNullKey else { return }
    try contested.add(key.bytes(of: change, bytes), of: statements.name, isTaken: isTaken)
  }
}
