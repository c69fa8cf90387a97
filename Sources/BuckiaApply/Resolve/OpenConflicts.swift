import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// The newest open conflicts, and what their senders say of the rows in the files that are applied now.
///
/// A conflict closes when nothing is left to decide: the row here has become what came in, or its sender says what is here.
package final class OpenConflicts {
  /// What a sender says of a row: its values by their places in the local layout.
  enum Statement {
    case values([Int: StoredValue])
    case deletion
  }

  struct Row: Hashable {
    let table: TableName
    let key: [UInt8]
    let sender: String
  }

  /// How many are looked at: there can be millions.
  private static let limit = 1_000

  let conflicts: [OpenConflict]
  private let rows: Set<Row>
  private let tables: Set<TableName>
  private(set) var statements: [Row: Statement] = [:]

  /// Reads the conflicts that are open before anything is applied.
  ///
  /// - Throws: `SQLiteError`; `ChangesetError` when a record is damaged.
  package init(on connection: borrowing SQLiteConnection) throws {
    conflicts = try OpenConflict.newest(Self.limit, on: connection)
    rows = Set(conflicts.map { Row(table: $0.table, key: $0.key, sender: $0.sender) })
    tables = Set(conflicts.map(\.table))
  }

  /// True if none is open.
  var isEmpty: Bool { conflicts.isEmpty }

  /// True if any is about a row of a table.
  func concern(_ table: TableName) -> Bool { tables.contains(table) }

  /// Notes what a change says that has met no conflict.
  ///
  /// - Parameter sender: Who says so: the key with which the change was signed, as the ledger has it.
  func note(_ change: DecodedChange, _ bytes: RawSpan, _ layout: ConflictLayout, from sender: String) {
    let isNew = change.operation == .insert
    let key = layout.key.sorted().flatMap { place in
      layout.slice(at: place, of: change, isNew: isNew).map { bytes.array($0.encoded) } ?? []
    }
    let row = Row(table: layout.name, key: key, sender: sender)
    guard rows.contains(row) else { return }
    guard change.operation != .delete else {
      statements[row] = .deletion
      return
    }
    var values: [Int: StoredValue] = [:]
    if !isNew, case .values(let known)? = statements[row] { values = known }
    for place in layout.columns.indices {
      if let value = layout.slice(at: place, of: change, isNew: true) {
        values[place] = StoredValue(bytes.array(value.encoded))
      }
    }
    statements[row] = .values(values)
  }
}
