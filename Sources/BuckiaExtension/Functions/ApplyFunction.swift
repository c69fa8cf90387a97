import Buckia
import SQLiteConnections

extension SQLiteConnection {
  /// Adds `buckia_apply(path or blob [, options])`: the report of `buckia apply --json`.
  func addApplyFunction(on host: HostConnection) throws(SQLiteError) {
    try addFunction("buckia_apply", argumentCounts: 1...2, access: .direct) { arguments in
      guard let source = try arguments.source(at: 0, of: "buckia_apply") else { return .null }
      let given = try CallOptions(
        arguments.text(at: 1), of: "buckia_apply",
        known: [
          "onConflict", "onConflictIn", "schema", "triggers", "trust", "keep", "remove", "dryRun", "snapshot", "home",
        ])
      let options = try ApplyOptions(given)
      let home = try given.home()
      try host.requireRoom(for: "buckia_apply")
      let report = try host.withDatabase(home: home) { try $0.processInboundChanges([source], options: options) }
      return .text(report.json(stoppedBy: nil).text())
    }
  }
}

extension ApplyOptions {
  fileprivate init(_ given: CallOptions) throws {
    var conflicts = ConflictPolicies(try given.choice("onConflict") ?? .keepLocal)
    for (table, policy) in try given.choices("onConflictIn", ConflictPolicy.self) { conflicts[.table(table)] = policy }
    self.init(
      conflicts: conflicts, schema: try given.choice("schema") ?? .additive,
      triggers: try given.flag("triggers") ?? false,
      trust: try given.choice("trust"), keepsFiles: try given.flag("keep") ?? false,
      removesNamedFiles: try given.flag("remove") ?? false, isDryRun: try given.flag("dryRun") ?? false)
    snapshot = try given.text("snapshot")
  }
}
