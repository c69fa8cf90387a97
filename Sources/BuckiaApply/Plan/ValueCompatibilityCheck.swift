import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Looks for incoming values that the local columns would convert to other values.
struct ValueCompatibilityCheck {
  private let schema: SchemaPlan
  private let mode: SchemaMode
  private let renames: ColumnRenames
  private let session: ApplySession
  private let withheld: SchemaPlan.Withheld

  /// - Parameters:
  ///   - schema: The plan so far.
  ///   - mode: The mode, the renames and what was withheld when it was made.
  init(
    _ schema: SchemaPlan, _ mode: SchemaMode, _ renames: ColumnRenames, _ session: ApplySession,
    withholding withheld: SchemaPlan.Withheld = [:]
  ) {
    self.schema = schema
    self.mode = mode
    self.renames = renames
    self.session = session
    self.withheld = withheld
  }

  /// The plan, once all values have been looked at.
  ///
  /// - Returns: The plan as it was; in the mode `hold` one that holds the columns with such values, too.
  /// - Throws: `ReplicationError` with `incompatibleType` for the first such value, in other modes.
  func run(_ incoming: IncomingChanges, _ summary: ChangesetSummary) throws -> SchemaPlan {
    let checks = summary.tables.map { schema.matches[TableName($0.table.name)]?.checkedValues ?? [] }
    guard checks.contains(where: { !$0.isEmpty }) else { return schema }
    var withheld = self.withheld
    var isAnyAltered = false
    let sections = TableSections(summary, of: incoming.changeset)
    for (index, table) in summary.tables.enumerated() where !checks[index].isEmpty {
      let name = TableName(table.table.name)
      guard let match = schema.matches[name] else { continue }
      for check in try altered(name, in: sections, checks[index], into: match) {
        isAnyAltered = true
        let offset = match.local.isKeyedByRowID ? 1 : 0
        withheld[name, default: [:]][check.column - offset] =
          "is of type \(ASCIIName.uppercased(check.affinity.rawValue)) here, which would alter incoming values"
      }
    }
    guard isAnyAltered, let definitions = incoming.definitions else { return schema }
    return try SchemaPlan(
      definitions: definitions, mode: mode, withholding: withheld, renames: renames, local: session.schema())
  }

  /// The columns with values that would be altered.
  private func altered(
    _ table: TableName, in sections: TableSections, _ checks: [TableMatch.Check], into match: TableMatch
  ) throws -> [TableMatch.Check] {
    var open = checks
    var found: [TableMatch.Check] = []
    try sections.forEachChange(of: table) { change, bytes in
      guard change.operation != .delete else { return }
      for check in open where TypeCompatibility.alters(change.new(check.column), in: bytes, affinity: check.affinity) {
        guard mode == .hold else {
          let column = match.local.changesetColumns[check.place]
          throw ReplicationError(
            .incompatibleType,
            "column \"\(match.local.name).\(column)\" has an incompatible type here "
              + "(\(check.affinity.rawValue)): it would alter incoming values",
            table: match.local.name, column: column)
        }
        found.append(check)
        open.removeAll { $0.column == check.column }
      }
    }
    return found
  }
}
