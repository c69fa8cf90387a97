import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The colliding keys of one diff while it is applied: keys that belong to one row at the author and to another here.
final class KeyCollisions {
  /// The rows that are left out, and those that refer to them.
  let refused: RefusedRows
  /// The keys that the sender contests.
  let contested: ContestedKeys
  /// True if new contests are written down.
  private let recordsContests: Bool
  /// True if any key was contested when this diff began: most databases have none, and nothing has to be looked up.
  private let hadContests: Bool
  private let session: ApplySession
  private var referredPlaces: [TableName: [Int]] = [:]

  /// - Parameter recordsContests: True if new contests are written down.
  init(refused: RefusedRows, contested: ContestedKeys, recordsContests: Bool, in session: ApplySession) throws {
    self.refused = refused
    self.contested = contested
    self.recordsContests = recordsContests
    self.session = session
    hadContests = try session.keepsLedger && ContestedKeys.exist(on: session.connection)
  }

  /// What the changes of a table may meet; nil for most.
  func known(of statements: TableStatements, _ header: ChangesetTable) throws -> KnownCollisions? {
    let areReferred = refused.areReferred(by: TableName(header.name))
    guard hadContests || contested.hasGrown || areReferred else { return nil }
    var links: [ReferenceLink] = []
    if hadContests {
      links = try ReferenceLink.all(of: statements.match, in: session.schema()).compactMap { link in
        guard try contested.exist(in: TableName(link.parent.name)) else { return nil }
        return link.inKeyOrder
      }
    }
    let isContested = try (hadContests || contested.hasGrown) && contested.exist(in: statements.name)
    guard areReferred || isContested || !links.isEmpty else { return nil }
    return KnownCollisions(
      refused, contested, statements, header, areReferred: areReferred, isContested: isContested,
      contestedParents: links, session)
  }

  /// The places in the layout of a table that foreign keys refer to.
  func referredPlaces(of table: TableDefinition) throws -> [Int] {
    let name = TableName(table.name)
    if let known = referredPlaces[name] { return known }
    let children = try session.references().children(of: name)
    let schema = try session.schema()
    var places: Set<Int> = []
    for child in children {
      for key in try schema.table(named: child)?.foreignKeys ?? [] where TableName(key.parent) == name {
        places.formUnion(table.columns(referredToBy: key).map { $0 + table.columnOffset })
      }
    }
    let found = places.sorted()
    referredPlaces[name] = found
    return found
  }

  /// What the conflicts of a table's INSERTs mean for others.
  func found(in statements: TableStatements, _ header: ChangesetTable) -> FoundCollisions {
    FoundCollisions(self, contested: recordsContests ? contested : nil, statements, header)
  }
}

extension ReferenceLink {
  /// The foreign key with its columns in the order of the parent's key; nil if it refers to other columns.
  fileprivate var inKeyOrder: ReferenceLink? {
    guard parentColumns.count == parent.primaryKey.count else { return nil }
    let order = parent.primaryKey.compactMap { parentColumns.firstIndex(of: $0) }
    guard order.count == parentColumns.count else { return nil }
    return ReferenceLink(
      child: child, parent: parent, parentColumns: parent.primaryKey, childColumns: order.map { childColumns[$0] })
  }
}

/// What the changes of one table are known to meet before they are tried: keys that the sender contests, and rows that were left
/// out.
final class KnownCollisions {
  private let refused: RefusedRows
  private let contested: ContestedKeys
  private let statements: TableStatements
  private let header: ChangesetTable
  private let key: RowKey
  private let session: ApplySession
  /// True if rows of the table refer to rows of the diff that were left out.
  private let areReferred: Bool
  /// True if keys of the table are contested.
  private let isContested: Bool
  /// The foreign keys to tables with contested keys.
  private let contestedParents: [ReferenceLink]
  private var keyColumns: [TableName: [String]] = [:]

  init(
    _ refused: RefusedRows, _ contested: ContestedKeys, _ statements: TableStatements, _ header: ChangesetTable,
    areReferred: Bool,
    isContested: Bool, contestedParents: [ReferenceLink], _ session: ApplySession
  ) {
    self.refused = refused
    self.contested = contested
    self.statements = statements
    self.header = header
    self.areReferred = areReferred
    self.isContested = isContested
    self.contestedParents = contestedParents
    self.session = session
    key = RowKey(of: header)
  }

  // MARK: Parents that are not here

