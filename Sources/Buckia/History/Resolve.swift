import SQLiteConnections

extension DatabaseManager {
  /// Resolves recorded conflicts: writes the chosen version of each row, and records who decided, when, and the row
  /// before and afterwards.
  ///
  /// A conflict can be resolved again with another answer, any number of times. A row that was changed since, other
  /// than by a resolution of the same conflict, is not overwritten unless the options ask for it. A conflict that
  /// cannot be resolved does not stop the others: the report gives the reason. All of it is one transaction, or part of
  /// that which the app has open.
  ///
  /// ```swift
  /// let report = try database.resolve([7], taking: .incoming, options: ResolveOptions(decidedBy: "Ben"))
  /// for conflict in report.refused { print(conflict.id, conflict.refusal?.reason ?? "") }
  /// ```
  ///
  /// Triggers do not fire, as when changes are applied; full-text and R-tree indexes that triggers maintain are kept up
  /// to date.
  ///
  /// - Parameters:
  ///   - conflicts: Their numbers (``ConflictRecord/id``).
  ///   - answer: The answer to all of them.
  ///   - options: How.
  /// - Returns: The outcome of each.
  /// - Throws: `BuckiaError` when the database cannot be opened or written, has a newer ledger, or a record is damaged; with
  ///   `misuse` where values or a deletion are to be kept as a rule. Nothing is changed then.
  @discardableResult
  public func resolve(
    _ conflicts: [Int64], taking answer: ConflictAnswer, options: ResolveOptions = ResolveOptions()
  ) throws -> ResolveReport {
    try resolve(answer, options, telling: nil) { _ in conflicts }
  }

  /// Resolves all recorded conflicts of some kind with one answer, oldest first.
  ///
  /// - Parameters:
  ///   - filter: The conflicts to resolve.
  ///   - answer: The answer to all of them.
  ///   - options: How.
  /// - Returns: The outcomes: the counts of all, and the first 1,000 resolved and refused conflicts.
  /// - Throws: As ``resolve(_:taking:options:)``.
  @discardableResult
  public func resolve(
    matching filter: ConflictFilter, taking answer: ConflictAnswer, options: ResolveOptions = ResolveOptions()
  ) throws -> ResolveReport {
    try resolve(answer, options, telling: 1_000) { try ConflictRecord.numbers(filter.selection, on: $0) }
  }

  private func resolve(
    _ answer: ConflictAnswer, _ options: ResolveOptions, telling limit: Int?,
    _ numbers: (borrowing SQLiteConnection) throws -> [Int64]
  ) throws -> ResolveReport {
    if options.remembers, answer != .local, answer != .incoming {
      throw BuckiaError(
        .misuse, "this answer is about one row: only the local or the incoming version can be kept as a rule")
    }
    return try withWriter { connection in
      guard try Ledger.exists(on: connection) else {
        throw BuckiaError(.noSuchConflict, "no conflicts are recorded in this database")
      }
      let session = ApplySession(on: connection)
      return try session.whileReady {
        let transaction = try SQLiteTransaction(on: connection)
        try Ledger.prepare(on: connection)
        let report = try resolve(numbers(connection), answer, options, telling: limit, in: session, on: connection)
        if options.isDryRun { transaction.rollback() } else { try transaction.commit() }
        return report
      }
    }
  }

