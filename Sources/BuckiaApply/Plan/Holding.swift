import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Holds the unknown parts of a diff while it is applied, and updates parts that were held before.
struct Holding {
  /// The changes that are known here.
  let known: AdmittedChanges
  /// The keys of tables with held columns: values of changes that a conflict leaves out are not held.
  let keys: [TableName: RowKey]

  private let entry: Int64
  private let plan: SchemaPlan
  private let session: ApplySession
  private let store: HeldParts
  /// Tables of which earlier diffs have something kept.
  private let earlier: Set<TableName>

  /// Holds the unknown parts of a diff.
  ///
  /// - Parameters:
  ///   - admitted: The diff's changes.
  ///   - plan: How they fit the local schema.
  ///   - resumed: The held part of an earlier diff that the changes are; nil for a new diff.
  ///   - entry: The diff's ledger entry.
  init(
    _ admitted: AdmittedChanges, _ plan: SchemaPlan, resuming resumed: HeldPart?, entry: Int64, in session: ApplySession
  ) throws {
    self.entry = entry
    self.plan = plan
    self.session = session
    store = HeldParts(of: entry, on: session.connection)
    // Held columns never delete a row.
    earlier = try resumed?.isWhole == false ? [] : session.heldTables()
    guard !plan.held.isEmpty || resumed != nil else {
      known = admitted
      keys = [:]
      return
    }
    var defaults: [Int: [UInt8]]?
    if let resumed, !resumed.isWhole { defaults = try Self.defaults(of: resumed, plan, on: session.connection) }
    var split = HoldingSplit(plan.held, into: store, resumingFrom: defaults, of: admitted.changes.changeset)
    known = admitted.replaced(by: try split.run(admitted.changes))
    var keys: [TableName: RowKey] = [:]
    for table in try known.changes.feed.summary().tables {
      let name = TableName(table.table.name)
      if plan.held[name] != nil { keys[name] = RowKey(of: table.table) }
    }
    self.keys = keys
  }

  /// What rows hold in columns that an upgrade has given them, as changeset bytes by column of the changeset: the default,
  /// where it is known.
  private static func defaults(
    of part: HeldPart, _ plan: SchemaPlan, on connection: borrowing SQLiteConnection
  ) throws -> [Int: [UInt8]] {
    guard let local = plan.matches[TableName(part.table)]?.local else { return [:] }
    var defaults: [Int: [UInt8]] = [:]
    for index in part.columns {
      guard let place = local.column(named: part.definition.columns[index].name) else { continue }
      let column = local.columns[place]
      if column.hasExpressionDefault || column.defaultValue?.isTimeDependent == true { continue }
      var writer = ChangesetWriter()
      let literal = try AddedColumnValue.literal(of: column, isStrict: local.isStrict)
      try connection.forEachRow(of: "SELECT \(literal)") { writer.append(column: 0, of: $0) }
      defaults[index + part.definition.columnOffset] = writer.bytes
    }
    return defaults
  }

  /// Deletes obsolete held values, after the known changes have been applied.
  ///
  /// - Returns: The held parts of this diff.
  func finish(after decider: ConflictDecider) throws -> [HeldSummary] {
    for omission in decider.omissions {
      for change in try store.remove(omission.key, of: omission.table) {
        try record(change, omission, with: decider)
      }
    }
    let shrunk = try earlier.isEmpty ? [] : forgetRowsThatAreGone()
    try HeldParts.removeEmpty(store.emptyParts.union(shrunk), on: session.connection)
    let held = store.held.filter { $0.changes > 0 }
    session.noteHeld(held.map { TableName($0.table.definition.name) })
    return held.map { table, changes in
      HeldSummary(
        table: table.definition.name,
        columns: table.isWhole ? [] : table.columns.map { table.definition.columns[$0].name },
        changes: changes, reason: table.reason)
    }
  }

  /// Records the values of a left-out change in unknown columns.
  private func record(_ change: [UInt8], _ omission: ConflictDecider.Omission, with decider: ConflictDecider) throws {
    guard let held = plan.held[omission.table] else { return }
    let definition = held.definition
    let table = ChangesetTable(name: definition.name, keyFlags: definition.keyFlags)
    let columns = definition.keyIndexes.sorted() + held.columns.map { $0 + definition.columnOffset }
    var values = ChangesetWriter()
    change.withRawSpan { bytes in
      guard let place = ChangePlace(at: 0, in: bytes) else { return }
      let decoded = DecodedChange(of: table)
      decoded.read(place, in: bytes)
      for column in columns {
        values.append(table.isKey(column) ? decoded.row(column) : decoded.new(column), of: bytes)
      }
    }
    let names = definition.changesetColumns
    try decider.record(
      omission, columns: columns.map { names[$0] }, key: Set(definition.keyIndexes.indices), values: values.bytes)
  }

