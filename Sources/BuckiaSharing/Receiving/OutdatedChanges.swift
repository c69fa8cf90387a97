import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Changes of a stream that are older than the local values: by the clock of their table under the policy
/// `take-incoming`, and otherwise if both sides have resolved a conflict and their decisions cross. Under `keep-local`,
/// INSERTs of rows that a later diff has deleted, or that were deleted here without the knowledge of their author.
///
/// Without this check, two people who have both shared an edit of a value swap their edits, and among three people two
/// values would circulate without end. Unsent edits are not in the clock, and an incoming change replaces them.
final class OutdatedChanges {
  private let policies: ConflictPolicies
  private let id: KSUID
  private let connection: SQLiteConnection
  private let crossing: CrossingShares?
  /// The shares with the sender and how far the sender had applied them; empty if no conflict was resolved here.
  private let shares: [(number: Int64, through: Int64)]
  /// The shares of which the sender had not applied all diffs, with their baselines, and the last of this database's diffs
  /// that the sender had applied. Empty if there is no table without a clock and with the policy `keep-local`.
  private let unseen: [(number: Int64, through: Int64, baseline: PeerBaseline)]
  private let lastApplied: KSUID?
  private var rowVersions: [TableName: ClockedRows?] = [:]
  /// The parts of the changes of a row that were left out.
  private var found: [TableName: [[UInt8]: LeftOut]] = [:]
  private var respelled = RespelledRows()

  /// The part of a change that is left out.
  enum LeftOut {
    /// The values of some columns.
    case values(Set<Int>)
    /// An INSERT of a row that was deleted later.
    case insertion
    /// A DELETE of a row that was inserted later.
    case deletion
  }

  /// - Parameters:
  ///   - policies: The policies for conflicts.
  ///   - changes: The changes of the stream.
  ///   - senders: The keys that have replaced others.
  ///   - crossing: What their author has changed without knowing what is here; nil for nothing.
  /// - Returns: nil if no local value can be later.
  /// - Throws: `SQLiteError`; `LedgerError`.
  init?(
    _ policies: ConflictPolicies, _ changes: IncomingChanges, _ senders: KnownSenders, _ crossing: CrossingShares?,
    on connection: borrowing SQLiteConnection
  ) throws {
    guard let id = changes.key.id else { return nil }
    let isDecided = try DecidedRows.exist(on: connection)
    let keeping = (changes.definitions ?? []).filter { policies.policy(for: TableName($0.name)) == .keepLocal }
    let clocks = try keeping.map { try RowClocks.number(of: $0, on: connection) }
    unseen =
      try clocks.contains(nil)
      ? changes.unseenShares(senders, on: connection).map {
        ($0.share.number, $0.through, try PeerBaseline(of: $0.share, on: connection))
      } : []
    guard policies.usesTakeIncoming || isDecided || !unseen.isEmpty || clocks.contains(where: { $0 != nil }) else {
      return nil
    }
    shares =
      try isDecided
      ? changes.sharesWithAuthor(senders, on: connection).map { ($0.number, changes.claims.acknowledged($0)) } : []
    lastApplied = unseen.isEmpty ? nil : try changes.lastApplied(on: connection)
    self.crossing = crossing
    self.policies = policies
    self.id = id
    self.connection = SQLiteConnection(sharing: connection)
  }

  /// The part of a change that was left out.
  func leftOut(of change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, _ table: KeyedTable) -> LeftOut? {
    guard let rows = found[table.name] else { return nil }
    let row = change.operation == .insert ? reader.new : reader.old
    return table.hasKey(row) ? rows[table.key(row, bytes)] : nil
  }