  private func resolve(
    _ numbers: [Int64], _ answer: ConflictAnswer, _ options: ResolveOptions, telling limit: Int?,
    in session: ApplySession,
    on connection: borrowing SQLiteConnection
  ) throws -> ResolveReport {
    for (conflict, last) in options.seenResolutions {
      let newest = try ResolutionRecord.all(of: conflict, on: connection).last
      guard let newest, newest.id != last else { continue }
      let who = newest.decidedBy.isEmpty ? "somebody" : newest.decidedBy.escaped(limit: 40)
      throw BuckiaError(.rowChanged, "conflict \(conflict) was decided by \(who) meanwhile; look at it again")
    }
    var seen: Set<Int64> = []
    let conflicts = numbers.filter { seen.insert($0).inserted }
    let changedRows = options.changedRowLimit > 0 ? ChangedRowRecorder(limit: options.changedRowLimit) : nil
    let request = ConflictSettlement.Request(
      answer, decidedBy: options.decidedBy, time: WallClock.unixMilliseconds, isForced: options.isForced,
      isRemembered: options.remembers,
      causes: answer == .incoming ? try causes(of: seen, on: connection) : [:], observer: changedRows,
      limit: limit, polling: poll)
    let open = try OpenConflicts(on: connection)
    var result = try ConflictSettlement.run(conflicts, request, in: session)
    if answer == .both || answer == .same {
      var (parents, choice) = (result.conflicts, answer)
      while !parents.isEmpty {
        let children = try children(of: parents, choice, on: connection)
        // Those of the next generation refer to the rows just written.
        (parents, choice) = ([], .both)
        for (child, values) in children {
          let request = ConflictSettlement.Request(
            .values(values), references: values, decidedBy: options.decidedBy, time: request.time, isForced: false,
            isRemembered: false, causes: [:], observer: changedRows, polling: poll)
          let settled = try ConflictSettlement.run([child], request, in: session)
          parents += settled.conflicts
          result.add(settled)
        }
      }
    }
    try open.close(in: session, at: request.time)
    return ResolveReport(
      conflicts: result.conflicts, counts: result.counts, rules: result.rules, changedTables: result.changedTables,
      changedRows: try changedRows?.changedRows() ?? [], violations: result.violations, warnings: result.warnings,
      isDryRun: options.isDryRun)
  }

  /// The conflicts of rows that were left out because they refer to rows with another local key, and the referring
  /// values.
  private func children(
    of parents: [ResolvedConflict], _ answer: ConflictAnswer, on connection: borrowing SQLiteConnection
  ) throws -> [(conflict: Int64, values: [String: ChangesetValue])] {
    var rows: [Int64: [ConflictRecord.Cell]] = [:]
    for parent in parents where parent.refusal == nil {
      if answer == .both {
        rows[parent.id] = parent.after
      } else {
        var selection = ConflictSelection()
        selection.numbers = parent.id...parent.id
        rows[parent.id] = try ConflictRecord.all(selection, on: connection).first?.others.first
      }
    }
    var selection = ConflictSelection()
    selection.kind = .foreignKey
    selection.isOpen = true
    let missing = MissingParents(on: connection)
    var found: [(conflict: Int64, values: [String: ChangesetValue])] = []
    try ConflictRecord.forEach(selection, on: connection) { record in
      let named = try missing.named(in: record)
      guard let cause = named.parent?.conflict, let row = rows[cause], let constraint = named.constraint else { return }
      var values: [String: ChangesetValue] = [:]
      for (column, parentColumn) in zip(constraint.columns, constraint.parentColumns) {
        values[column] = row.first { ASCIIName.matches($0.column, parentColumn) }?.value
      }
      if values.count == constraint.columns.count { found.append((record.id, values)) }
    }
    return found
  }

  /// For conflicts of rows that refer to a row which was left out, the conflict that has left it out.
  private func causes(of numbers: Set<Int64>, on connection: borrowing SQLiteConnection) throws -> [Int64: Int64] {
    guard let first = numbers.min(), let last = numbers.max() else { return [:] }
    var selection = ConflictSelection()
    selection.kind = .foreignKey
    selection.numbers = first...last
    let parents = MissingParents(on: connection)
    var causes: [Int64: Int64] = [:]
    try ConflictRecord.forEach(selection, on: connection) { record in
      try poll()
      guard numbers.contains(record.id), record.outcome != .reported else { return }
      causes[record.id] = try parents.named(in: record).parent?.conflict
    }
    return causes
  }

  // MARK: History

  /// How a conflict was resolved, each time, oldest first.
  ///
  /// - Parameter conflict: Its number (``ConflictRecord/id``).
  /// - Throws: `BuckiaError` when the database cannot be read, has a newer ledger, or a record is damaged.
  public func resolutions(of conflict: Int64) throws -> [ResolutionRecord] {
    try withLedger(or: []) { connection in
      return try ResolutionRecord.all(of: conflict, on: connection)
    }
  }

