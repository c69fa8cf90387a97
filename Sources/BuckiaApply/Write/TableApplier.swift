import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Applies the changes of one table, one after the other.
///
/// The semantics are those of `sqlite3changeset_apply_v2` (<https://sqlite.org/session/sqlite3changeset_apply.html>):
/// an UPDATE or DELETE finds its row by the key and by every old value it has, a change that breaks a constraint is tried
/// again when the others of its table are done. Beyond them: columns are matched by name, rows of tables without a key
/// by rowid, rows
/// with NULL in the key by content, and values swapped under a UNIQUE constraint are resolved by parking.
final class TableApplier {
  /// A change that a constraint refused. It is tried again after the table's other changes.
  struct Refused {
    let refusal: SQLiteRefusal
    /// That the incoming version is wanted has been asked already.
    var isDecided = false
  }

  let writer: RowWriter
  let header: ChangesetTable
  let decider: ConflictDecider
  /// The clock of the table; nil for none.
  let clock: TableClock?
  /// True if the later of two diffs wins in the table, or in some column of it.
  let followsClock: Bool
  /// The rows with unsent edits; nil for none.
  let exposed: ExposedRows?
  /// The columns of the present change that a later diff has set.
  var later = ColumnMask()
  /// Collects colliding keys; nil if a conflict ends the work anyway.
  private let collisions: KeyCollisions?
  lazy var found = collisions?.found(in: statements, header)
  /// The known collisions of the table's changes; nil for most tables.
  private let known: KnownCollisions?
  /// The rows that the diff must not change, or only in part, because of references; nil for most tables.
  let staying: StayingRows?
  /// The rows whose INSERT waits for the table's other changes.
  private let waitingInserts: Set<RowIdentity>
  /// The values that the table stores unchanged; nil if SQLite itself refuses all others.
  private let storageRules: LosslessStorageRules?
  /// The columns in which rows that are here already stay as they are.
  let ignored: ColumnMask
  /// Rows whose INSERT the rules refuse: a DELETE of one is refused with it.
  private let unstorableRows: Set<RowIdentity>
  /// The layout of the table for conflicts.
  lazy var layout = decider.layout(of: statements)
  /// True if conflicts about rows of the table are open.
  private lazy var hasOpenConflicts = decider.hasOpenConflicts(of: statements.name)
  /// Finds blocking rows.
  lazy var blockingRows = BlockingRows(statements)
  /// A row that has lost a UNIQUE value, as a record of the local layout, and the key of the row that has it now.
  typealias GivenWay = (row: [UInt8], winner: ClockKeyRecord)
  /// The rows that have lost their place and are not yet repaired.
  var gaveWay: [GivenWay] = []
  /// Decides between rows with the same UNIQUE value; nil if the clock does not decide, or there can be none.
  private(set) lazy var uniqueParking = Result { () throws -> UniqueParking? in
    guard followsClock, let clock else { return nil }
    return try UniqueParking(writer, clock, blockingRows, exposing: exposed)
  }
  var deferred: [DeferredChange] = []
  /// Copies of the deferred changes, because the window that they were read from moves on.
  let deferredBytes: TemporaryBuffer
  /// A walk of the table, which finds the ends of changes.
  let walk: ChangeWalk
  /// The change in hand.
  let change: DecodedChange
  var batch: InsertBatch
  /// True if the conflict of the next attempt is decided for the incoming version.
  var isDecided = false
  /// True if the last INSERT met a row with its key: the next one then looks the row up first, unless a trigger would see
  /// the attempt.
  var expectsConflict = false
  /// The greatest rowid of written rows, and of rows that the author has inserted.
  private(set) var greatestRowID: Int64 = 0
  /// The greatest rowid that an INSERT may bring.
  private let rowIDLimit: Int64
  /// True if the database stores text as UTF-16, and the columns with text for which that has no room.
  private let storesUTF16: Bool
  private(set) var alteredText: Set<Int> = []

