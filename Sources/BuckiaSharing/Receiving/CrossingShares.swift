import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The columns of rows in which the author of a diff has changed what this database has told them by a later diff, which they had not applied.
///
/// Where no clock knows who has said which value, each side would take the value of the other one. The value that was told by the later of
/// the two diffs counts: both sides know the two.
final class CrossingShares {
  private let shadows: [PeerShadow]
  private let connection: SQLiteConnection
  private var found: [TableName: [[UInt8]: Set<Int>]] = [:]

  /// - Parameters:
  ///   - changes: The diff.
  ///   - senders: Knows which keys have replaced others.
  /// - Returns: nil where its author has applied all that was shared with them, or it is later than that.
  /// - Throws: `SQLiteError`; `LedgerError` when the ledger is damaged.
  init?(_ changes: IncomingChanges, _ senders: KnownSenders, on connection: borrowing SQLiteConnection) throws {
    guard let id = changes.key.id else { return nil }
    let later = try changes.sharesWithAuthor(senders, on: connection).filter { share in
      share.last.map { $0.id > id && changes.claims.acknowledged(share) < share.sequence } ?? false
    }
    guard !later.isEmpty else { return nil }
    shadows = try later.map { try PeerShadow(of: $0, on: connection) }
    self.connection = SQLiteConnection(sharing: connection)
  }

  /// The columns of a row, by their places in a changeset.
  ///
  /// - Parameter key: The values of the row's key, in the format of changesets.
  func places(ofRow key: [UInt8], in table: TableName) -> Set<Int> { found[table]?[key] ?? [] }

  /// Looks at a change.
  ///
  /// - Parameter places: The columns that the author has changed since the version that they have taken from here; all of a row that they
  ///   have not.
  /// - Throws: `SQLiteError`.
  func look(
    at change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable, changing places: Set<Int>
  ) throws {
    let row = change.operation == .insert ? reader.new : reader.old
    guard !places.isEmpty, let here = try LocalRow(row, bytes, of: table, on: connection) else { return }
    let changed = places.filter { place in
      reader.new[place].isDefined && !table.keyPlaces.contains(place)
        && here.encoded(place) != bytes.array(reader.new[place].encoded)
        && (change.operation == .insert || here.encoded(place) != bytes.array(reader.old[place].encoded))
    }
    guard !changed.isEmpty else { return }
    let crossing = changed.intersection(try self.places(toldOf: here, of: table))
    if !crossing.isEmpty { found[table.name, default: [:]][table.key(row, bytes)] = crossing }
  }

  /// The places of the columns in which the author was told what is here.
  private func places(toldOf row: LocalRow, of table: KeyedTable) throws -> Set<Int> {
    var places: Set<Int> = []
    for shadow in shadows {
      if let said = try row.values.withRawSpan({ try shadow.aside(row.slices, $0, of: table) }) {
        // The shadow has followed what the author has said.
        if said.hash == row.hash { places.formUnion(row.slices.indices) }
        continue
      }
      let told = try row.values.withRawSpan { try shadow.values(row.slices, $0, of: table) } ?? []
      for (place, value) in told.enumerated() where value == row.encoded(place) { places.insert(place) }
    }
    return places
  }
}