  /// Writes the rest of a change.
  ///
  /// - Parameters:
  ///   - origin: The origin of the change; nil for the diff itself.
  ///   - isEdited: True for an INSERT of a row that its sender has changed since accepting it. If the row was deleted
  ///     later, the values are a conflict.
  /// - Returns: True if some of it is left out; otherwise nothing is written.
  /// - Throws: `SQLiteError`.
  func write(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable, _ header: ChangesetTable,
    _ origin: OriginRun?, isEdited: Bool = false, into writer: inout ChangesetWriter
  ) throws -> Bool {
    if try crosses(change, reader, bytes, of: table, header) { return true }
    let policy = policies.policy(for: table.name)
    guard policy == .takeIncoming || policy == .keepLocal && change.operation == .insert else { return false }
    let rowVersions = try rowVersions(of: table)
    guard rowVersions != nil || crossing != nil || !unseen.isEmpty else { return false }
    let row = change.operation == .insert ? reader.new : reader.old
    let key = table.key(row, bytes)
    let here = try LocalRow(row, bytes, of: table, on: connection)
    let versioned = try rowVersions?.row(key, isHere: here != nil) ?? ClockedRows.Row()
    let origin = origin ?? OriginRun(count: 1, diff: id)
    func note(_ leftOut: LeftOut) -> Bool {
      found[table.name, default: [:]][key] = leftOut
      return true
    }
    guard let here else {
      guard change.operation == .insert, try !table.finds(table.lookup, row, bytes, on: connection) else {
        return false
      }
      let deleted = policy == .keepLocal ? try deletedVersion(ofRow: row, bytes, key, in: table) : nil
      guard deleted != nil || versioned.deletion.map({ $0.diff > origin.diff }) ?? false else { return false }
      let known = try deleted ?? Tombstones.hash(of: key, in: table.name, on: connection)
      if isEdited || deleted != nil, known != table.contentHash(row, bytes) {
        writer.appendUpdate(ofMissing: row, bytes, header)
      }
      return note(.insertion)
    }
    guard policy == .takeIncoming, !table.comparesKeysByBytes || here.hasSameKey(as: row, bytes, of: table) else {
      return false
    }
    if change.operation == .delete, let insertion = versioned.insertion?.diff, insertion > origin.diff {
      return note(.deletion)
    }
    let isRespelled = try respelled.look(at: change, of: row, bytes, table, on: connection)
    guard change.operation != .delete, !isRespelled else { return false }
    let other = reader.new.indices.filter { place in
      reader.new[place].isDefined && here.encoded(place) != bytes.array(reader.new[place].encoded)
    }
    let sent = crossing?.places(ofRow: key, in: table.name) ?? []
    var outdated = Set(
      other.filter { place in
        let column = header.isKey(place) ? nil : versioned.columns[ASCIIName.folded(table.columns[place])]
        guard let setter = column ?? versioned.insertion else { return sent.contains(place) }
        return setter.diff > (header.isKey(place) ? origin.diff : origin.diff(of: place, change.operation))
      })
    guard !outdated.isEmpty else { return false }
    let keys = other.filter { header.isKey($0) }
    if keys.contains(where: { !outdated.contains($0) }) {
      // The row gets the spelling of the INSERT.
      writer.beginChange(.insert, isIndirect: change.isIndirect)
      for place in row.indices {
        if outdated.contains(place) {
          writer.append(encoded: here.encoded(place))
        } else {
          writer.append(row[place], of: bytes)
        }
      }
      return note(.values(outdated))
    }
    outdated.subtract(keys)
    let left = other.filter { !outdated.contains($0) && !header.isKey($0) }
    writer.appendUpdate(of: left, to: reader.new, bytes, header, isIndirect: change.isIndirect) { place, writer in
      // The values before an INSERT are unknown.
      if header.isKey(place) || change.operation == .update {
        writer.append(row[place], of: bytes)
      } else {
        writer.appendNull()
      }
    }
    return note(.values(outdated))
  }