  /// Why an INSERT or UPDATE would make its row refer to another than its author means, as a sentence; nil if it would not.
  ///
  /// - Returns: Also true if the row would refer to nothing: what becomes of it is decided and recorded with all
  ///   broken references.
  func missingParent(of change: DecodedChange, _ bytes: RawSpan) throws -> (reason: String, isNothing: Bool)? {
    if areReferred, let parent = try refused.parent(of: key.identity(of: change, bytes), in: header.name) {
      let because =
        switch parent.cause {
        case .keyTaken?: "because another row with this key is here"
        case .constraint?: "because a constraint refuses it"
        case nil: "too"
        }
      let comma = parent.cause == nil ? "," : ""
      return (
        "it refers to \(try name(of: parent.key, parent.table)), which was left out\(comma) \(because)",
        try refersToNothing(change, bytes, in: parent.table)
      )
    }
    for link in contestedParents {
      guard let values = try link.values(of: change, bytes, statements) else { continue }
      let table = TableName(link.parent.name)
      guard try contested.contains(values.record, of: table, for: .reference) else { continue }
      return (
        "it refers to \(try name(of: values.record, table)) of its sender, and another row with this key is here",
        try refersToNothing(change, bytes, in: table)
      )
    }
    return nil
  }

  /// True if no row of a table is here to which a changed row would refer.
  private func refersToNothing(_ change: DecodedChange, _ bytes: RawSpan, in parent: TableName) throws -> Bool {
    let schema = try session.schema()
    let child = statements.match.local
    for key in child.foreignKeys where TableName(key.parent) == parent {
      guard let check = try ForeignKeyCheck(key, of: child, in: schema, session) else { return false }
      let columns = check.referring(in: statements.match).compactMap { $0 }
      guard columns.count == check.childColumns.count else { return false }
      let link = ReferenceLink(
        child: TableName(child.name), parent: check.parent, parentColumns: check.parentColumns, childColumns: columns)
      if let values = try link.values(of: change, bytes, statements),
        try check.parentKey(of: values.record) != nil
      {
        return false
      }
    }
    return true
  }

  private func name(of key: [UInt8], _ table: TableName) throws -> RowName {
    RowName(table: table.text, columns: try keyColumns(of: table), values: try ChangesetValue.record(key))
  }

  private func keyColumns(of table: TableName) throws -> [String] {
    if let known = keyColumns[table] { return known }
    let schema = try session.schema()
    let definition = try schema.entry(named: table).map { try schema.definition(of: $0) }
    let names = definition.map { definition in definition.keyIndexes.map { definition.changesetColumns[$0] } } ?? []
    keyColumns[table] = names
    return names
  }

  /// Says that a row is written although it refers to one that was left out.
  func take(_ change: DecodedChange, _ bytes: RawSpan) throws {
    if areReferred { try refused.take(key.identity(of: change, bytes), in: header.name) }
  }

  // MARK: Contested keys

  /// True if the sender means another row by the key of a change than the local one.
  func isContested(_ change: DecodedChange, _ bytes: RawSpan) throws -> Bool {
    guard isContested, !change.hasNullKey else { return false }
    return try contested.contains(key.bytes(of: change, bytes), of: statements.name, for: .change)
  }

  /// Says that a key means one row to both sides from now on, or none here.
  func endContest(_ change: DecodedChange, _ bytes: RawSpan) throws {
    try contested.remove(key.bytes(of: change, bytes), of: statements.name)
  }
}

/// What the conflicts of one table's INSERTs mean for others: rows that refer to either row, and what the author sends later.
final class FoundCollisions {
  private let refused: RefusedRows
  /// The keys that the sender contests; nil if new ones are not written down.
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

  /// Records a row whose INSERT is left out, if others may refer to it.
  func noteRefused(_ change: DecodedChange, _ bytes: RawSpan, _ cause: RefusedRows.Cause) throws {
    guard try !referredPlaces.get().isEmpty else { return }
    try refused.note(key.identity(of: change, bytes), of: header.name, cause)
  }

  /// Records a local row that is replaced by another, if others may refer to it.
  func noteReplaced(_ local: CurrentRow) throws {
    let places = try referredPlaces.get()
    guard !places.isEmpty else { return }
    try refused.note(replaced: local.copied().record(of: places), of: statements.name)
  }

  /// Records that the sender's row with a key is not the local one.
  ///
  /// - Parameter isTaken: True if the sender's row is the local one from now on.
  func noteContested(_ change: DecodedChange, _ bytes: RawSpan, isTaken: Bool) throws {
    guard let contested, !change.hasNullKey else { return }
    try contested.add(key.bytes(of: change, bytes), of: statements.name, isTaken: isTaken)
  }
}

/// Applies changes whose key, or the key that they refer to, belongs to another row here than at the author.
extension TableApplier {
  /// The message for a change that means another row than the local one.
  private static let isOfAnotherRow = Array(
    "its sender means another row: one with this key arrived before, and a different row with this key is here".utf8)

  /// Applies a change of a table that is known to have such changes.
  func attempt(_ bytes: RawSpan, beside known: KnownCollisions) throws -> Refused? {
    if change.operation != .delete, let (reason, isNothing) = try known.missingParent(of: change, bytes) {
      return try attempt(bytes, withoutParent: reason, isNothing: isNothing, known)
    }
    // Under the policy `latest`, a key means the same row at every replica.
    guard try !followsClock && known.isContested(change, bytes) else { return try attempt(bytes) }
    return change.operation == .insert ? try insertContested(bytes, known) : try changeContested(bytes, known)
  }

