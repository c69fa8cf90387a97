import SQLiteConnections

/// What holds on a single replica at any time.
struct DatabaseInvariants {
  private let tables: [ReplicatedTable]
  private let checks: [Check]
  /// True if values of columns that a replica lacks may be in a second record of a conflict.
  private let mayLackColumns: Bool

  init(_ tables: [ReplicatedTable], _ checks: [Check], mayLackColumns: Bool = false) {
    self.mayLackColumns = mayLackColumns
    self.tables = tables
    self.checks = checks
  }

  /// Checks a replica.
  ///
  /// - Throws: `Violation`.
  func require(of replica: Replica) throws {
    let found = try replica.database.text("PRAGMA integrity_check") ?? ""
    guard found == "ok" else { throw Violation(.integrity, "replica \(replica.number): \(found)") }
    try requireReferences(of: replica)
    let twice = try replica.database.text(
      "SELECT diff FROM main.buckia_ledger WHERE diff IS NOT NULL GROUP BY diff, sender HAVING count(*) > 1")
    if let twice { throw Violation(.appliedOnce, "replica \(replica.number) has recorded \(twice) twice") }
    for check in checks {
      if let fault = try check.body(SimulatedDatabase(replica.number, on: replica.database)) {
        throw Violation(.check(check.name), "replica \(replica.number): \(fault)")
      }
    }
  }

  // MARK: Foreign keys

  private func requireReferences(of replica: Replica) throws {
    let broken = try replica.database.rows(of: "PRAGMA main.foreign_key_check") { row in
      (table: row.text(at: 0) ?? "", rowID: row.isNull(at: 1) ? nil : row.integer(at: 1))
    }
    guard !broken.isEmpty else { return }
    let records = try ConflictRecord.all(on: replica.database).filter { $0.kind == .foreignKey }
    for row in broken where try !isNamed(row.table, row.rowID, by: records, in: replica) {
      let name = row.rowID.map { "row \($0) of " } ?? "a row of "
      throw Violation(
        .foreignKeys,
        "replica \(replica.number): \(name)\"\(row.table)\" refers to nothing, and no conflict record says so")
    }
  }

  /// True if a record names a row: by its key, or by the reference that it has.
  private func isNamed(
    _ table: String, _ rowID: Int64?, by records: [ConflictRecord], in replica: Replica
  ) throws -> Bool {
    let records = records.filter { TableName($0.table) == TableName(table) }
    guard let table = tables.first(where: { $0.name == TableName(table) }) else { return true }
    // For a WITHOUT ROWID table SQLite does not report the row.
    guard let rowID else { return !records.isEmpty }
    var row: [ChangesetValue] = []
    let rowIDName = table.definition.rowIDName ?? "rowid"
    guard let query = try table.query(in: replica.database) else { return true }
    try replica.database.forEachRow(of: "\(query) WHERE \(rowIDName) = \(rowID)") { row = $0.values }
    let references = table.definition.foreignKeys.map { $0.columns.compactMap(table.columns.firstIndex) }
    return records.contains { record in
      [record.local, record.incoming].compactMap { $0 }.contains { version in
        ([table.key] + references).contains { places in
          places.allSatisfy { place in
            version.contains { ASCIIName.matches($0.column, table.columns[place]) && $0.value == row[place] }
          }
        }
      }
    }
  }

  // MARK: The ledger

  /// Checks that no diff of an untrusted author was accepted, and each diff of a trusted one.
  ///
  /// - Throws: `Violation`.
  func requireTrust(_ received: Replica.Received, of replica: Replica) throws {
    for (diff, outcome) in received.done {
      let isTrusted = replica.trusted.contains(diff.author)
      switch outcome.state {
      case .applied, .held:
        guard isTrusted else {
          throw Violation(
            .trust,
            "replica \(replica.number) has applied diff \(diff.number) of replica \(diff.author), which it does not trust"
          )
        }
      case .quarantined:
        guard !isTrusted else {
          throw Violation(
            .trust, "replica \(replica.number) has not taken diff \(diff.number): \(outcome.reason ?? "")")
        }
      case .alreadyApplied, .waiting, .rejected: break
      }
    }
  }

  /// Checks the report of applying.
  ///
  /// - Parameter before: The diffs that the replica had applied before.
  /// - Throws: `Violation`.
  func require(_ received: Replica.Received, of replica: Replica, appliedBefore before: Set<KSUID>) throws {
    var applied = before
    for (diff, outcome) in received.done {
      switch outcome.state {
      case .applied:
        guard applied.insert(diff.id).inserted else {
          throw Violation(.appliedOnce, "replica \(replica.number) has applied diff \(diff.number) twice")
        }
        try requireEntry(of: diff, outcome, in: replica)
      case .held:
        guard applied.insert(diff.id).inserted else {
          throw Violation(.appliedOnce, "replica \(replica.number) has held diff \(diff.number) twice")
        }
      case .alreadyApplied:
        guard applied.contains(diff.id) else {
          throw Violation(.counters, "replica \(replica.number) takes diff \(diff.number) for applied, and it is not")
        }
      default: break
      }
    }
  }

  private func requireEntry(of diff: SentDiff, _ outcome: DiffOutcome, in replica: Replica) throws {
    let records = mayLackColumns ? "min(count(*), l.conflicts)" : "count(*)"
    let query = """
      SELECT state, inserted, updated, deleted, conflicts, omitted,
        (SELECT \(records) FROM main.buckia_conflict c WHERE c.entry = l.entry)
      FROM main.buckia_ledger l WHERE diff = ?1
      """
    let entries = try replica.database.rows(of: query, "\(diff.id)") { $0.values }
    let counts = [
      outcome.inserted, outcome.updated, outcome.deleted, outcome.conflicts, outcome.omitted, outcome.conflicts,
    ]
    let expected: [ChangesetValue] = [.text("applied")] + counts.map { .integer(Int64($0)) }
    guard entries == [expected] else {
      throw Violation(
        .counters,
        "replica \(replica.number), diff \(diff.number): the report says \(expected), the ledger and its records \(entries)"
      )
    }
  }
}

extension SimulationRun {
  /// Checks the invariants after all replicas have received everything.
  ///
  /// - Throws: `Violation`.
  func requireEnd() throws {
    let isOwnKept = simulation.conflicts == .keepLocal && simulation.resolver == nil
    try requireLedgers()
    try written.require(in: replicas, keepsLocal: isOwnKept)
    if isSequential {
      for replica in replicas {
        if let record = try ConflictRecord.all(on: replica.database).first {
          throw Violation(.sequentialEdits, "replica \(replica.number) has met a conflict in \(record.table)")
        }
      }
    }
    try requireEqualRows(isSequential ? .sequentialEdits : .convergence) { isSequential || converges($0) }
  }

  /// True if a table must be the same everywhere.
  private func converges(_ table: ReplicatedTable) -> Bool {
    simulation.convergingTables.contains(table.name) || simulation.conflicts.isConvergent(for: table.name)
  }

  private func requireLedgers() throws {
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
    _ invariant: Invariant, where isRequired: (ReplicatedTable) -> Bool
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
  /// True if a policy by which all replicas come to the same rows decides about a table.
  fileprivate func isConvergent(for table: TableName) -> Bool {
    let policy = self[.table(table.text)] ?? self[.otherwise]
    return policy?.rawValue == "latest"
  }
}
