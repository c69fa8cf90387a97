import BuckiaKSUID
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// What had been kept of a diff and could be applied.
public struct ReleasedDiff: Sendable {
  /// The diff's id; nil where it has none.
  public let diff: KSUID?
  /// Its sender, for people.
  public let sender: String
  /// The name of its file, without its folder.
  public let file: String
  /// The tables that changed.
  public internal(set) var changedTables: [String]
  /// What was done.
  public internal(set) var counts: ApplyCounts
  /// What is still kept.
  public internal(set) var held: [HeldSummary]
  /// Remarks for people.
  public internal(set) var warnings: [String]
  let entry: Int64
}

/// Applies what was kept of earlier diffs, as far as there is a place for it now: by the rules and in the order in which it
/// would have been applied had the place been there.
///
/// ``ApplyPlan/apply(on:)`` does it by itself, before it applies anything newer.
public struct HeldRelease {
  private let settings: ApplySettings
  private let session: ApplySession

  /// - Parameters:
  ///   - settings: How to apply; the mode of the schema is `hold` in any case.
  ///   - session: That of the connection.
  public init(_ settings: ApplySettings, _ session: ApplySession) {
    var settings = settings
    settings.schema = .hold
    self.settings = settings
    self.session = session
  }

  /// What earlier parts of a table still wait for: later ones must not overtake them.
  private struct Stuck {
    var isWhole = false
    var columns: Set<String> = []
  }

  /// Applies what can be.
  ///
  /// - Parameter connection: The database, with a transaction open, to be rolled back when this throws.
  /// - Returns: The diffs of which something was applied, in the order of arrival.
  /// - Throws: `EngineError` with `conflict` under the policy `abort`; `SQLiteError`; `ChangesetError` when what was kept is
  ///   damaged.
  public func run(on connection: borrowing SQLiteConnection) throws -> [ReleasedDiff] {
    try session.requireLedger(on: connection)
    guard try HeldParts.exist(on: connection) else { return [] }
    var released: [ReleasedDiff] = []
    var stuck: [TableName: Stuck] = [:]
    for part in try Ledger.heldParts(on: connection) {
      let name = TableName(part.table)
      if stuck[name]?.isWhole == true { continue }
      let plan = try plan(part, after: stuck[name] ?? Stuck(), on: connection)
      let rest = plan.held[name]
      if let rest {
        stuck[name, default: Stuck()].isWhole = rest.isWhole
        stuck[name]?.columns.formUnion(rest.columns.map { ASCIIName.folded(part.definition.columns[$0].name) })
      }
      let before = Set(part.columns)
      let isAnyNew = rest.map { !$0.isWhole && (part.isWhole || !before.subtracting($0.columns).isEmpty) } ?? true
      guard isAnyNew else { continue }
      do {
        note(try apply(part, plan, on: connection), of: part, in: &released)
      } catch let error as EngineError where error.code == .conflict {
        throw EngineError(
          .conflict, "what was kept of \(part.file) for table \"\(part.table)\" cannot be applied: \(error.message)",
          table: part.table, cause: error)
      }
    }
    guard !released.isEmpty else { return [] }
    try HeldParts.tidy(on: connection)
    for part in try Ledger.heldParts(on: connection) {
      guard let place = released.firstIndex(where: { $0.entry == part.entry }) else { continue }
      released[place].held.append(HeldSummary(part))
    }
    return released
  }

  private func plan(
    _ part: HeldPart, after stuck: Stuck, on connection: borrowing SQLiteConnection
  ) throws -> SchemaPlan {
    let name = TableName(part.table)
    var withheld: [Int: String] = [:]
    for index in part.columns where stuck.columns.contains(ASCIIName.folded(part.definition.columns[index].name)) {
      withheld[index] = "waits for what came before"
    }
    return try SchemaPlan(
      definitions: [part.definition], mode: .hold, withholding: [name: withheld],
      renames: session.renames(on: connection), local: session.schema(on: connection).schema, on: connection)
  }

  private func apply(
    _ part: HeldPart, _ plan: SchemaPlan, on connection: borrowing SQLiteConnection
  ) throws -> ApplyResult {
    let incoming = try IncomingChanges(
      key: LedgerKey(sender: "", id: part.diff, digest: [], isRaw: true), file: "", definitions: [part.definition],
      changeset: part.changeset(on: connection))
    let settled = try AlteredValues(plan, .hold, session.renames(on: connection))
      .settled(incoming, incoming.feed.summary(), on: connection)
    // What cannot be applied now either is kept anew, behind which the old part goes.
    for table in ["change", "column", "part"] {
      try connection.execute("DELETE FROM main.buckia_held_\(table) WHERE part = \(part.part)")
    }
    return try ApplyPlan(resuming: part, incoming, schema: settled, settings: settings, session: session)
      .apply(resumedIn: session, on: connection)
  }

  private func note(_ result: ApplyResult, of part: HeldPart, in released: inout [ReleasedDiff]) {
    if released.last?.entry != part.entry {
      released.append(
        ReleasedDiff(
          diff: part.diff, sender: part.sender, file: part.file, changedTables: [], counts: ApplyCounts(), held: [],
          warnings: [],
          entry: part.entry))
    }
    let place = released.count - 1
    released[place].counts.add(result.counts)
    released[place].changedTables += result.changedTables
    released[place].warnings += result.warnings
  }
}
