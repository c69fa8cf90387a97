import BuckiaApply
import BuckiaDiff
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The changes of a stream to rows that only their content identifies.
///
/// A diff states how many rows with a content each replica has inserted, and how many of those are deleted. Merged with
/// the local counts, this determines the number of rows. A diff that arrives twice, late, or by a relay therefore
/// changes nothing, and a row that was deleted here does not come back.
final class ReceivedContents {
  /// The most rows that one change adds. A diff can state larger counts than it has INSERTs, within this limit.
  private static let insertLimit: Int64 = 16

  private let tables: ContentTables
  private let sender: String
  private let connection: SQLiteConnection
  private let own: [UInt8]?
  /// The shares with the sender, as holders of rows.
  private let shares: [String]
  /// The incarnation that has made the diff; nil if unknown.
  private let author: [UInt8]?
  /// The number of rows that there will be with a content, by its hash, if it differs from the present number.
  private var planned: [TableName: [Int: Int64]] = [:]
  /// The number of withdrawn rows with each content.
  private var withdrawn: [TableName: [[UInt8]: Int64]] = [:]

  /// Contents that the diff and this database have deleted, as hashes of all values but one: an INSERT with one of these
  /// values is an edit of such a row.
  private var deletedAlike: [TableName: Set<Int>] = [:]
  /// Rows that both have made by the same edit, by their content: how many of them, and which two replicas have made them.
  private var editedAlike: [TableName: [[UInt8]: (rows: Int64, origins: Set<[UInt8]>)]] = [:]

  /// - Parameters:
  ///   - definitions: The tables as they travel.
  ///   - changes: The changes.
  ///   - shares: The shares with their sender.
  ///   - schema: The schema of the database.
  /// - Throws: `SQLiteError`, `ReplicationError`.
  init(
    _ definitions: [TableDefinition], from changes: IncomingChanges, sharedBack shares: [ShareEntry],
    _ schema: SchemaReader, on connection: borrowing SQLiteConnection
  ) throws {
    tables = try ContentTables(definitions, schema, on: connection)
    sender = changes.key.sender
    self.shares = shares.map { SentContents.holder(of: $0.number) }
    author = try changes.place?.incarnation.flatMap { incarnation in
      let first = try StreamEntries.firstSender(of: incarnation, on: connection)
      return first == nil || first == changes.key.sender ? incarnation : nil
    }
    own = try ReplicaIdentity.read(on: connection)?.incarnation
    self.connection = SQLiteConnection(sharing: connection)
  }

  /// Records an inserted row without counts. It is not one of the rows that were inserted here.
  private func noteUncounted(_ content: [UInt8], in table: ContentTable) throws {
    let ledger = try table.makeCounted()
    let known = try ledger.content(content) ?? ledger.make(content)
    var counted = known
    let count = ReplicaIdentity.byteCount
    counted.counts.insert(1, by: Array((Array(sender.utf8) + Array(repeating: 0, count: count)).prefix(count)))
    try ledger.write(counted, over: known)
    try ledger.note(counted, at: sender)
  }

  /// The counts that a diff states for a content; nil for a row with a key.
  private func stated(_ called: [OriginKeyRuns.Name]) -> CopyCounts? {
    let counts = called.compactMap { name in name.copies.map { (name.replica, $0) } }
    return counts.isEmpty ? nil : CopyCounts(Dictionary(counts) { first, _ in first })
  }

  /// The counts that a diff states, as far as the sender can know them: only who has got a row that was inserted here
  /// can tell that it was deleted.
  private func believed(
    _ stated: CopyCounts, of known: CountedTable.Content?, in ledger: CountedTable?
  ) throws -> CopyCounts {
    guard let own, let ledger, let known, let claim = stated.byOrigin[own],
      claim.deleted > known.counts.byOrigin[own]?.deleted ?? 0,
      try !shares.contains(where: { try ledger.isHeld(known, by: $0) })
    else { return stated }
    return CopyCounts(stated.byOrigin.filter { $0.key != own })
  }