  /// Deletes held values of earlier diffs for rows that this diff has deleted. They must not be applied to a later row
  /// with the same key.
  ///
  /// - Returns: The parts that have lost changes.
  private func forgetRowsThatAreGone() throws -> Set<Int64> {
    var shrunk: Set<Int64> = []
    let summary = try known.changes.feed.summary()
    let sections = TableSections(summary, of: known.changes.changeset)
    for table in summary.tables where table.deleted > 0 {
      let name = TableName(table.table.name)
      guard earlier.contains(name), let match = plan.matches[name] else { continue }
      // Any of the matches can tell if the row exists.
      let statements = try session.statements(for: match, header: table.table)
      guard let select = try statements.selection.get().first else { continue }
      let key = RowKey(of: table.table)
      try sections.forEachChange(of: name) { change, bytes in
        guard change.operation == .delete, !change.hasNullKey else { return }
        try statements.bindKey(of: change, bytes, to: select)
        let isThere = try select.statement.step()
        select.statement.reset()
        if isThere { return }
        shrunk.formUnion(
          try HeldParts.remove(key.bytes(of: change, bytes), of: name, before: entry, on: session.connection))
      }
      select.statement.clearBindings()
    }
    return shrunk
  }
}

/// Splits the changes of a diff: the known parts are applied, the others are held in the database.
///
/// If some columns of a table are unknown, each change is split in two. The known columns stay a change of the same
/// kind. The values of an INSERT or UPDATE in unknown columns become an UPDATE of these alone; a DELETE has none. Rows
/// with NULL in the key cannot be split, and are held whole.
struct HoldingSplit {
  private let held: [TableName: HeldTable]
  private let store: HeldParts
  /// For held changes of columns: the values of rows in columns that an upgrade has added, as changeset bytes by
  /// column.
  private let defaults: [Int: [UInt8]]?
  private let known: TemporaryBuffer
  private var writer = ChangesetWriter()

  /// The number of bytes after which known changes go to the spool.
  private static let flushLimit = 1 << 20

  /// - Parameters:
  ///   - held: The unknown parts of tables.
  ///   - store: Stores the held parts.
  ///   - defaults: For held changes of columns: the values of rows in columns that an upgrade has added.
  ///   - changeset: The changes; the known ones have the same storage.
  init(
    _ held: [TableName: HeldTable], into store: HeldParts, resumingFrom defaults: [Int: [UInt8]]? = nil,
    of changeset: TemporaryBuffer
  ) {
    known = changeset.makeEmpty()
    self.held = held
    self.store = store
    self.defaults = defaults
  }

  /// Parts all changes.
  ///
  /// - Returns: The known changes, with their definitions.
  /// - Throws: `SQLiteError` when they cannot be kept, `ByteStreamError` when there is no room.
  mutating func run(_ incoming: IncomingChanges) throws -> IncomingChanges {
    let summary = try incoming.feed.summary()
    let window = ChangesetWindow(incoming.changeset)
    for section in summary.sections {
      let table = summary.tables[section.table].table
      guard let part = held[TableName(table.name)] ?? rest(of: table, incoming) else {
        try copy(section.changes, of: table, incoming.changeset)
        continue
      }
      try split(ChangeStretches(section.changes, of: table, in: window), of: table, part)
    }
    try flush()
    let definitions = incoming.definitions?.compactMap { definition -> TableDefinition? in
      guard let part = held[TableName(definition.name)] else { return definition }
      return part.isWhole ? nil : part.known
    }
    return try IncomingChanges(key: incoming.key, file: incoming.file, definitions: definitions, changeset: known)
  }

  /// Held changes of columns are always split, even if all columns are known now, because some need their old values.
  private func rest(of table: ChangesetTable, _ incoming: IncomingChanges) -> HeldTable? {
    guard defaults != nil else { return nil }
    return incoming.definition(of: TableName(table.name)).map { HeldTable([], of: $0, because: "") }
  }

  private mutating func flush() throws {
    try known.write(writer.bytes)
    writer.removeAll()
  }

  private mutating func copy(_ changes: Range<Int>, of table: ChangesetTable, _ changeset: TemporaryBuffer) throws {
    writer.beginTable(table)
    try flush()
    try changeset.forEachPiece(changes) { try known.write($0) }
  }