  /// The hash of a row that was deleted here and whose deletion the sender had not applied, in a table without a clock;
  /// nil for other rows. Rows with an integer key are known by the names that their senders give them.
  private func deletedVersion(
    ofRow row: [ValueSlice], _ bytes: RawSpan, _ key: [UInt8], in table: KeyedTable
  ) throws -> UInt64? {
    guard !unseen.isEmpty, table.integerKey(of: row, bytes) == nil, try rowVersions(of: table) == nil else {
      return nil
    }
    if let sent = try Tombstones.row(key, of: table.name, on: connection) {
      let isUnseen = lastApplied.map { $0 < sent.diff } ?? true
      return try isUnseen && OutboxEntry.share(of: sent.diff, on: connection) != nil ? sent.hash : nil
    }
    for (share, through, baseline) in unseen {
      guard let sent = try baseline.contentHash(row, bytes, of: table),
        try SentColumns.sequences(ofRow: key, in: table.name, of: share, on: connection).values.contains(where: {
          $0 > through
        }), try !RowNotes(.takenBack, of: table.name, for: share).contain(key, on: connection),
        try !ParkedRows.all(of: table.name, on: connection).contains(where: { $0.key == key })
      else { continue }
      return sent
    }
    return nil
  }

  /// Leaves out an UPDATE whose sender did not know of a later decision made here about the row.
  private func crosses(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable, _ header: ChangesetTable
  ) throws -> Bool {
    guard !shares.isEmpty, change.operation == .update, try RowClocks.number(of: table.local, on: connection) == nil
    else { return false }
    let key = table.key(reader.old, bytes)
    guard let time = try DecidedRows.time(of: key, in: table.name, on: connection) else { return false }
    let sent = try shares.compactMap { share in
      try OutboxEntry.first(of: share.number, madeAfter: time, beyond: share.through, on: connection)
    }
    guard let later = sent.max(), later > id,
      let here = try LocalRow(reader.old, bytes, of: table, on: connection)
    else { return false }
    let places = reader.new.indices.filter { reader.new[$0].isDefined && !header.isKey($0) }
    // A local edit is an ordinary conflict.
    guard places.allSatisfy({ here.encoded($0) == bytes.array(reader.old[$0].encoded) }) else { return false }
    found[table.name, default: [:]][key] = .values(Set(places))
    return true
  }

  private func rowVersions(of table: KeyedTable) throws -> ClockedRows? {
    if let known = rowVersions[table.name] { return known }
    let found = try ClockedRows(of: table.local, includingOwn: true, on: connection)
    rowVersions[table.name] = found
    return found
  }
}

/// The columns in which the author of a diff has changed a value that this database has sent by a later diff, which the
/// author had not applied.
///
/// Without a clock, each side would accept the other's value. The value in the later of the two diffs counts, which
/// both sides know.
final class CrossingShares {
  /// The shares with the author, the numbers up to which the author had applied them, and their baselines.
  private let shares: [(number: Int64, through: Int64, baseline: PeerBaseline)]
  private let id: KSUID
  private let connection: SQLiteConnection
  private var found: [TableName: [[UInt8]: Set<Int>]] = [:]

  /// - Parameters:
  ///   - changes: The diff.
  ///   - senders: The keys that have replaced others.
  /// - Returns: nil if the author has applied all shares, or the diff is later than them.
  /// - Throws: `SQLiteError`; `LedgerError` when the ledger is damaged.
  init?(_ changes: IncomingChanges, _ senders: KnownSenders, on connection: borrowing SQLiteConnection) throws {
    guard let id = changes.key.id else { return nil }
    let later = try changes.unseenShares(senders, on: connection).filter { share, _ in
      share.last.map { $0.id > id } ?? false
    }
    guard !later.isEmpty else { return nil }
    shares = try later.map { ($0.share.number, $0.through, try PeerBaseline(of: $0.share, on: connection)) }
    self.id = id
    self.connection = SQLiteConnection(sharing: connection)
  }

  /// The columns of a row, by their places in a changeset.
  ///
  /// - Parameter key: The values of the row's key, in the format of changesets.
  func places(ofRow key: [UInt8], in table: TableName) -> Set<Int> { found[table]?[key] ?? [] }