  /// - Parameters:
  ///   - match: How the columns of the changes meet those of the table.
  ///   - changeset: Where the changes come from; copies of deferred ones are kept alike.
  ///   - ignored: The names of the columns in which rows that are here already stay as they are.
  ///   - canBatch: True if several rows may go in with one statement: nothing of ours or of the application's may see the
  ///     difference.
  ///   - collisions: Collects colliding keys.
  ///   - known: The known collisions of the table's changes.
  ///   - staying: The rows that the diff must not change, or only in part, because of references.
  ///   - waitingInserts: The rows whose INSERT waits for the table's other changes.
  ///   - clock: The clock of the table; nil for none.
  ///   - exposed: The rows with unsent edits; nil for none.
  init(
    _ writer: RowWriter, _ match: TableMatch, header: ChangesetTable, of changeset: TemporaryBuffer,
    decider: ConflictDecider, _ collisions: KeyCollisions?, _ known: KnownCollisions?,
    staying: StayingRows? = nil, waiting waitingInserts: Set<RowIdentity>, clock: TableClock? = nil,
    exposing exposed: ExposedRows? = nil, ignoring ignored: [String] = [], canBatch: Bool, storesUTF16: Bool
  ) {
    var mask = ColumnMask()
    for (column, name) in match.columnNames.enumerated() where ignored.contains(where: { ASCIIName.matches($0, name) })
    {
      mask.insert(column)
    }
    self.ignored = mask
    self.clock = clock
    self.exposed = exposed
    followsClock = clock != nil && decider.usesLatest(for: writer.statements.name)
    self.collisions = followsClock ? nil : collisions
    self.known = known
    self.staying = staying
    self.waitingInserts = waitingInserts
    self.storesUTF16 = storesUTF16
    storageRules = LosslessStorageRules(match)
    unstorableRows = match.unstorableRows
    rowIDLimit = match.local.isAutoIncrement ? AutoIncrement.greatestIncomingID : .max
    self.writer = writer
    self.header = header
    self.decider = decider
    change = writer.change
    walk = ChangeWalk(0..<0, of: header)
    deferredBytes = changeset.makeEmpty()
    batch = InsertBatch(columns: header.columnCount, limit: canBatch ? writer.statements.batchLimit : 1)
  }

  var statements: TableStatements { writer.statements }

  /// The counts of the table's changes so far.
  var counts: ApplyCounts {
    get { writer.counts }
    set { writer.counts = newValue }
  }

  /// Applies a change, or keeps it for the next batch: `flush` must follow the last one in these bytes.
  func apply(_ place: ChangePlace, _ bytes: RawSpan) throws {
    if place.operation == .insert, batch.isUsed, waitingInserts.isEmpty, mayBatch {
      batch.add(place.start)
      if batch.isFull { try flush(bytes) }
      return
    }
    if !batch.isEmpty { try flush(bytes) }
    try applyAlone(place, bytes)
  }

  /// True if no INSERT can meet an entry of the clock.
  private var mayBatch: Bool { !followsClock || (exposed?.isAskedLate != false && clock?.isTrivial != false) }

  /// Applies a change, and defers it if a constraint refuses it.
  private func applyAlone(_ place: ChangePlace, _ bytes: RawSpan) throws {
    if let refused = try waits(place, bytes) ? Refused(refusal: .taken) : attempt(place, bytes) {
      deferred.append(DeferredChange(offset: deferredBytes.count, refused.refusal, isDecided: refused.isDecided))
      try deferredBytes.write(bytes.extracting(place.start..<walk.end(of: place, in: bytes)))
    }
  }

  /// True if a change waits for the table's other changes before it is tried.
  private func waits(_ place: ChangePlace, _ bytes: RawSpan) -> Bool {
    guard place.operation == .insert, !waitingInserts.isEmpty else { return false }
    change.read(place, in: bytes)
    return mustWait(bytes)
  }

  /// True if the INSERT in hand waits for as long as any change of the table is to be tried again.
  func mustWait(_ bytes: RawSpan) -> Bool {
    !waitingInserts.isEmpty && !writer.keepsMessages
      && waitingInserts.contains(RowIdentity(of: change, in: header, bytes))
  }

  /// Applies a deferred change, and defers it again if a constraint still refuses it.
  func retry(_ item: DeferredChange, _ place: ChangePlace, _ bytes: RawSpan) throws {
    if let refused = try attempt(place, bytes) {
      deferred.append(DeferredChange(offset: item.offset, refused.refusal, isDecided: refused.isDecided))
    }
  }

  /// Removes and returns the deferred changes. Those that fail again are deferred again.
  func takeDeferred() -> [DeferredChange] {
    defer { deferred = [] }
    return deferred
  }

  /// True if any trigger of the application fires on the table. Then it makes a difference how a row is replaced, or
  /// deleted and inserted again.
  private(set) lazy var hasTriggers = Result { try statements.hasTriggers() }

  /// Applies the INSERTs that wait for a batch to be full.
  func flush(_ bytes: RawSpan) throws {
    var next = 0
    while next < batch.count {
      let rows = batch.rows(from: next)
      if rows > 1 { next += try insert(rows, from: next, bytes) }
      // The rest of a refused batch begins with the refused row, or is inserted row by row anyway.
      guard next < batch.count, batch.rows(from: next) == 1 else { continue }
      let before = counts.inserted
      if let place = ChangePlace(at: batch.start(next), in: bytes) { try applyAlone(place, bytes) }
      batch.noteSingle(wasRefused: counts.inserted == before)
      next += 1
    }
    batch.removeAll()
  }

