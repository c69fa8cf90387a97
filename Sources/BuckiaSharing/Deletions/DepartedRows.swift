import BuckiaApply
import BuckiaBytes
import BuckiaDiff
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Which deletions of a share are of rows that nobody has deleted: they have only left its scope, or went here because somebody else does
/// not share them any more, or because a diff was taken back.
package struct DepartedRows {
  /// What a change is.
  package enum Fate: Sendable {
    /// Somebody has made it.
    case edit
    /// The row is not shared any more.
    case departed
    /// The row is not shared any more, and its receiver has brought it here.
    case theirs
  }

  /// How many neighbouring changes have the same fate, in the order of the changeset.
  package private(set) var runs: [(count: Int64, fate: Fate)] = []
  /// How many rows of each table have departed.
  package private(set) var counts: [TableName: Int] = [:]

  /// Looks up the rows that a changeset deletes.
  ///
  /// - Parameters:
  ///   - changeset: The changes from what was shared to what is.
  ///   - definitions: Its tables.
  ///   - share: The share.
  ///   - readers: The keys with which its recipients sign.
  ///   - propagates: True if rows that went here because of somebody else, or of an undo, count as deleted.
  ///   - contents: The rows that only their content identifies.
  ///   - schema: The schema of the database.
  /// - Throws: `SQLiteError`, `ChangesetError`, `ByteStreamError`.
  package init(
    in changeset: TemporaryBuffer, of definitions: [TableDefinition], _ share: ShareEntry,
    readBy readers: Set<String>, propagating propagates: Bool, _ contents: SentContents, _ schema: SchemaReader,
    on connection: borrowing SQLiteConnection
  ) throws {
    let connection = SQLiteConnection(sharing: connection)
    let tables = try KeyedTables(definitions, schema)
    let vouchers = Vouchers(on: connection)
    // Unsigned diffs are those of a recipient only where the recipient has acknowledged the share.
    let acknowledging = try AcknowledgementEntry.all(of: share.number, on: connection).map(\.sender)
    let receivers = try share.isForOne() ? readers.subtracting([RecipientKey.unknown]).union(acknowledging) : []
    try Changesets.forEachChange(of: changeset) { change, reader, bytes in
      var fate = Fate.edit
      if change.operation == .delete, let table = reader.table.flatMap({ tables.table(of: $0) }),
        table.hasKey(reader.old)
      {
        let key = table.key(reader.old, bytes)
        if try table.finds(table.exactLookup, reader.old, bytes, on: connection)
          || !propagates && TakenBackRows.contains(key, of: table.name, for: share.number, on: connection)
        {
          let isTheirs = try vouchers.brought(reader.old, bytes, of: table, by: receivers)
          fate = isTheirs ? .theirs : .departed
          if !isTheirs { counts[table.name, default: 0] += 1 }
        }
      } else if change.operation == .delete, let header = reader.table,
        let found = try contents.fate(header, reader.old, bytes, receivers: receivers)
      {
        fate = found
        if fate == .departed { counts[TableName(header.name), default: 0] += 1 }
      }
      if let last = runs.indices.last, runs[last].fate == fate {
        runs[last].count += 1
      } else {
        runs.append((1, fate))
      }
    }
  }

  /// Which changes are not sent.
  ///
  /// - Parameter keeps: True if rows that have departed stay where they are.
  package func leftOut(keeping keeps: Bool) -> [(count: Int64, isLeftOut: Bool)] {
    runs.map { ($0.count, $0.fate == .theirs || keeps && $0.fate == .departed) }
  }

  /// Which of the changes that are sent withdraw a row.
  ///
  /// - Parameter keeps: True if rows that have departed stay where they are.
  package func withdrawals(keeping keeps: Bool) -> [(count: Int64, isWithdrawal: Bool)] {
    runs.filter { $0.fate == .edit || !keeps && $0.fate == .departed }.map { ($0.count, $0.fate == .departed) }
  }
}

/// Goes through the withdrawals of a diff, change by change.
struct WithdrawalRuns {
  private let runs: [(count: Int64, isWithdrawal: Bool)]
  private var index = 0
  private var place: Int64 = 0

  init(_ runs: [(count: Int64, isWithdrawal: Bool)]) { self.runs = runs }

  /// True if the next change is a withdrawal.
  mutating func next() -> Bool {
    while index < runs.count, place == runs[index].count {
      index += 1
      place = 0
    }
    guard index < runs.count else { return false }
    place += 1
    return runs[index].isWithdrawal
  }
}