  // MARK: Before

  /// Finds the rows that both the diff and this database have deleted.
  ///
  /// - Throws: `SQLiteError`, `ChangesetError`; `LedgerError` when the ledger is damaged.
  func look(at changes: IncomingChanges, _ naming: [RowNaming.Run]) throws {
    var runs = OriginKeyRuns(naming)
    try Changesets.forEachChange(of: changes.changeset, knowing: changes.feed.summary()) { change, reader, bytes in
      let called = runs.next()
      guard change.operation == .delete, let header = reader.table, let table = tables.table(of: header, reader.old),
        let stated = stated(called), stated.byOrigin.values.contains(where: { $0.deleted > 0 })
      else { return }
      let content = table.content(reader.old, bytes)
      guard var known = try table.counted()?.content(content) else { return }
      known.note(try table.counter.count(content), insertedBy: nil)
      guard stated.byOrigin.allSatisfy({ $1.deleted <= known.counts.byOrigin[$0]?.deleted ?? 0 }) else { return }
      deletedAlike[table.name, default: []].formUnion(table.hashesWithoutOneValue(of: content))
    }
  }

  /// The rows of an INSERT that this database has made by the same edit, and the other replica that has made them.
  ///
  /// - Parameters:
  ///   - known: The counts before the diff.
  ///   - counts: The counts with those of the diff.
  ///   - rows: The number of rows that were inserted here.
  private func rowsEditedAlike(
    _ content: [UInt8], in table: ContentTable, _ known: CopyCounts, _ counts: CopyCounts, insertedHere rows: Int64
  ) -> (rows: Int64, origins: Set<[UInt8]>) {
    guard rows > 0, let own, let deleted = deletedAlike[table.name],
      !deleted.isDisjoint(with: table.hashesWithoutOneValue(of: content)),
      let other = counts.byOrigin.keys.filter({ $0 != own && counts.present(of: $0) > known.present(of: $0) })
        .min(by: { $0.lexicographicallyPrecedes($1) })
    else { return (0, []) }
    return (min(rows, counts.present(of: other) - known.present(of: other)), [own, other])
  }

  /// Writes the INSERTs or DELETEs that a change means here.
  ///
  /// - Parameters:
  ///   - called: The counts in the diff.
  ///   - isWithdrawal: True if the row is withdrawn.
  /// - Returns: True if that is known; otherwise the change stays unchanged.
  /// - Throws: `SQLiteError`; `LedgerError` when the ledger is damaged.
  func write(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, _ header: ChangesetTable,
    _ called: [OriginKeyRuns.Name],
    isWithdrawal: Bool, into writer: inout ChangesetWriter
  ) throws -> Bool {
    let row = change.operation == .insert ? reader.new : reader.old
    guard change.operation != .update, let table = tables.table(of: header, row), let stated = stated(called) else {
      return false
    }
    let content = table.content(row, bytes)
    let rows = try table.counter.count(content)
    let ledger = try table.counted()
    let known = try ledger?.content(content)
    var counts = known?.counts ?? CopyCounts()
    var absent = known?.absent ?? 0
    var more = rows
    if let ledger, let known {
      // Local deletions are counted now: the next share then sends them.
      var noted = known
      more = noted.note(rows, insertedBy: nil)
      try ledger.write(noted, over: known)
      counts = noted.counts
    }
    let before = planned[table.name]?[content.hashValue] ?? rows
    var target: Int64
    if isWithdrawal {
      let isOthers = try known.map { try ledger?.holders(of: $0).subtracting([sender]).isEmpty == false } ?? false
      let stay = isOthers ? rows : more + (own.map { counts.present(of: $0) } ?? 0)
      target = max(min(before, stay), before - 1)
      withdrawn[table.name, default: [:]][content, default: 0] += before - target
    } else {
      let earlier = counts
      let stated = try believed(stated, of: known, in: ledger)
      counts.merge(stated, from: author, own: own, adding: max(0, before - rows) + Self.insertLimit)
      if change.operation == .insert {
        // The sender has made its rows without these.
        let unknown = own.map { max(0, earlier.present(of: $0) - stated.present(of: $0)) } ?? 0
        var alike = rowsEditedAlike(content, in: table, earlier, counts, insertedHere: more + unknown)
        // Those that are not counted yet need not be counted.
        let uncounted = min(alike.rows, more)
        more -= uncounted
        alike.rows -= uncounted
        counts.delete(alike.rows, of: alike.origins)
        if alike.rows > 0 { editedAlike[table.name, default: [:]][content] = alike }
      }
      // A refused row is tried again when it is sent again.
      if change.operation == .insert { absent = 0 }
      target = min(max(0, counts.present - absent) + more, before + Self.insertLimit)
    }
    if target != before { planned[table.name, default: [:]][content.hashValue] = target }
    for place in 0..<abs(target - before) {
      writer.beginChange(target > before ? .insert : .delete)
      // The sender does not know the values of columns that are hidden from it.
      if target < before, let row = try table.row(content, number: rows - before + place) {
        writer.append(encoded: row)
      } else {
        for value in row { writer.append(value, of: bytes) }
      }
    }
    return true
  }

