import SQLiteConnections

extension DatabaseManager {
  /// Records the app's own transactions as they happen; see ``ChangeRecorder``.
  public var recorder: ChangeRecorder { ChangeRecorder(of: self) }
}

/// Records the transactions of an app as they happen, for undo and redo, for a history with notes, and for diffs that
/// need no comparison.
///
/// SQLite's [session extension](https://sqlite.org/sessionintro.html) records the changes of rows while a closure runs.
/// They are stored in the ledger in the same transaction, as an entry of this database, so that neither is there without
/// the other. ``DatabaseManager/log(last:)`` lists these entries, and ``DatabaseManager/setUndoRetention(bytes:days:)``
/// limits how many changes are kept. In tables with a clock, the policy `latest` compares when a recorded change was made,
/// and not when it was shared.
///
/// ```swift
/// try DatabaseManager.borrowing(connection) { database in
///   try database.recorder.record("Rename album") { _ in try app.rename(album, to: "Summer") }
///   try database.recorder.undo()
/// }
/// ```
///
/// Not recorded are tables without a primary key, rows with NULL in it, tables with generated columns, and what is
/// written outside of ``record(_:_:)``, also by other programs. ``catchUp(with:)`` finds these changes.
public struct ChangeRecorder: Sendable {
  private let database: DatabaseManager

  fileprivate init(of database: DatabaseManager) { self.database = database }

  // MARK: Recording

  /// Runs a closure in a transaction, and records the changes that it makes.
  ///
  /// Inside a transaction of the app, it is a part of that. The closure must not change the definition of a table.
  ///
  /// - Parameters:
  ///   - note: What the change is, for people; at most 1,000 characters are kept.
  ///   - body: Changes rows on the given connection: that of a borrowed database, or one that is open during the call.
  /// - Returns: The value of the closure, and the recorded change; nil if no row has changed.
  /// - Throws: Whatever `body` throws; `BuckiaError` when the database cannot be written, or SQLite has no session
  ///   extension. Everything is rolled back then.
  @discardableResult
  public func record<Value>(
    _ note: String? = nil, _ body: (OpaquePointer) throws -> Value
  ) throws -> (value: Value, change: RecordedChange?) {
    try database.withWriter { connection in
      let transaction = try SQLiteTransaction(on: connection)
      try Ledger.prepare(on: connection)
      let session = try SQLiteSession(on: connection)
      let schema = try SchemaReader(connection)
      let tables = try schema.entries.filter { $0.kind == .table && Replicability.refusal(of: $0) == nil }
        .map { try schema.definition(of: $0) }.filter { !$0.isKeyedByRowID && $0.generated.isEmpty }
      for table in tables { try session.attach(table.name) }
      let value = try body(connection.pointer)
      let changes = TemporaryBuffer()
      let recorded = TemporaryBuffer(try session.changeset())
      try Changesets.sort(recorded, ChangesetSummary.of(recorded), into: changes)
      let file = LedgerEntry.recordedName + (note.map { ": \($0.prefix(1_000))" } ?? "")
      let change = try write(DatabaseDifference(changes, in: schema), as: file, on: connection)
      try transaction.commit()
      return (value, change)
    }
  }

