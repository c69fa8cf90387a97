import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The newest open conflicts, and the values of their rows in files of their senders that are applied now.
///
/// A conflict closes when nothing is left to decide: the local row has become the incoming one, or the sender's row has
/// become the local one.
package final class OpenConflicts {
  /// A sender's version of a row: values by their places in the local layout.
  enum Statement {
    case values([Int: StoredValue])
    case deletion
  }

  struct Row: Hashable {
    let table: TableName
    let key: [UInt8]
    let sender: String
  }

  /// The most conflicts that are examined; there can be millions.
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

  /// True if no conflict is open.
  var isEmpty: Bool { conflicts.isEmpty }

  /// True if a conflict is about a row of a table.
  func concern(_ table: TableName) -> Bool { tables.contains(table) }

  /// Records the values of a change that has met no conflict.
  ///
  /// - Parameter sender: The key of the signature, in the ledger's form.
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
