import BuckiaBytes
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Looks for incoming values that the local columns would convert to other values, before anything is written.
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
  /// - Returns: In the mode `hold` a plan that holds the columns with such values, too. In other modes such a value refuses its
  ///   change alone, when that is applied; the plan then knows the rows that cannot be stored.
  func run(_ incoming: IncomingChanges, _ summary: ChangesetSummary) throws -> SchemaPlan {
    let checks = summary.tables.map { schema.matches[TableName($0.table.name)]?.checkedValues ?? [] }
    guard checks.contains(where: { !$0.isEmpty }) else { return schema }
    let sections = TableSections(summary, of: incoming.changeset)
    guard mode == .hold else { return try notingUnstorableRows(summary, sections, checks) }
    var withheld = self.withheld
    var isAnyAltered = false
    for (index, table) in summary.tables.enumerated() where !checks[index].isEmpty {
      let name = TableName(table.table.name)
      guard let match = schema.matches[name] else { continue }
      for check in try altered(name, in: sections, checks[index]) {
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
    _ table: TableName, in sections: TableSections, _ checks: [TableMatch.Check]
  ) throws -> [TableMatch.Check] {
    var open = checks
    var found: [TableMatch.Check] = []
    try sections.forEachChange(of: table) { change, bytes in
      guard change.operation != .delete else { return }
      for check in open where Self.alters(change, check, bytes) {
        found.append(check)
        open.removeAll { $0.column == check.column }
      }
    }
    return found
  }

  private static func alters(_ change: DecodedChange, _ check: TableMatch.Check, _ bytes: RawSpan) -> Bool {
    TypeCompatibility.alters(change.new(check.column), in: bytes, affinity: check.affinity)
  }

  /// The plan with the rows that come in and cannot be stored, of those tables that also lose rows.
  private func notingUnstorableRows(
    _ summary: ChangesetSummary, _ sections: TableSections, _ checks: [[TableMatch.Check]]
  ) throws -> SchemaPlan {
    var plan = schema
    for (index, table) in summary.tables.enumerated() where table.inserted > 0 && table.deleted > 0 {
      guard !checks[index].isEmpty else { continue }
      var rows: Set<RowIdentity> = []
      let name = TableName(table.table.name)
      try sections.forEachChange(of: name) { change, bytes in
        guard change.operation == .insert, checks[index].contains(where: { Self.alters(change, $0, bytes) }) else {
          return
        }
        rows.insert(RowIdentity(of: change, in: table.table, bytes))
      }
      plan.note(unstorable: rows, in: name)
    }
    return plan
  }
}