  /// Writes changes that are in the database into the ledger.
  ///
  /// - Parameter file: The text in the place of a file's name.
  private func write(
    _ difference: DatabaseDifference, as file: String, on connection: borrowing SQLiteConnection
  ) throws -> RecordedChange? {
    guard !difference.changeset.isEmpty else { return nil }
    let bytes = try difference.changeset.allBytes()
    _ = try ReplicaRegistration(of: connection, in: database.home).settle(on: connection)
    let time = WallClock.unixMilliseconds
    let known = try LedgerProgress.knownIDs(on: connection)
    let id = try database.home.newIDs(after: known, unixSeconds: time / 1_000).ids[0]
    let number = try LedgerEntries.nextNumber(on: connection)
    let counts = ApplyCounts(
      inserted: difference.tables.reduce(0) { $0 + $1.inserted },
      updated: difference.tables.reduce(0) { $0 + $1.updated },
      deleted: difference.tables.reduce(0) { $0 + $1.deleted })
    try LedgerEntries.record(
      LedgerKey(sender: LedgerEntries.ownSender, id: id, digest: ContentDigest(of: bytes).bytes, isRaw: false),
      state: .applied, number: number, file: file, counts: counts, at: time, on: connection)
    let tables = difference.tables.map {
      AppliedEffects.Table(name: $0.definition.name, columns: $0.definition.changesetColumns)
    }
    let retention = try LedgerSettings.retention(on: connection)
    if bytes.count <= retention.byteLimit {
      try AppliedEffects.record(
        EffectBlock([EffectBlock.Piece(entry: number, .diff, of: tables, changes: bytes)]), on: connection)
      try AppliedEffects.prune(to: retention, at: time, on: connection)
    }
    let columns = Dictionary(tables.map { (TableName($0.name), $0.columns) }) { first, _ in first }
    try RowClocks.recordOwnVersions(difference.changeset, columns: columns, by: id, isRecorded: true, on: connection)
    return try changes(since: number - 1, on: connection).first
  }

  /// Records what was written outside of ``record(_:_:)`` since the last call, by comparing the database with a copy.
  ///
  /// The copy costs as much space as the database. An app calls this at its launch, and after other programs have written.
  /// Changes of tables without a key are among those that it finds.
  ///
  /// - Parameter path: The copy, which this call makes when there is none, and brings up to date.
  /// - Returns: The found changes; nil for none, and for a new copy.
  /// - Throws: `BuckiaError` when the database cannot be written, the changes of an entry since the copy are no longer
  ///   kept (`notKept`), a table has other columns than in the copy, or inside a transaction of the app. The copy stays
  ///   as it was then; without it, the next call begins anew.
  @discardableResult
  public func catchUp(with path: String) throws -> RecordedChange? {
    var found: RecordedChange?
    if FileSystem.exists(path) {
      found = try database.withWriter { connection in
        try database.requireOwnTransaction(or: "changes cannot be searched for", on: connection)
        let transaction = try SQLiteTransaction(on: connection)
        try Ledger.prepare(on: connection)
        let copy = try RowSource(opening: path)
        let last = try Ledger.exists(on: copy.connection) ? LedgerEntries.nextNumber(on: copy.connection) - 1 : 0
        let known = try joined(ofEntries: LedgerEntries.numbers(after: last, on: connection), on: connection)
        let now = RowSource(on: connection)
        let all = try DatabaseComparison.run(from: copy, to: now)
        guard let difference = try all.leavingOut(known, in: now) else {
          throw BuckiaError(
            .columnsDiffer, "a table has other columns than in \(path); delete that copy to begin anew",
            path: database.path)
        }
        let change = try write(difference, as: LedgerEntry.foundName, on: connection)
        try transaction.commit()
        return change
      }
      guard found != nil else { return nil }
    }
    _ = try database.backupDatabase(to: path)
    return found
  }

  // MARK: Reading

  /// The recorded changes, and their undos, the oldest first.
  ///
  /// - Parameter number: The number of the last change that is left out.
  /// - Throws: `BuckiaError` when the database cannot be read.
  public func changes(since number: Int64 = 0) throws -> [RecordedChange] {
    try database.withLedger(or: []) { try changes(since: number, on: $0) }
  }

