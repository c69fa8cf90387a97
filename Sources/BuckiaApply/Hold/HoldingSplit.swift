import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Parts the changes of a diff: what is known here goes on to be applied, the rest into the database to be kept.
///
/// Of a table that is partly known each change is cut in two. The known columns stay a change of its kind. What an INSERT or
/// UPDATE says of unknown columns becomes an UPDATE of these alone; a DELETE has nothing to keep. Rows with NULL in the key cannot be
/// cut, and are kept whole.
struct HoldingSplit {
  private let held: [TableName: HeldTable]
  private let store: HeldParts
  /// Where the changes are held ones of columns: what a row has in a column since an upgrade has added that, as changeset
  /// bytes by column.
  private let defaults: [Int: [UInt8]]?
  private let known: TemporaryBuffer
  private var writer = ChangesetWriter()

  /// From how many bytes on the known changes go into the spool.
  private static let flushLimit = 1 << 20

  /// - Parameters:
  ///   - held: What is unknown of which table.
  ///   - store: Takes it.
  ///   - defaults: For changes that are held ones of columns: what rows have in columns that an upgrade has added.
  ///   - changeset: The changes; the known ones are kept alike.
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
  /// - Returns: The known ones, with the definitions that go with them.
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

  /// Of kept changes of columns all are cut, even where nothing is unknown any more: some have old values to be filled in.
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
    let offset = part.definition.isKeyedByRowID ? 1 : 0
    let isHeld = Self.mask(part.columns.map { $0 + offset }, of: table)
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
          // Only all of its content tells a row with NULL in the key apart: half of it would be any row.
          if part.isWhole || change.hasNullKey && !part.columns.isEmpty {
            try store.add(bytes.array(place.start..<stretches.changeEnd), of: key.bytes(of: change, bytes), part, table)
            continue
          }
          let isIndirect = place.isIndirect(in: bytes)
          let pieces = ChangePieces(
            change, of: table, isIndirect: defaults == nil && isIndirect,
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
  private let change: DecodedChange
  private let table: ChangesetTable
  private let isIndirect: Bool
  /// Whether it is what was kept of an INSERT.
  private let comesOfInsert: Bool

  init(_ change: DecodedChange, of table: ChangesetTable, isIndirect: Bool, comesOfInsert: Bool) {
    self.change = change
    self.table = table
    self.isIndirect = isIndirect
    self.comesOfInsert = comesOfInsert
  }

  private var isPatchset: Bool { table.format == .patchset }

  /// Writes what the change does to known columns, if anything.
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
  ///   - isSet: For each of the columns whether it gets its new value.
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

  /// What the change says of unknown columns, as an UPDATE of these; nil when it says nothing. One made from an INSERT is
  /// marked as indirect: its author saw no old values.
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