  /// The number of the newest resolution, by which later decisions are noticed; 0 for none.
  ///
  /// - Throws: `BuckiaError` when the database cannot be read, or has a newer ledger.
  package func newestResolution() throws -> Int64 {
    try withLedger(or: 0) { connection in
      return try ResolutionRecord.newest(on: connection)
    }
  }

  // MARK: Rules

  /// The answers that are kept as rules, oldest first.
  ///
  /// - Throws: `BuckiaError` when the database cannot be read, has a newer ledger, or a rule is damaged.
  public func conflictRules() throws -> [ConflictRule] {
    try withLedger(or: []) { connection in
      return try ConflictRule.all(on: connection)
    }
  }

  /// Removes a rule. It decides no more conflicts; earlier decisions stay.
  ///
  /// - Parameter rule: Its number (``ConflictRule/id``).
  /// - Throws: `BuckiaError` with `noSuchRule` when there is none with this number; when the database cannot be written, or has
  ///   a newer ledger.
  public func forgetConflictRule(_ rule: Int64) throws {
    try withWriter { connection in
      guard try Ledger.exists(on: connection) else {
        throw BuckiaError(.noSuchRule, "no rules are kept in this database")
      }
      let transaction = try SQLiteTransaction(on: connection)
      try Ledger.prepare(on: connection)
      guard try ConflictRule.forget(rule, at: WallClock.unixMilliseconds, on: connection) else {
        throw BuckiaError(.noSuchRule, "there is no rule with the number \(rule)")
      }
      try transaction.commit()
    }
  }
}

/// How recorded conflicts are resolved.
public struct ResolveOptions: Sendable {
  /// The recorded name of the person who decides.
  public var decidedBy: String
  /// True to overwrite rows with later changes, and to permit references to missing rows.
  public var isForced: Bool
  /// True if the answer is kept as a rule for the same question, and decides later conflicts.
  public var remembers: Bool
  /// True if only a report is wanted: everything is tried and taken back.
  public var isDryRun: Bool
  /// The most keys of changed rows in the report, for an app that shows them; 0 for none.
  public var changedRowLimit = 0
  /// The last resolution of each conflict that the deciding person has seen, by the conflict's number; 0 for none. If
  /// there is a later one, nothing is resolved (`rowChanged`).
  package var seenResolutions: [Int64: Int64] = [:]

  /// Creates options; the defaults are those of the command line.
  public init(
    decidedBy: String = "", isForced: Bool = false, remembers: Bool = false, isDryRun: Bool = false
  ) {
    self.decidedBy = decidedBy
    self.isForced = isForced
    self.remembers = remembers
    self.isDryRun = isDryRun
  }
}

/// What ``DatabaseManager/resolve(_:taking:options:)`` did.
public struct ResolveReport: Hashable, Codable, Sendable {
  /// Each conflict, in the order given. Of conflicts that a filter has chosen, the first 1,000 that were resolved, and the first 1,000
  /// that were not, in the order of their numbers.
  public let conflicts: [ResolvedConflict]
  /// The counts of all conflicts.
  public let counts: ResolveCounts
  /// The rules that the answers were kept as.
  public let rules: [ConflictRule]
  /// The tables that were changed.
  public let changedTables: [String]
  /// The changed rows by table, if the options ask for them; otherwise empty.
  public let changedRows: [ChangedRows]
  /// Sentences about references that were broken by writing.
  public let violations: [String]
  /// Warnings.
  public let warnings: [Warning]
  /// True if nothing was changed, because only a report was wanted.
  public let isDryRun: Bool

  /// The conflicts that were resolved, of ``conflicts``.
  public var resolved: [ResolvedConflict] { conflicts.filter { $0.refusal == nil } }
  /// The conflicts that were not, of ``conflicts``.
  public var refused: [ResolvedConflict] { conflicts.filter { $0.refusal != nil } }
}