  // MARK: Afterwards

  /// Records the counts of an applied change.
  ///
  /// - Parameters:
  ///   - called: The counts in the diff.
  ///   - isWithdrawal: True if the row is withdrawn.
  ///   - mayDiffer: True if rows may have been refused.
  ///   - shares: The shares with the sender; true for each that has no other recipients.
  /// - Returns: True for a row that only its content identifies.
  /// - Throws: `SQLiteError`; `LedgerError` when the ledger is damaged.
  func note(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, _ header: ChangesetTable,
    _ called: [OriginKeyRuns.Name],
    isWithdrawal: Bool, after before: ReceivedContents?, mayDiffer: Bool, in shares: [(number: Int64, isForOne: Bool)]
  ) throws -> Bool {
    let row = change.operation == .insert ? reader.new : reader.old
    guard let table = tables.table(of: header, row) else { return false }
    let content = table.content(row, bytes)
    guard let stated = stated(called) else {
      if change.operation == .insert { try noteUncounted(content, in: table) }
      return false
    }
    let ledger = try table.makeCounted()
    let known = try ledger.content(content) ?? ledger.make(content)
    var merged = known
    if !isWithdrawal {
      let stated = try believed(stated, of: known, in: ledger)
      merged.counts.merge(stated, from: author, own: own, adding: Self.insertLimit)
    }
    if let alike = before?.editedAlike[table.name]?.removeValue(forKey: content) {
      merged.counts.delete(alike.rows, of: alike.origins)
    }
    if change.operation == .insert { merged.absent = 0 }
    merged.absent += before?.withdrawn[table.name]?.removeValue(forKey: content) ?? 0
    if mayDiffer || table.mayConvert,
      let target = before?.planned[table.name]?.removeValue(forKey: content.hashValue)
    {
      merged.absent += try target - table.counter.count(content)
    }
    merged.absent = max(0, min(merged.absent, merged.counts.present))
    try ledger.write(merged, over: known)
    try ledger.note(merged, at: sender)
    // The next share sends the counts if the sender has others.
    guard !isWithdrawal else { return true }
    for share in shares {
      let notes = RowNotes(.unsent, of: table.name, for: share.number)
      let rows = min(stated.present, merged.counts.present + Self.insertLimit)
      // One recipient may have brought as many of them as there are here, and another one more or fewer.
      let others =
        try share.isForOne ? nil : notes.state(of: content, on: connection)?.hash.map { Int64(bitPattern: $0) }
      let isOther = others.map { $0 != merged.counts.present && (rows == merged.counts.present || $0 > rows) } ?? false
      try notes.note(content, isOther ? others ?? rows : rows, on: connection)
    }
    return true
  }
}

