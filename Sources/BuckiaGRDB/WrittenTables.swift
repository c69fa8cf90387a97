#if GRDB
  import Buckia
  import GRDB

  /// The tables that calls have written to, for notifying GRDB's observers.
  struct WrittenTables {
    /// Tables of the app.
    private var names: Set<String> = []
    /// Buckia's own.
    private var ledger: Set<LedgerTables> = []

    /// True if nothing was written.
    var isEmpty: Bool { names.isEmpty && ledger.isEmpty }

    /// Adds tables of the app.
    mutating func add(_ tables: some Sequence<String>) { names.formUnion(tables) }

    /// Adds the tables that record files.
    mutating func addLedger() { ledger.insert(.everythingElse) }

    /// Adds the records of conflicts.
    mutating func addConflicts() { ledger.insert(.conflicts) }

    /// Adds the tables that files have changed.
    mutating func add(_ report: ApplyReport) {
      guard !report.isDryRun else { return }
      add(report.changedTables)
      add(report.changedRows.map(\.table))
      let hasRecorded = report.diffs.contains { $0.state != .alreadyApplied } || !report.answers.isEmpty
      if hasRecorded || report.createdLedger { addLedger() }
      if report.diffs.contains(where: { $0.conflicts > 0 }) { addConflicts() }
    }

    /// Adds the tables that undoing has changed.
    mutating func add(_ report: UndoReport) {
      guard !report.isDryRun, !report.undone.isEmpty else { return }
      add(report.undone.flatMap(\.changedTables))
      addLedger()
      if report.undone.contains(where: { $0.conflicts > 0 }) { addConflicts() }
    }

    /// Adds the tables that resolving has changed.
    mutating func add(_ report: ResolveReport) {
      guard !report.isDryRun, !report.resolved.isEmpty else { return }
      add(report.changedTables)
      addConflicts()
    }

    /// The tables as a GRDB region.
    ///
    /// - Parameter includesSchema: True if the schema itself has changed.
    func region(in db: Database, withSchema includesSchema: Bool) throws -> DatabaseRegion {
      var region = DatabaseRegion()
      for name in names { region.formUnion(try Table(name).databaseRegion(db)) }
      for tables in ledger { region.formUnion(try tables.region(in: db)) }
      if includesSchema { region.formUnion(try Table("sqlite_master").databaseRegion(db)) }
      return region
    }
  }

  /// Groups of Buckia's own tables, which change together.
  enum LedgerTables: DatabaseRegionConvertible {
    /// The diff files that were applied, wait, are held, or were refused.
    case log
    /// The records of conflicts, and how they were resolved.
    case conflicts
    /// All but those of conflicts.
    case everythingElse
    /// All of them.
    case all

    /// The tables that have to do with conflicts.
    private static let ofConflicts: Set = [
      "buckia_conflict", "buckia_layout", "buckia_layout_column", "buckia_resolution",
      "buckia_rule", "buckia_value",
    ]

    /// The region that an observation of these tables must track: everything if there is no ledger yet, since any write
    /// can create it.
    func databaseRegion(_ db: Database) throws -> DatabaseRegion {
      try db.tableExists("buckia_ledger") ? region(in: db) : .fullDatabase
    }

    /// The tables that there are.
    func region(in db: Database) throws -> DatabaseRegion {
      var region = DatabaseRegion()
      for name in try names(in: db) { region.formUnion(try Table(name).databaseRegion(db)) }
      return region
    }

    private func names(in db: Database) throws -> [String] {
      switch self {
      case .log: ["buckia_ledger", "buckia_refused"]
      case .conflicts: Self.ofConflicts.sorted()
      case .everythingElse: try Self.allNames(in: db).filter { !Self.ofConflicts.contains($0) }
      case .all: try Self.allNames(in: db)
      }
    }

    private static func allNames(in db: Database) throws -> [String] {
      try String.fetchAll(
        db, sql: "SELECT name FROM main.sqlite_master WHERE type = 'table' AND name LIKE 'buckia!_%' ESCAPE '!'")
    }
  }
#endif