  /// Settles a change whose row would refer to another row than its author means. It is a conflict even if a local row
  /// equals it.
  ///
  /// - Parameter isNothing: True if the row would refer to nothing.
  private func attempt(
    _ bytes: RawSpan, withoutParent reason: String, isNothing: Bool, _ known: KnownCollisions
  ) throws -> Refused? {
    let local = try writer.currentRow(bytes)
    let incident = ConflictIncident(kind: .foreignKey, change: change, local: local, message: Array(reason.utf8))
    switch try resolve(incident, bytes) {
    case .write(let values):
      defer { local?.release() }
      return try write(values, incident, bytes)
    case .keepLocal, .merge:
      defer { local?.release() }
      try record(incident, .keptLocal, bytes)
      return nil
    case .takeIncoming:
      if !isNothing { try record(incident, .tookIncoming, bytes) }
      local?.release()
      // The conflict is decided once, even if a constraint postpones the change.
      try known.take(change, bytes)
      return try attempt(bytes)
    }
  }

  /// If the local row was deleted, the key is free for the author's row.
  private func insertContested(_ bytes: RawSpan, _ known: KnownCollisions) throws -> Refused? {
    let before = counts
    let refused = try attempt(bytes)
    if counts.inserted > before.inserted, counts.conflicts == before.conflicts { try known.endContest(change, bytes) }
    return refused
  }

  /// Settles an UPDATE or DELETE of a missing row whose key another row has.
  private func changeContested(_ bytes: RawSpan, _ known: KnownCollisions) throws -> Refused? {
    guard change.operation == .delete || !change.changed.isEmpty else { return try attempt(bytes) }
    guard let local = try writer.currentRow(bytes) else {
      try known.endContest(change, bytes)
      return try attempt(bytes)
    }
    defer { local.release() }
    var incident = ConflictIncident(kind: .data, change: change, local: local, message: Self.isOfAnotherRow)
    incident.isOfAnotherRow = true
    let written = counts.updated + counts.deleted
    let refused = try resolveChanged(incident, bytes) {
      change.operation == .update
        ? try writer.update(bytes, guardedBy: .none) : try writer.delete(bytes, guardedBy: .none)
    }
    // When the incoming version was taken, or its author's row is no more, the key means one row.
    let isOver = counts.updated + counts.deleted > written || (change.operation == .delete && refused == nil)
    if isOver { try known.endContest(change, bytes) }
    return refused
  }

  /// Records the consequences of an INSERT's conflict for other rows.
  func noteCollision(
    _ incident: ConflictIncident, _ outcome: ConflictOutcome, _ bytes: RawSpan, in found: FoundCollisions
  ) throws {
    // A row that both sides made alike is one row.
    if let local = incident.local, decider.asksAboutEverything, holdsNew(local, bytes) { return }
    switch outcome {
    case .keptLocal, .merged, .omitted:
      if incident.kind != .foreignKey {
        try found.noteRefused(change, bytes, incident.kind == .constraint ? .constraint : .keyTaken)
      }
      if incident.local != nil { try found.noteContested(change, bytes, isTaken: false) }
    case .tookIncoming:
      guard incident.kind == .conflict, let local = incident.local else { return }
      try found.noteReplaced(local)
      try found.noteContested(change, bytes, isTaken: true)
    case .resolved, .reported: break
    }
  }
}

/// Finds the keys that the rows of a refused file share with other local rows.
///
/// Nothing of the file is applied, but its author continues to change those rows, and a later file with only such
/// changes would reach the local ones. A conflict stops the file at its first; all contested keys are recorded.
extension ApplySession {
  /// Looks up the key of each INSERT, and records those that another row has.
  ///
  /// - Throws: `SQLiteError`, `ByteStreamError`, `ChangesetError`.
  func noteCollisions(of changes: IncomingChanges) throws {
    let summary = try changes.feed.summary()
    let renames = try renames(of: changes.key.sender, and: changes.renames)
    let plan =
      try changes.definitions.map {
        try SchemaPlan(definitions: $0, mode: .hold, renames: renames, local: schema())
      } ?? SchemaPlan(positional: summary.tables.map(\.table), local: schema())
    let contested = ContestedKeys(of: changes.key.sender, entry: 0, on: connection)
    let sections = TableSections(summary, of: changes.changeset)
    for table in summary.tables where table.inserted > 0 {
      let name = TableName(table.table.name)
      // The columns of a partly unknown table are not those of the changes.
      guard let match = plan.matches[name], plan.held[name] == nil, match.local.module == nil else { continue }
      let statements = try statements(for: match, header: table.table)
      let key = RowKey(of: table.table)
      let columns = Array(0..<statements.columnCount)
      try sections.forEachChange(of: name) { change, bytes in
        guard change.operation == .insert, let local = try statements.copyOfRow(of: change, bytes),
          !local.holds(columns, of: change, bytes, match)
        else { return }
        try contested.add(key.bytes(of: change, bytes), of: statements.name, isTaken: false)
      }
    }
    try contested.flush()
  }
}
