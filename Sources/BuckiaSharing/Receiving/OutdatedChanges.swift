import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Changes of a stream that are older than what is here: under the policy `take-incoming` by the clock of their table, and else where both
/// sides have resolved a conflict, and their decisions cross.
///
/// Without this, two people who have both shared an edit of a value swap their edits, and of three who share with each other two values chase
/// each other without end. What was edited here and not shared yet is not in the clock, so an incoming change takes its place.
final class OutdatedChanges {
  private let policies: ConflictPolicies
  private let id: KSUID
  private let connection: SQLiteConnection
  private let crossing: CrossingShares?
  /// The shares that the sender gets, and how far they had applied them; none where no conflict was resolved here.
  private let shares: [(number: Int64, through: Int64)]
  private var stamps: [TableName: StampedRows?] = [:]
  /// What was left out of the changes of a row.
  private var found: [TableName: [[UInt8]: LeftOut]] = [:]

  /// What is left out of a change.
  enum LeftOut {
    /// The values of some columns.
    case values(Set<Int>)
    /// An INSERT of a row that was deleted later.
    case insertion
    /// A DELETE of a row that was inserted later.
    case deletion
  }

  /// - Parameters:
  ///   - policies: What is done about conflicts.
  ///   - changes: Those of the stream.
  ///   - senders: Knows which keys have replaced others.
  ///   - crossing: What their author has changed without knowing what is here; nil for nothing.
  /// - Returns: nil where nothing here can be later.
  /// - Throws: `SQLiteError`; `LedgerError`.
  init?(
    _ policies: ConflictPolicies, _ changes: IncomingChanges, _ senders: KnownSenders, _ crossing: CrossingShares?,
    on connection: borrowing SQLiteConnection
  ) throws {
    guard let id = changes.key.id else { return nil }
    let isDecided = try DecidedRows.exist(on: connection)
    guard policies.usesTakeIncoming || isDecided else { return nil }
    shares =
      try isDecided
      ? changes.sharesWithAuthor(senders, on: connection).map { ($0.number, changes.claims.acknowledged($0)) } : []
    self.crossing = crossing
    self.policies = policies
    self.id = id
    self.connection = SQLiteConnection(sharing: connection)
  }

  /// What was left out of a change.
  func leftOut(of change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, _ table: KeyedTable) -> LeftOut? {
    guard let rows = found[table.name] else { return nil }
    let row = change.operation == .insert ? reader.new : reader.old
    return table.hasKey(row) ? rows[table.key(row, bytes)] : nil
  }

  /// Writes what is left of a change.
  ///
  /// - Parameter origin: Where the change comes from; nil for the diff itself.
  /// - Returns: True if some of it is left out; otherwise nothing is written.
  /// - Throws: `SQLiteError`.
  func write(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable, _ header: ChangesetTable,
    _ origin: OriginRun?, into writer: inout ChangesetWriter
  ) throws -> Bool {
    if try crosses(change, reader, bytes, of: table, header) { return true }
    guard policies.policy(for: table.name) == .takeIncoming else { return false }
    let stamps = try stamps(of: table)
    guard stamps != nil || crossing != nil else { return false }
    let row = change.operation == .insert ? reader.new : reader.old
    let key = table.key(row, bytes)
    let here = try LocalRow(row, bytes, of: table, on: connection)
    let stamped = try stamps?.row(key, isHere: here != nil) ?? StampedRows.Row()
    let origin = origin ?? OriginRun(count: 1, diff: id)
    func note(_ leftOut: LeftOut) -> Bool {
      found[table.name, default: [:]][key] = leftOut
      return true
    }
    guard let here else {
      guard change.operation == .insert, let deletion = stamped.deletion?.diff, deletion > origin.diff,
        try !table.finds(table.lookup, row, bytes, on: connection)
      else { return false }
      return note(.insertion)
    }
    // A row whose key is spelled otherwise now is deleted and inserted.
    guard here.hasSameKey(as: row, bytes, of: table) else { return false }
    if change.operation == .delete {
      guard let insertion = stamped.insertion?.diff, insertion > origin.diff else { return false }
      return note(.deletion)
    }
    let other = reader.new.indices.filter { place in
      reader.new[place].isDefined && !header.isKey(place)
        && here.encoded(place) != bytes.array(reader.new[place].encoded)
    }
    let told = crossing?.places(ofRow: key, in: table.name) ?? []
    let outdated = Set(
      other.filter { place in
        guard let setter = stamped.columns[ASCIIName.folded(table.columns[place])] ?? stamped.insertion else {
          return told.contains(place)
        }
        return setter.diff > origin.diff(of: place, change.operation)
      })
    guard !outdated.isEmpty else { return false }
    let left = other.filter { !outdated.contains($0) }
    writer.appendUpdate(of: left, to: reader.new, bytes, header, isIndirect: change.isIndirect) { place, writer in
      // What was there before an INSERT is not known.
      if header.isKey(place) || change.operation == .update {
        writer.append(row[place], of: bytes)
      } else {
        writer.appendNull()
      }
    }
    return note(.values(outdated))
  }

  /// Leaves an UPDATE out that its sender has made without knowing of a later decision which was made here about the row: what it changes was
  /// decided here.
  private func crosses(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable, _ header: ChangesetTable
  ) throws -> Bool {
    guard !shares.isEmpty, change.operation == .update, try RowClocks.number(of: table.local, on: connection) == nil
    else { return false }
    let key = table.key(reader.old, bytes)
    guard let time = try DecidedRows.time(of: key, in: table.name, on: connection) else { return false }
    let told = try shares.compactMap { share in
      try OutboxEntry.first(of: share.number, madeAfter: time, beyond: share.through, on: connection)
    }
    guard let later = told.max(), later > id,
      let here = try LocalRow(reader.old, bytes, of: table, on: connection)
    else { return false }
    let places = reader.new.indices.filter { reader.new[$0].isDefined && !header.isKey($0) }
    // What was edited here since is a conflict as any.
    guard places.allSatisfy({ here.encoded($0) == bytes.array(reader.old[$0].encoded) }) else { return false }
    found[table.name, default: [:]][key] = .values(Set(places))
    return true
  }

  private func stamps(of table: KeyedTable) throws -> StampedRows? {
    if let known = stamps[table.name] { return known }
    let found = try StampedRows(of: table.local, includingOwn: true, on: connection)
    stamps[table.name] = found
    return found
  }
}
