import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Finds the keys that the rows of a refused file share with other local rows.
///
/// Nothing of the file is applied, but its author goes on to change those rows, and a later file of only such changes would
/// reach the local ones. A conflict stops the file at its first; what is remembered are all keys that are contested.
struct CollisionScan {
  private let changes: IncomingChanges
  private let session: ApplySession

  init(_ changes: IncomingChanges, _ session: ApplySession) {
    self.changes = changes
    self.session = session
  }

  /// Looks up the key of each INSERT, and writes down those that another row has.
  ///
  /// - Throws: `SQLiteError`, `ByteStreamError`, `ChangesetError`.
  func run() throws {
    let summary = try changes.feed.summary()
    let renames = try session.renames(of: changes.key.sender, and: changes.renames)
    let plan =
      try changes.definitions.map {
        try SchemaPlan(definitions: $0, mode: .hold, renames: renames, local: session.schema())
      } ?? SchemaPlan(positional: summary.tables.map(\.table), local: session.schema())
    let contested = ContestedKeys(of: changes.key.sender, entry: 0, on: session.connection)
    let sections = TableSections(summary, of: changes.changeset)
    for table in summary.tables where table.inserted > 0 {
      let name = TableName(table.table.name)
      // The columns of a table that is only partly known here are not those of the changes.
      guard let match = plan.matches[name], plan.held[name] == nil, match.local.module == nil else { continue }
      let statements = try session.statements(for: match, header: table.table)
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