/// The rows of a share that only their content identifies. For each content, a diff states how many rows each replica
/// has inserted and how many of those are deleted, by which receivers know which rows they have already.
package final class SentContents {
  private let tables: ContentTables
  private let selections: [TableName: RowSelection]
  private let holder: String
  private let origin: [UInt8]
  private var inScope: [TableName: ContentCounter] = [:]
  /// The content that was used last, because equal rows are adjacent.
  private var last: (table: TableName, content: [UInt8], counts: CopyCounts)?

  /// The name for the recipients of a share as a holder.
  static func holder(of share: Int64) -> String { "share:\(share)" }

  /// - Parameters:
  ///   - definitions: The tables as they travel.
  ///   - share: The share.
  ///   - incarnation: The incarnation of this database.
  ///   - selections: The shared rows.
  ///   - schema: The schema of the database.
  /// - Throws: `SQLiteError`, `ReplicationError`.
  package init(
    _ definitions: [TableDefinition], of share: ShareEntry, by incarnation: [UInt8],
    _ selections: [TableName: RowSelection], _ schema: SchemaReader, on connection: borrowing SQLiteConnection
  ) throws {
    tables = try ContentTables(definitions, schema, needsRows: true, on: connection)
    self.selections = selections
    holder = Self.holder(of: share.number)
    origin = incarnation
  }

  /// True if no table of the diff has such rows.
  var isEmpty: Bool { tables.isEmpty }

  /// The fate of deleted rows that were not deleted here; nil for all others.
  ///
  /// They exist but are no longer shared, or another sender has withdrawn them.
  ///
  /// - Parameter receivers: The keys of a single recipient, who does not get back rows of their own; empty for several
  ///   recipients.
  /// - Throws: `SQLiteError`; `LedgerError` when the ledger is damaged.
  func fate(
    _ header: ChangesetTable, _ row: [ValueSlice], _ bytes: RawSpan, receivers: Set<String>
  ) throws -> DepartedRows.Fate? {
    guard let table = tables.table(of: header, row) else { return nil }
    let content = table.content(row, bytes)
    let rows = try table.counter.count(content)
    if rows > 0, let selection = selections[table.name] {
      let counter = inScope[table.name] ?? table.counter(in: selection)
      inScope[table.name] = counter
      if try counter.count(content) == 0 { return .departed }
    }
    guard let ledger = try table.counted(), let known = try ledger.content(content), known.absent > 0,
      known.counts.present > 0, rows + known.absent >= known.counts.present
    else { return nil }
    return try receivers.contains(where: { try ledger.isHeld(known, by: $0) }) ? .theirs : .departed
  }

  /// The counts for the content of a changed row, by inserting incarnation, with the insertions and deletions made here
  /// since the last share.
  ///
  /// - Returns: nil for a row with a key.
  /// - Throws: `SQLiteError`; `LedgerError` when the ledger is damaged.
  func counts(_ header: ChangesetTable, _ row: [ValueSlice], _ bytes: RawSpan) throws -> CopyCounts? {
    guard let table = tables.table(of: header, row) else { return nil }
    let row = table.content(row, bytes)
    if let last, last.table == table.name, last.content == row { return last.counts }
    let counts = try table.count(row, insertedBy: origin, heldBy: holder).stated
    last = (table.name, row, counts)
    return counts
  }
}

extension CountedTable.Content {
  /// Counts the insertions and deletions in the table since the last count.
  ///
  /// - Parameters:
  ///   - rows: The present number of rows.
  ///   - origin: The incarnation that has inserted new rows; nil to count deletions only.
  /// - Returns: The number of present rows beyond the counted ones.
  @discardableResult
  mutating func note(_ rows: Int64, insertedBy origin: [UInt8]?) -> Int64 {
    let more = rows + absent - counts.present
    if more < 0 {
      counts.delete(-more)
      return 0
    }
    guard let origin else { return more }
    // A refused row may have been accepted since.
    let taken = min(absent, more)
    absent -= taken
    if more > taken { counts.insert(more - taken, by: origin) }
    return 0
  }
}