  /// The size from which on a row is inserted alone.
  private static let batchedRowLimit = 256 << 10

  /// Inserts several rows with one statement.
  ///
  /// - Returns: The number of inserted rows.
  private func insert(_ rows: Int, from first: Int, _ bytes: RawSpan) throws -> Int {
    let prepared = try statements.insert(rows: rows)
    let limit = min(Self.batchedRowLimit, statements.lengthLimit / 2)
    let storageRules = storageRules
    // Rows that are identified by their content have none, and get one.
    let needsRowID = !statements.match.local.isKeyedByRowID
    // Taken out of their objects: this is done for every value.
    let (columnCount, rowIDKey, rowIDLimit) = (statements.columnCount, statements.rowIDKey, rowIDLimit)
    let looksAtText = storesUTF16
    var greatest = greatestRowID
    defer { greatestRowID = greatest }
    var parameter = 0
    for index in first..<(first + rows) {
      var position = batch.start(index) + 2
      var size = 0
      for column in 0..<columnCount {
        let value = ValueSlice(verified: bytes, at: &position)
        size += value.count
        // SQLite does not report how many rows were inserted before one that is too large, or whose rowid is not an
        // integer. Rows that a virtual table would alter are not examined here either.
        let isRowID = column == rowIDKey
        if size > limit || (isRowID && value.kind != .integer && (needsRowID || value.kind != .null))
          || (isRowID && value.kind == .integer && value.integer(in: bytes) > rowIDLimit)
          || storageRules?.admits(value, at: column, in: bytes) == false
        {
          batch.noteRefusal(of: rows)
          return 0
        }
        if looksAtText { noteText(value, column, in: bytes) }
        if isRowID, value.kind == .integer {
          greatest = max(greatest, value.integer(in: bytes))
        }
        try prepared.statement.bind(value, in: bytes, at: parameter)
        parameter += 1
      }
    }
    let inserted = try writer.insert(prepared, starts: batch.starts(first..<(first + rows)), bytes)
    if inserted < rows { batch.noteRefusal(of: rows) }
    if let clock {
      let columns = columns
      for start in batch.starts(first..<(first + inserted)) {
        guard let place = ChangePlace(at: start, in: bytes) else { continue }
        change.read(place, in: bytes)
        try clock.rowVersion(columns, of: change, isNew: true, bytes)
      }
    }
    return inserted
  }

  /// Tries a change.
  ///
  /// - Returns: Why a constraint refuses it; nil if it was applied or decided as a conflict.
  func attempt(_ place: ChangePlace, _ bytes: RawSpan) throws -> Refused? {
    change.read(place, in: bytes)
    let (rowID, isInsert) = (rowID(in: bytes), change.operation == .insert)
    let written = counts.updated + counts.deleted
    defer {
      if let rowID, isInsert && rowID <= rowIDLimit || counts.updated + counts.deleted > written {
        greatestRowID = max(greatestRowID, rowID)
      }
    }
    if storesUTF16, change.operation != .delete {
      for column in 0..<statements.columnCount { noteText(change.new(column), column, in: bytes) }
    }
    if !ignored.isEmpty, try !isInsert || isHere(bytes) { change.leaveOut(ignored) }
    if let staying, try !keepReferences(staying, bytes) { return nil }
    if let exposed, !exposed.isAskedLate, let key = clock?.key(of: change, bytes) {
      if let uniqueParking = try uniqueParking.get() { try exposed.exposeAll(touching: uniqueParking.places) }
      try exposed.expose(key)
    }
    let conflicts = counts.conflicts
    let refused = try known.map { try attempt(bytes, beside: $0) } ?? attempt(bytes)
    if hasOpenConflicts, refused == nil, counts.conflicts == conflicts {
      decider.noteAgreement(change, layout, bytes)
    }
    return refused
  }

  /// The rowid that is the key of the present change; nil for other keys.
  private func rowID(in bytes: RawSpan) -> Int64? {
    guard let key = statements.rowIDKey, change.row(key).kind == .integer else { return nil }
    return change.row(key).integer(in: bytes)
  }

  /// True if the change in hand inserts a row that would use up the ids of the table.
  private func isExhausting(_ bytes: RawSpan) throws -> Bool {
    guard change.operation == .insert, let rowID = rowID(in: bytes), rowID > rowIDLimit, try !isHere(bytes) else {
      return false
    }
    if writer.keepsMessages {
      writer.refuse(
        "the id \(rowID) would use up the ids of table \(statements.name), whose AUTOINCREMENT gives out greater ones only"
      )
    }
    return true
  }