/// Deletions that a comparison with a shadow finds of rows which are there, and left out of the share because a reference of theirs dangles.
///
/// They are not sent, neither as deletions nor as withdrawals, and the shadow keeps the rows: a row that was sent stays at the receivers as it
/// was sent last, until it is mended.
package struct HeldDeletions {
  private let changeset: TemporaryBuffer
  /// Neighbouring changes, and whether they are such deletions.
  private var runs: [(count: Int64, isLeftOut: Bool)] = []

  /// Looks up the rows that a difference deletes.
  ///
  /// - Throws: `SQLiteError`, `ChangesetError`, `ByteStreamError`.
  package init(
    in difference: DatabaseDifference, leavingOut rows: ScopeRows, _ schema: SchemaReader,
    on connection: borrowing SQLiteConnection
  ) throws {
    changeset = difference.changeset
    guard !rows.leftOutPlaces.isEmpty else { return }
    let connection = SQLiteConnection(sharing: connection)
    let definitions = difference.tables.map(\.definition)
    let tables = try KeyedTables(definitions, schema)
    var lookups: [TableName: LeftOutLookup] = [:]
    for definition in definitions {
      let name = TableName(definition.name)
      lookups[name] = try LeftOutLookup(of: definition, tables[name], rows, on: connection)
    }
    try Changesets.forEachChange(of: changeset) { change, reader, bytes in
      var isLeftOut = false
      if change.operation == .delete, let lookup = reader.table.flatMap({ lookups[TableName($0.name)] }) {
        isLeftOut = try lookup.finds(reader.old, bytes, on: connection)
      }
      if let last = runs.indices.last, runs[last].isLeftOut == isLeftOut {
        runs[last].count += 1
      } else {
        runs.append((1, isLeftOut))
      }
    }
  }

  /// A difference without these deletions.
  ///
  /// - Parameter difference: The one in which they were found.
  /// - Throws: `ChangesetError`, `ByteStreamError`.
  package func removed(from difference: DatabaseDifference) throws -> DatabaseDifference {
    runs.contains { $0.isLeftOut } ? try difference.leavingOut(deletions: runs) : difference
  }

  /// Gives each row of a table, as the shadow has it.
  func forEach(of table: TableName, _ body: ([ValueSlice], RawSpan) throws -> Void) throws {
    guard runs.contains(where: \.isLeftOut) else { return }
    var runs = WithdrawalRuns(runs.map { ($0.count, isWithdrawal: $0.isLeftOut) })
    try Changesets.forEachChange(of: changeset) { _, reader, bytes in
      if runs.next(), reader.table.map({ TableName($0.name) }) == table { try body(reader.old, bytes) }
    }
  }
}

/// Finds deleted rows among those of a table that are left out: by their key, or by their content where that has none.
private final class LeftOutLookup {
  private let table: KeyedTable?
  private let byKey: String
  /// Where the key is no column, the first value of a row is no content.
  private let contentStart: Int
  /// How many rows of each content are left out that no deletion has stood for yet.
  private var contents: [[UInt8]: Int] = [:]

  /// - Returns: nil where no rows of the table are left out.
  init?(
    of definition: TableDefinition, _ keyed: KeyedTable?, _ rows: ScopeRows, on connection: borrowing SQLiteConnection
  ) throws {
    let name = TableName(definition.name)
    guard let place = rows.leftOutPlaces.first(where: { rows.schema.tables[$0].name == name }) else { return nil }
    let table = rows.schema.tables[place]
    let isLeftOut =
      "(\(table.identity.joined(separator: ", "))) IN (SELECT \(ScopeRows.keys(of: table)) FROM \(ScopeRows.leftOutName(place)))"
    self.table = keyed
    byKey = keyed.map { "\($0.exactLookup) AND \(isLeftOut)" } ?? ""
    contentStart = definition.isKeyedByRowID ? 1 : 0
    let hasNullKey = table.definition.hasNullKeySQL.map { " AND (\($0))" }
    guard keyed == nil || hasNullKey != nil else { return }
    let columns = definition.columns.map(\.name)
    try table.selected.selection(where: isLeftOut + (keyed == nil ? "" : hasNullKey ?? "")).forEachRow(
      of: table.definition, columns.filter { table.definition.column(named: $0) != nil }, on: connection
    ) { contents[$0.record(of: 0..<$0.columnCount), default: 0] += 1 }
  }

  func finds(_ row: [ValueSlice], _ bytes: RawSpan, on connection: borrowing SQLiteConnection) throws -> Bool {
    if let table, table.hasKey(row) { return try table.finds(byKey, row, bytes, on: connection) }
    let content = row.dropFirst(contentStart).flatMap { bytes.array($0.encoded) }
    guard let count = contents[content], count > 0 else { return false }
    contents[content] = count - 1
    return true
  }
}
