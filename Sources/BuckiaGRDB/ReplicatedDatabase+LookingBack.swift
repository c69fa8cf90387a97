#if GRDB
  import Buckia
  import GRDB

  /// What was recorded. These calls work in `read`, too, and observations that make them notice changes.
  extension ReplicatedDatabase {
    /// Recorded conflicts, oldest first, with all versions of their rows.
    ///
    /// ``LoggedConflict`` has requests for what lists show of them.
    ///
    /// - Parameter filter: Which of them are wanted.
    /// - Throws: As `DatabaseManager.conflicts`.
    public func conflicts(matching filter: ConflictFilter = ConflictFilter()) throws -> [ConflictRecord] {
      try reading(.conflicts) { try $0.conflicts(matching: filter) }
    }

    /// How many recorded conflicts are alike: of one table, one kind and with one outcome.
    ///
    /// - Parameter filter: Which of them are wanted.
    /// - Throws: As `DatabaseManager.conflictCounts`.
    public func conflictCounts(matching filter: ConflictFilter = ConflictFilter()) throws -> [ConflictCount] {
      try reading(.conflicts) { try $0.conflictCounts(matching: filter) }
    }

    /// Everything the ledger holds, oldest first.
    ///
    /// ``LoggedDiff`` and ``LoggedRefusal`` have requests for parts of it.
    ///
    /// - Throws: As `DatabaseManager.log`.
    public func log() throws -> [LedgerEntry] {
      try reading(.log) { try $0.log() }
    }

    /// The newest entries of the ledger, oldest first, and how many there are in all.
    ///
    /// - Parameter count: How many are wanted at most.
    /// - Throws: As `DatabaseManager.log`.
    public func log(newest count: Int) throws -> (entries: [LedgerEntry], total: Int) {
      try reading(.log) { try $0.log(newest: count) }
    }

    /// What of the database would replicate, and what would not and why.
    ///
    /// - Throws: As `DatabaseManager.examine`.
    public func examine() throws -> DoctorReport {
      try reading(.all) { try $0.examine() }
    }

    /// Where the database stands: what has arrived, what waits or is open, and which replica it is.
    ///
    /// - Parameter includesWords: True to read all rows that are shared, for their word fingerprint.
    /// - Throws: As `DatabaseManager.status`.
    public func status(includesWords: Bool = false) throws -> StatusReport {
      try reading(.all) { try $0.status(includesWords: includesWords) }
    }
  }
#endif