  private mutating func split(_ stretches: ChangeStretches, of table: ChangesetTable, _ part: HeldTable) throws {
    var stretches = stretches
    let isHeld = Self.mask(part.columns.map { $0 + part.definition.columnOffset }, of: table)
    let isKnown = isHeld.map { !$0 }
    let header = ChangesetTable(
      name: table.name, format: table.format,
      keyFlags: table.keyFlags.indices.filter { isKnown[$0] }.map { table.keyFlags[$0] })
    if !part.isWhole { writer.beginTable(header) }
    let change = DecodedChange(of: table)
    let key = RowKey(of: table)
    while try stretches.advance() {
      try stretches.window.withBytes { bytes in
        while let place = stretches.next(in: bytes) {
          change.read(place, in: bytes)
          // Only the whole content identifies a row with NULL in the key.
          if part.isWhole || change.hasNullKey && !part.columns.isEmpty {
            try store.add(bytes.array(place.start..<stretches.changeEnd), of: key.bytes(of: change, bytes), part, table)
            continue
          }
          let isIndirect = place.isIndirect(in: bytes)
          let pieces = ChangePieces(
            change: change, table: table, isIndirect: defaults == nil && isIndirect,
            comesOfInsert: defaults != nil && isIndirect)
          pieces.writeKnown(where: isKnown, defaults: defaults ?? [:], bytes, to: &writer)
          if let rest = pieces.held(where: isHeld, bytes) {
            try store.add(rest, of: key.bytes(of: change, bytes), part, table)
          }
          if writer.count > Self.flushLimit { try flush() }
        }
      }
    }
  }

  private static func mask(_ columns: [Int], of table: ChangesetTable) -> [Bool] {
    var mask = [Bool](repeating: false, count: table.columnCount)
    for column in columns { mask[column] = true }
    return mask
  }
}

/// One change, to be cut in two.
private struct ChangePieces {
  let change: DecodedChange
  let table: ChangesetTable
  let isIndirect: Bool
  /// True if the held change is a part of an INSERT.
  let comesOfInsert: Bool

  var isPatchset: Bool { table.format == .patchset }

  /// Writes the part of the change in known columns, if any.
  func writeKnown(where isKnown: [Bool], defaults: [Int: [UInt8]], _ bytes: RawSpan, to writer: inout ChangesetWriter) {
    let columns = isKnown.indices.filter { isKnown[$0] }
    switch change.operation {
    case .insert:
      writer.beginChange(.insert, isIndirect: isIndirect)
      for column in columns { writer.append(change.new(column), of: bytes) }
    case .delete:
      writer.beginChange(.delete, isIndirect: isIndirect)
      for column in columns where !isPatchset || table.isKey(column) { writer.append(change.old(column), of: bytes) }
    case .update:
      let defaults = comesOfInsert ? defaults : [:]
      let isSet = columns.map { column in
        change.new(column).isDefined && defaults[column] != bytes.array(change.new(column).encoded)
      }
      guard isSet.contains(true) else { return }
      writeUpdate(columns, setting: isSet, isIndirect: isIndirect, defaults: defaults, bytes, to: &writer)
    }
  }

  /// Writes an UPDATE of some columns.
  ///
  /// - Parameters:
  ///   - isSet: For each column, true if it gets its new value.
  ///   - defaults: Old values for columns whose old value the change does not have.
  private func writeUpdate(
    _ columns: [Int], setting isSet: [Bool], isIndirect: Bool, defaults: [Int: [UInt8]] = [:], _ bytes: RawSpan,
    to writer: inout ChangesetWriter
  ) {
    writer.beginChange(.update, isIndirect: isIndirect)
    if !isPatchset {
      for (place, column) in columns.enumerated() {
        if isSet[place], !change.old(column).isDefined, let value = defaults[column] {
          writer.append(encoded: value)
        } else if table.isKey(column) {
          writer.append(change.row(column), of: bytes)
        } else if isSet[place], change.operation == .update {
          writer.append(change.old(column), of: bytes)
        } else {
          writer.appendUndefined()
        }
      }
    }
    for (place, column) in columns.enumerated() {
      if isPatchset, table.isKey(column) {
        writer.append(change.row(column), of: bytes)
      } else if isSet[place] {
        writer.append(change.new(column), of: bytes)
      } else {
        writer.appendUndefined()
      }
    }
  }

  /// The part of the change in unknown columns, as an UPDATE of these; nil if there is none. An UPDATE that was made
  /// from an INSERT is marked as indirect, because its author saw no old values.
  func held(where isHeld: [Bool], _ bytes: RawSpan) -> [UInt8]? {
    guard change.operation != .delete else { return nil }
    let isSet = isHeld.indices.map { isHeld[$0] && change.new($0).isDefined }
    guard isSet.contains(true) else { return nil }
    var writer = ChangesetWriter()
    writeUpdate(
      Array(isHeld.indices), setting: isSet, isIndirect: change.operation == .insert || comesOfInsert, bytes,
      to: &writer)
    return writer.bytes
  }
}
