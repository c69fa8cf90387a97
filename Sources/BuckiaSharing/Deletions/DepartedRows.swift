import BuckiaApply
import BuckiaBytes
import BuckiaDiff
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Tells the real deletions of a share from rows that have only departed: they left the scope, were withdrawn by
/// another sender, or were removed by an undo.
package struct DepartedRows {
  /// What a change stands for.
  package enum Fate: Sendable {
    /// An edit.
    case edit
    /// The row is not shared any more.
    case departed
    /// The row is not shared any more, and its receiver has brought it here.
    case theirs
  }

  /// The numbers of neighbouring changes with the same fate, in the order of the changeset.
  package private(set) var runs: [(count: Int64, fate: Fate)] = []
  /// The number of departed rows of each table.
  package private(set) var counts: [TableName: Int] = [:]

  /// Looks up the rows that a changeset deletes.
  ///
  /// - Parameters:
  ///   - changeset: The changes from the shared rows to the present ones.
  ///   - definitions: Its tables.
  ///   - share: The share.
  ///   - readers: The keys with which its recipients sign.
  ///   - propagates: True if rows that another sender or an undo has removed here count as deleted.
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
    // An unsigned diff counts as a recipient's only if its author has acknowledged the share.
    let acknowledging = try AcknowledgementEntry.all(of: share.number, on: connection).map(\.sender)
    let receivers = try share.isForOne() ? readers.subtracting([RecipientKey.unknown]).union(acknowledging) : []
    try Changesets.forEachChange(of: changeset) { change, reader, bytes in
      var fate = Fate.edit
      if change.operation == .delete, let table = reader.table.flatMap({ tables.table(of: $0) }),
        table.hasKey(reader.old)
      {
        let key = table.key(reader.old, bytes)
        if try table.finds(table.exactLookup, reader.old, bytes, on: connection)
          || !propagates && RowNotes(.takenBack, of: table.name, for: share.number).contain(key, on: connection)
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

  /// The changes that are not sent.
  ///
  /// - Parameter keeps: True if departed rows stay at the recipients.
  package func leftOut(keeping keeps: Bool) -> [(count: Int64, isLeftOut: Bool)] {
    runs.map { ($0.count, $0.fate == .theirs || keeps && $0.fate == .departed) }
  }

  /// The sent changes that withdraw a row.
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

/// Deletions that a comparison with a shadow finds although the rows exist: they are left out of the share because they
/// refer to a missing row.
///
/// They are sent neither as deletions nor as withdrawals, and the shadow keeps the rows. At the recipients such a row
/// stays as it was sent last, until its reference is mended.
package struct HeldDeletions {
  private let changeset: TemporaryBuffer
  /// Runs of neighbouring changes; true for held deletions.
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

  /// Returns a difference without the held deletions.
  ///
  /// - Parameter difference: The difference that was searched.
  /// - Throws: `ChangesetError`, `ByteStreamError`.
  package func removed(from difference: DatabaseDifference) throws -> DatabaseDifference {
    runs.contains { $0.isLeftOut } ? try difference.leavingOut(deletions: runs) : difference
  }

  /// Calls `body` with each row of a table in the shadow.
  func forEach(of table: TableName, _ body: ([ValueSlice], RawSpan) throws -> Void) throws {
    guard runs.contains(where: \.isLeftOut) else { return }
    var runs = WithdrawalRuns(runs.map { ($0.count, isWithdrawal: $0.isLeftOut) })
    try Changesets.forEachChange(of: changeset) { _, reader, bytes in
      if runs.next(), reader.table.map({ TableName($0.name) }) == table { try body(reader.old, bytes) }
    }
  }
}

/// Finds deleted rows among the left-out rows of a table, by key or, without a key, by content.
private final class LeftOutLookup {
  private let table: KeyedTable?
  private let byKey: String
  /// Without an integer key column, the first value of a row is the rowid and no content.
  private let contentStart: Int
  /// The number of left-out rows with each content that no deletion has been matched with yet.
  private var contents: [[UInt8]: Int] = [:]

  /// - Returns: nil if no rows of the table are left out.
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