  private func changes(since number: Int64, on connection: borrowing SQLiteConnection) throws -> [RecordedChange] {
    let query = """
      WITH RECURSIVE recorded(entry) AS (
        SELECT entry FROM main.buckia_ledger WHERE sender = ?1 AND (file = ?2 OR file LIKE ?2 || ': %' OR file = ?3)
        UNION SELECT u.entry FROM recorded AS r JOIN main.buckia_undo AS u ON u.undone = r.entry)
      SELECT l.entry, l.diff, l.recorded_at, l.file, l.inserted, l.updated, l.deleted,
        (SELECT diff FROM main.buckia_ledger WHERE entry = u.undone),
        EXISTS (SELECT 1 FROM main.buckia_undo AS a WHERE a.undone = l.entry AND a.is_active)
      FROM recorded AS r JOIN main.buckia_ledger AS l ON l.entry = r.entry
        LEFT JOIN main.buckia_undo AS u ON u.entry = l.entry
      WHERE l.entry > ?4 ORDER BY l.entry
      """
    return try connection.rows(
      ofCached: query, LedgerEntries.ownSender, LedgerEntry.recordedName, LedgerEntry.foundName, number
    ) { row in
      RecordedChange(
        id: KSUID(row.text(at: 1) ?? ""), number: row.integer(at: 0), recordedAt: row.integer(at: 2),
        file: row.text(at: 3) ?? "", undoes: row.text(at: 7).flatMap { KSUID($0) }, isUndone: row.integer(at: 8) != 0,
        inserted: Int(row.integer(at: 4)), updated: Int(row.integer(at: 5)), deleted: Int(row.integer(at: 6)))
    }.compactMap { $0 }
  }

  /// The recorded changes, and their undos, as one changeset, in which each row is changed at most once.
  ///
  /// - Parameter number: The number of the last change that is left out.
  /// - Throws: `BuckiaError` with `notKept` if one of the changes is no longer kept, and when the database cannot be read.
  public func changeset(since number: Int64 = 0) throws -> [UInt8] {
    try database.withLedger(or: []) { connection in
      try joined(ofEntries: changes(since: number, on: connection).map(\.number), on: connection).allBytes()
    }
  }

  /// Writes the recorded changes into a diff file, without comparing databases.
  ///
  /// - Parameters:
  ///   - number: The number of the last change that is left out.
  ///   - output: The destination of the file.
  ///   - identity: The signer of the file; nil for an unsigned one.
  /// - Returns: The changes and the written file; `id` is nil if there are none.
  /// - Throws: As ``changeset(since:)`` and ``DatabaseManager/createDatabaseDiff(since:output:options:signedBy:progress:)``.
  @discardableResult
  public func createDiff(
    since number: Int64 = 0, output: DiffOutput, signedBy identity: Identity? = nil
  ) throws -> DiffReport {
    let signer = try BuckiaError.wrapping { try identity.map { try ManifestSigner($0) } }
    return try database.withWriter { connection in
      try database.requireOwnTransaction(or: "a diff cannot be written", on: connection)
      let entries = try Ledger.exists(on: connection) ? changes(since: number, on: connection).map(\.number) : []
      let difference = try DatabaseDifference(joined(ofEntries: entries, on: connection), in: SchemaReader(connection))
      var report = DiffReport(difference, options: DiffOptions())
      if difference.isEmpty { return report }
      let source = RowSource(on: connection)
      try DatabaseManager.write(difference, kind: .delta, from: source, signer, to: output, database.home, &report)
      return report
    }
  }

  /// The changes of ledger entries as one changeset.
  private func joined(ofEntries numbers: [Int64], on connection: borrowing SQLiteConnection) throws -> TemporaryBuffer {
    var reader = EffectReader()
    let all = TemporaryBuffer()
    for number in numbers {
      let parts = try reader.parts(of: number, on: connection)
      guard !parts.isEmpty else {
        throw BuckiaError(
          .notKept,
          "the changes of entry \(number) of the ledger are no longer kept; compare with a copy of the database instead",
          path: database.path)
      }
      for part in parts { try all.write(part.changes) }
    }
    let joined = TemporaryBuffer()
    try Changesets.concatenate([all], into: joined)
    let sorted = TemporaryBuffer()
    try Changesets.sort(joined, ChangesetSummary.of(joined), into: sorted)
    return sorted
  }

  /// The earlier recorded changes that have changed some of the same rows as another one, the newest first.
  ///
  /// - Parameter change: That change.
  /// - Throws: `BuckiaError` when the database cannot be read.
  public func dependencies(of change: RecordedChange) throws -> [RecordedChange] {
    try database.withLedger(or: []) { connection in
      var reader = EffectReader()
      let rows = try rows(of: change, &reader, on: connection)
      return try changes(since: 0, on: connection).filter { other in
        try other.number < change.number && !rows.isDisjoint(with: self.rows(of: other, &reader, on: connection))
      }.reversed()
    }
  }