  /// Examines a change.
  ///
  /// - Parameter places: The columns that the author has changed since accepting the row from here; all columns of a
  ///   row that the author has not accepted from here.
  /// - Throws: `SQLiteError`.
  func look(
    at change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable, changing places: Set<Int>
  ) throws {
    let row = change.operation == .insert ? reader.new : reader.old
    guard !places.isEmpty, let here = try LocalRow(row, bytes, of: table, on: connection) else { return }
    let changed = places.filter { place in
      reader.new[place].isDefined && here.encoded(place) != bytes.array(reader.new[place].encoded)
        && (change.operation == .insert || here.encoded(place) != bytes.array(reader.old[place].encoded))
    }
    guard !changed.isEmpty else { return }
    let crossing = changed.intersection(try self.places(sentOf: here, of: table))
    if !crossing.isEmpty { found[table.name, default: [:]][table.key(row, bytes)] = crossing }
  }

  /// The places of the columns whose local values were sent to the author.
  private func places(sentOf row: LocalRow, of table: KeyedTable) throws -> Set<Int> {
    var places: Set<Int> = []
    for (share, through, baseline) in shares {
      let later = try row.values.withRawSpan { bytes in
        try placesSentLater(ofRow: table.key(row.slices, bytes), of: table, in: share, beyond: through)
      }
      if let said = try row.values.withRawSpan({ try baseline.aside(row.slices, $0, of: table) }) {
        // The baseline has followed the author's version.
        if said.hash == row.hash { places.formUnion(later) }
        continue
      }
      let sent = try row.values.withRawSpan { try baseline.values(row.slices, $0, of: table) } ?? []
      places.formUnion(later.filter { sent.indices.contains($0) && sent[$0] == row.encoded($0) })
    }
    return places
  }

  /// The places of the columns that a share has sent last by a later diff than the author's, which the author had not
  /// applied.
  private func placesSentLater(
    ofRow key: [UInt8], of table: KeyedTable, in share: Int64, beyond through: Int64
  ) throws -> [Int] {
    let sequences = try SentColumns.sequences(ofRow: key, in: table.name, of: share, on: connection)
    return try table.columns.indices.filter { place in
      guard
        let sequence = sequences[ASCIIName.folded(table.columns[place])] ?? sequences[SentColumns.allColumns],
        sequence > through, let diff = try OutboxEntry.diff(sequence, of: share, on: connection)
      else { return false }
      return diff > id
    }
  }
}

/// Echoes: changes that were made here and come back through a relay. They do nothing, whatever has become of their
/// rows since.
struct ReturnedChanges {
  /// The diffs that were made here.
  private let own: Set<KSUID>

  /// - Returns: nil if there are no echoes.
  /// - Throws: `SQLiteError`.
  init?(_ runs: [OriginRun], on connection: borrowing SQLiteConnection) throws {
    var own: Set<KSUID> = []
    for diff in runs.reduce(into: Set<KSUID>(), { $0.formUnion($1.diffs) })
    where try OutboxEntry.isMadeHere(diff, on: connection) { own.insert(diff) }
    guard !own.isEmpty else { return nil }
    self.own = own
  }

  /// Writes what is left of a change.
  ///
  /// - Parameter origin: The origin of the change.
  /// - Returns: True if any of it is an echo; otherwise nothing is written.
  func write(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, _ header: ChangesetTable, _ origin: OriginRun,
    into writer: inout ChangesetWriter
  ) -> Bool {
    guard !own.isDisjoint(with: origin.diffs) else { return false }
    let columns = reader.new.indices.filter { reader.new[$0].isDefined && !header.isKey($0) }
    let returned =
      change.operation == .delete ? [] : columns.filter { own.contains(origin.diff(of: $0, change.operation)) }
    let isWhole =
      switch change.operation {
      case .delete: own.contains(origin.diff) && !origin.isWithdrawal
      case .insert: own.contains(origin.diff) && returned.count == columns.count
      case .update: returned.count == columns.count
      }
    if isWhole { return true }
    guard change.operation == .update, !returned.isEmpty else { return false }
    let isReturned = Set(returned)
    writer.beginChange(.update, isIndirect: change.isIndirect)
    for row in [reader.old, reader.new] {
      for place in row.indices {
        if isReturned.contains(place) { writer.appendUndefined() } else { writer.append(row[place], of: bytes) }
      }
    }
    return true
  }
}
