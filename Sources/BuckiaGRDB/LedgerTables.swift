#if GRDB
  import GRDB

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
      "buckia_conflict", "buckia_conflict_detail", "buckia_layout", "buckia_layout_column", "buckia_resolution",
      "buckia_rule", "buckia_value",
    ]

    /// What an observation that reads these tables has to track. Where there is no ledger yet, anything may be what
    /// makes it.
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
