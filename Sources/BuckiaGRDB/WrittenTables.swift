#if GRDB
  import Buckia
  import GRDB

  /// The tables that calls have written to: what GRDB's observers are to be told.
  struct WrittenTables {
    /// Tables of the app.
    private var names: Set<String> = []
    /// Buckia's own.
    private var ledger: Set<LedgerTables> = []

    /// Whether nothing was written.
    var isEmpty: Bool { names.isEmpty && ledger.isEmpty }

    /// Adds tables of the app.
    mutating func add(_ tables: some Sequence<String>) { names.formUnion(tables) }

    /// Adds what says which files have come and gone.
    mutating func addLedger() { ledger.insert(.everythingElse) }

    /// Adds the records of conflicts.
    mutating func addConflicts() { ledger.insert(.conflicts) }

    /// Adds what files have changed.
    mutating func add(_ report: ApplyReport) {
      guard !report.isDryRun else { return }
      add(report.changedTables)
      add(report.changedRows.map(\.table))
      let hasRecorded = report.diffs.contains { $0.state != .alreadyApplied } || !report.answers.isEmpty
      if hasRecorded || report.createdLedger { addLedger() }
      if report.diffs.contains(where: { $0.conflicts > 0 }) { addConflicts() }
    }

    /// Adds what was changed by taking diffs back.
    mutating func add(_ report: UndoReport) {
      guard !report.isDryRun, !report.undone.isEmpty else { return }
      add(report.undone.flatMap(\.changedTables))
      addLedger()
      if report.undone.contains(where: { $0.conflicts > 0 }) { addConflicts() }
    }

    /// Adds what was changed by resolving conflicts.
    mutating func add(_ report: ResolveReport) {
      guard !report.isDryRun, !report.resolved.isEmpty else { return }
      add(report.changedTables)
      addConflicts()
    }

    /// All of it, as GRDB says it.
    ///
    /// - Parameter includesSchema: Whether the schema itself has changed.
    func region(in db: Database, withSchema includesSchema: Bool) throws -> DatabaseRegion {
      var region = DatabaseRegion()
      for name in names { region.formUnion(try Table(name).databaseRegion(db)) }
      for tables in ledger { region.formUnion(try tables.region(in: db)) }
      if includesSchema { region.formUnion(try Table("sqlite_master").databaseRegion(db)) }
      return region
    }
  }
#endif
