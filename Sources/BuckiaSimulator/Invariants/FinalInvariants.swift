import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas

/// What holds when everybody has received everything.
struct FinalInvariants {
  let simulation: Simulation
  let tables: [ReplicatedTable]

  /// Checks all replicas.
  ///
  /// - Parameters:
  ///   - written: What edits have written.
  ///   - isSequential: Whether each edit knew all before it.
  /// - Throws: `Violation`.
  func require(of replicas: [Replica], _ written: WrittenValues, isSequential: Bool) throws {
    let isOwnKept = simulation.conflicts == .keepLocal && simulation.resolver == nil
    try requireLedgers(of: replicas)
    try written.require(in: replicas, keepsLocal: isOwnKept)
    if isSequential {
      for replica in replicas {
        if let record = try ConflictRecord.all(on: replica.database).first {
          throw Violation(.sequentialEdits, "replica \(replica.number) has met a conflict in \(record.table)")
        }
      }
    }
    try requireEqualRows(of: replicas, isSequential ? .sequentialEdits : .convergence) { isSequential || converges($0) }
  }

  /// Whether a table must be the same everywhere.
  private func converges(_ table: ReplicatedTable) -> Bool {
    simulation.convergingTables.contains(table.name) || simulation.conflicts.isConvergent(for: table.name)
  }

  private func requireLedgers(of replicas: [Replica]) throws {
    let all = replicas.reduce(into: Set<KSUID>()) { $0.formUnion($1.sent) }
    for replica in replicas where !replica.hasRefused {
      if let held = try replica.database.text("SELECT diff FROM main.buckia_ledger WHERE state = 'held'") {
        throw Violation(.nothingHeld, "replica \(replica.number) still holds a part of \(held)")
      }
      let known = replica.applied.union(replica.sent)
      if let missing = all.subtracting(known).min() {
        throw Violation(.ledgersAgree, "replica \(replica.number) lacks the diff \(missing)")
      }
      var recorded: Set<KSUID> = []
      try replica.database.forEachRow(ofCached: "SELECT diff FROM main.buckia_ledger WHERE state = 'applied'") { row in
        if let id = row.text(at: 0).flatMap({ KSUID($0) }) { recorded.insert(id) }
      }
      if let missing = replica.applied.subtracting(recorded).min() {
        throw Violation(.ledgersAgree, "replica \(replica.number) has applied \(missing), which is not in its ledger")
      }
    }
  }

  private func requireEqualRows(
    of replicas: [Replica], _ invariant: Invariant, where isRequired: (ReplicatedTable) -> Bool
  ) throws {
    let first = try replicas[0].rows()
    for (place, table) in tables.enumerated() where isRequired(table) {
      for replica in replicas.dropFirst() {
        let rows = try replica.rows().tables[place]
        guard rows != first.tables[place] else { continue }
        let keys = Set(rows.keys).union(first.tables[place].keys)
        let different = keys.filter { rows[$0] != first.tables[place][$0] }.map { "\($0)" }.sorted()
        throw Violation(
          invariant,
          "table \"\(table.name.text)\": replicas 0 and \(replica.number) differ in the rows with the keys "
            + different.prefix(3).joined(separator: ", "))
      }
    }
  }
}

extension ConflictPolicies {
  /// Whether a policy by which all replicas come to the same rows decides about a table.
  fileprivate func isConvergent(for table: TableName) -> Bool {
    let policy = self[.table(table.text)] ?? self[.otherwise]
    return policy?.rawValue == "latest"
  }
}
