import BuckiaLedger
import SQLiteConnections
import SQLiteSchemas

/// The answers that are kept as rules, and which of them a conflict meets.
///
/// They are read when the first conflict is met. Rows without a conflict cost nothing, and where there are no rules, conflicts
/// do not either.
final class ConflictRules {
  private let connection: SQLiteConnection
  private lazy var byTable = Result {
    Dictionary(grouping: try ConflictRule.all(on: connection)) { $0.question.table }
  }

  init(on connection: borrowing SQLiteConnection) { self.connection = SQLiteConnection(sharing: connection) }

  /// Whether there are any about a table.
  ///
  /// - Throws: `SQLiteError`.
  func exist(for table: TableName) throws -> Bool { try byTable.get()[table] != nil }

  /// The rule that decides a conflict; nil where there is none.
  ///
  /// - Throws: `SQLiteError`; `ChangesetError` when a rule is damaged.
  func rule(for incident: ConflictIncident, _ layout: ConflictLayout, _ bytes: RawSpan) throws -> ConflictRule? {
    guard let rules = try byTable.get()[layout.name],
      let question = Self.question(of: incident, layout, bytes)
    else { return nil }
    return rules.last { $0.question == question }
  }

  /// What a conflict asks; nil where there are no two versions of a row to choose from.
  private static func question(
    of incident: ConflictIncident, _ layout: ConflictLayout, _ bytes: RawSpan
  ) -> ConflictQuestion? {
    guard incident.kind == .data || incident.kind == .conflict, !incident.isOfAnotherRow, let local = incident.local
    else { return nil }
    let change = incident.change
    let isDelete = change.operation == .delete
    let columns = layout.columns.indices.filter { place in
      func isHeld(isNew: Bool) -> Bool? {
        layout.slice(at: place, of: change, isNew: isNew).map {
          local.holds($0, in: bytes, at: place, affinity: layout.affinities[place])
        }
      }
      guard !layout.key.contains(place), isHeld(isNew: !isDelete) == false else { return false }
      return isDelete || isHeld(isNew: false) != true
    }
    guard !columns.isEmpty else { return nil }
    return ConflictQuestion(
      table: layout.name, kind: incident.kind, operation: change.operation, columns: columns.map { layout.columns[$0] })
  }
}
