import BuckiaApply
import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The rows that an undo removes, or brings back.
///
/// Nobody has deleted them: an undo is of this database alone. So those they are shared with are told only that they are not shared any
/// more, unless that is asked for.
package final class UndoneRows: RowEffectObserver {
  package let wantsRows = false
  private var rows: [(table: TableName, key: [UInt8], isThere: Bool)] = []

  package init() {}

  package func didWrite(_ effect: RowEffect) {
    if effect.operation != .update { rows.append((effect.table, effect.key, effect.operation == .insert)) }
  }

  package var mark: Int { rows.count }

  package func rewind(to mark: Int) { rows.removeLast(rows.count - mark) }

  /// Notes the rows for the shares whose receivers have them.
  ///
  /// - Throws: `SQLiteError`.
  package func note(on connection: borrowing SQLiteConnection) throws {
    let shares = rows.isEmpty ? [] : try ShareEntry.all(on: connection)
    guard !shares.isEmpty else { return }
    let schema = try SchemaReader(connection)
    let names = Set(rows.map(\.table))
    let definitions = try schema.entries.filter { names.contains($0.name) && $0.kind == .table }
      .map { try schema.definition(of: $0) }
    let tables = try KeyedTables(definitions, schema)
    for share in shares {
      let shadows = try ShadowEntry.all(of: share.number, on: connection)
      for row in rows where !row.key.isEmpty {
        guard let shadow = shadows.first(where: { $0.table == row.table }), let table = tables[row.table] else {
          continue
        }
        let bytes = row.key.span.bytes
        let sql = "SELECT 1 FROM main.\(shadow.name.quoted) WHERE \(table.condition(from: 1))"
        guard try table.finds(sql, table.row(withKey: bytes), bytes, on: connection) else { continue }
        if row.isThere {
          try TakenBackRows.remove(row.key, of: row.table, for: share.number, on: connection)
        } else {
          try TakenBackRows.note(row.key, of: row.table, for: share.number, on: connection)
        }
      }
    }
  }
}