  /// The changed rows, each as the name of its table and its key.
  private func rows(
    of change: RecordedChange, _ reader: inout EffectReader, on connection: borrowing SQLiteConnection
  ) throws -> Set<[UInt8]> {
    var rows: Set<[UInt8]> = []
    for part in try reader.parts(of: change.number, on: connection) {
      try Changesets.forEachChange(of: TemporaryBuffer(part.changes)) { change, reader, bytes in
        guard let table = reader.table else { return }
        var writer = ChangesetWriter()
        writer.append(text: ASCIIName.folded(table.name))
        let row = change.operation == .insert ? reader.new : reader.old
        for (place, value) in row.enumerated() where table.isKey(place) { writer.append(value, of: bytes) }
        rows.insert(writer.bytes)
      }
    }
    return rows
  }

  // MARK: Undo and redo

  /// Undoes the last recorded change that is not undone.
  ///
  /// A column that was changed since, by a received diff or by another program, keeps its value, and a conflict is
  /// recorded, as by ``DatabaseManager/undo(_:options:)``.
  ///
  /// - Returns: The result; nil if there is nothing to undo.
  /// - Throws: As ``DatabaseManager/undo(_:options:)``.
  @discardableResult
  public func undo() throws -> UndoReport? {
    try takeBack(changes().last { $0.isOriginal && !$0.isUndone })
  }

  /// Redoes the change that was undone last, unless another one was recorded since.
  ///
  /// - Returns: The result, in which the undo is undone; nil if there is nothing to redo.
  /// - Throws: As ``DatabaseManager/undo(_:options:)``.
  @discardableResult
  public func redo() throws -> UndoReport? {
    let all = try changes()
    let originals = Set(all.filter(\.isOriginal).map(\.id))
    let last = all.last { $0.isOriginal }?.number ?? 0
    return try takeBack(
      all.last { change in
        !change.isUndone && change.number > last && change.undoes.map { originals.contains($0) } ?? false
      })
  }

  private func takeBack(_ change: RecordedChange?) throws -> UndoReport? {
    try change.map { try database.undo([.diff($0.id.description)]) }
  }
}

/// A change of rows that ``ChangeRecorder`` has recorded, or the undo of one.
public struct RecordedChange: Hashable, Codable, Identifiable, Sendable {
  /// The id of its entry in the ledger, which ``UndoSubject/diff(_:)`` takes.
  public let id: KSUID
  /// The number of the entry. Later changes have greater numbers, and received diffs have numbers of the same sequence.
  public let number: Int64
  /// When it was recorded, in milliseconds since 1970.
  public let recordedAt: Int64
  /// What the change is, for people; nil for none, and for found changes and undos.
  public let note: String?
  /// True if ``ChangeRecorder/catchUp(with:)`` has found the change, which was made outside of the recorder.
  public let isFound: Bool
  /// The change that this one undoes; nil for none.
  public let undoes: KSUID?
  /// True if the change has been undone.
  public let isUndone: Bool
  /// The number of inserted rows.
  public let inserted: Int
  /// The number of updated rows.
  public let updated: Int
  /// The number of deleted rows.
  public let deleted: Int

  /// True for a change of the app's, which is neither found nor an undo.
  var isOriginal: Bool { !isFound && undoes == nil }

  fileprivate init?(
    id: KSUID?, number: Int64, recordedAt: Int64, file: String, undoes: KSUID?, isUndone: Bool, inserted: Int,
    updated: Int, deleted: Int
  ) {
    guard let id else { return nil }
    self.id = id
    self.number = number
    self.recordedAt = recordedAt
    self.undoes = undoes
    self.isUndone = isUndone
    self.inserted = inserted
    self.updated = updated
    self.deleted = deleted
    isFound = undoes == nil && file == LedgerEntry.foundName
    note = undoes == nil && !isFound ? LedgerEntry.note(in: file) : nil
  }
}