  /// Rolls an unsent edit of the changed row back to the version that the author last saw, if edits are looked up late.
  ///
  /// A resolver, rules and policies of columns decide about such rows themselves.
  ///
  /// - Returns: True if the row has changed.
  func exposeEdit(_ bytes: RawSpan) throws -> Bool {
    guard followsClock, let exposed, exposed.isAskedLate, layout.columnPolicies == nil,
      try decider.decidesByPolicyAlone(for: statements.name), let key = clock?.key(of: change, bytes),
      let edit = try exposed.edit(of: key)
    else { return false }
    return try exposed.expose(edit)
  }

  private func noteText(_ value: ValueSlice, _ column: Int, in bytes: RawSpan) {
    guard value.kind == .text, !value.survivesUTF16(in: bytes) else { return }
    alteredText.insert(column)
  }

  /// Tries a change that has been taken apart.
  func attempt(_ bytes: RawSpan) throws -> Refused? {
    if let storageRules, isAltering(storageRules, bytes) { return Refused(refusal: .altered) }
    if try isExhausting(bytes) { return Refused(refusal: .altered) }
    if let clock {
      if try clock.hasComeBefore(change, bytes), try change.operation == .delete || isHere(bytes) {
        counts.unchanged += 1
        return nil
      }
      if followsClock { later = try laterColumns(by: clock, bytes) }
    }
    switch change.operation {
    case .insert: return try insert(bytes)
    case .update: return try update(bytes)
    case .delete: return try delete(bytes)
    }
  }

  /// True if the row of the change in hand is here.
  private func isHere(_ bytes: RawSpan) throws -> Bool {
    let local = try writer.currentRow(bytes)
    defer { local?.release() }
    return local != nil
  }

  /// True if the table would alter a value of the change, or the change deletes a row that comes back with such a
  /// value.
  private func isAltering(_ storageRules: LosslessStorageRules, _ bytes: RawSpan) -> Bool {
    if let column = storageRules.refusedColumn(of: change, in: bytes) {
      if writer.keepsMessages { writer.refuse(storageRules.reason(ofRefusing: column)) }
      return true
    }
    guard change.operation == .delete, !unstorableRows.isEmpty,
      unstorableRows.contains(RowIdentity(of: change, in: header, bytes))
    else { return false }
    if writer.keepsMessages {
      writer.refuse("the row comes back with a value that a column of \(statements.name) would alter here, so it stays")
    }
    return true
  }
}

/// INSERTs that are collected and written together: one statement for several rows saves most of a statement's cost.
///
/// A batch ends at a row that a constraint refuses, and if many rows are refused, batches only cost time. Batching then
/// pauses, longer each time, until a whole pause has passed without a refusal.
struct InsertBatch {
  /// The most parameters of a statement: more rows gain nothing, and wide tables keep their statements short.
  private static let parameterLimit = 512
  /// The sizes of batches, the larger first. Few statements serve every number of rows.
  private static let sizes = [32, 8]
  /// The longest while without batches, in rows.
  private static let pauseLimit = 8_192

  private var starts: [Int] = []
  private let sizes: [Int]
  /// How many rows are inserted one by one before batching is tried again, and the length of the whole pause.
  private var pause = 0
  private var pauseLeft = 0
  private var isRefusing = false

  /// - Parameters:
  ///   - columns: The number of parameters for a row.
  ///   - limit: The most parameters that a statement may have; 1 for no batches at all.
  init(columns: Int, limit: Int) {
    sizes = Self.sizes.filter { $0 * columns <= min(limit, Self.parameterLimit) }
    starts.reserveCapacity(sizes.first ?? 0)
  }

  /// True if there are batches.
  var isUsed: Bool { !sizes.isEmpty }
  var isEmpty: Bool { starts.isEmpty }
  var isFull: Bool { starts.count == sizes[0] }
  var count: Int { starts.count }

  /// Adds the INSERT at an offset.
  mutating func add(_ start: Int) { starts.append(start) }

  func start(_ index: Int) -> Int { starts[index] }

  func starts(_ range: Range<Int>) -> ArraySlice<Int> { starts[range] }

  mutating func removeAll() { starts.removeAll(keepingCapacity: true) }

  /// The number of rows from an index on for the next statement.
  func rows(from index: Int) -> Int {
    guard pauseLeft == 0 else { return 1 }
    let left = starts.count - index
    return sizes.first { $0 <= left } ?? 1
  }

  /// Says that a batch was refused.
  mutating func noteRefusal(of rows: Int) {
    pause = min(max(2 * pause, rows), Self.pauseLimit)
    pauseLeft = pause
    isRefusing = false
  }

  /// Says that a row went in, or did not, by itself.
  mutating func noteSingle(wasRefused: Bool) {
    guard pauseLeft > 0 else { return }
    if wasRefused { isRefusing = true }
    pauseLeft -= 1
    guard pauseLeft == 0 else { return }
    if isRefusing { pauseLeft = pause } else { pause = 0 }
    isRefusing = false
  }
}
