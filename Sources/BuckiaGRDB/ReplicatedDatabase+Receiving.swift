#if GRDB
  import Buckia
  import GRDB

  extension ReplicatedDatabase {
    /// Applies diff files, raw changesets and whole inbound folders, each file exactly once.
    ///
    /// In a transaction of the app, applied files stay in their folders: the next call finds them applied and removes
    /// them. ``GRDB/DatabaseWriter/withBuckia(home:_:)-(_,_)`` makes calls outside of one.
    ///
    /// ```swift
    /// try queue.write { db in
    ///   let report = try db.buckia.processInboundChanges(["inbound"])
    ///   for diff in report.rejected { print(diff.path, diff.reason ?? "") }
    /// }
    /// ```
    ///
    /// Where the options let triggers fire, the report's `changedRows` name the tables that those have written to,
    /// too, and so observations of them are told.
    ///
    /// - Parameters:
    ///   - paths: Files and folders.
    ///   - options: How to apply.
    ///   - resolver: Called for each conflict, before the policies.
    ///   - progress: Called with the progress of the work. May throw to stop it.
    /// - Returns: What became of each file.
    /// - Throws: As `DatabaseManager.processInboundChanges`.
    @discardableResult
    public func processInboundChanges(
      _ paths: [String], options: ApplyOptions = ApplyOptions(), resolver: ConflictResolver? = nil,
      progress: ApplyProgressHandler? = nil
    ) throws -> ApplyReport {
      var options = options
      // The tables that only triggers write to are in no other list.
      if options.triggers { options.changedRowLimit = max(options.changedRowLimit, 1) }
      return try writing { database, written in
        do {
          let report = try database.processInboundChanges(
            paths, options: options, resolver: resolver,
            progress: {
              try cancellation?.check()
              try progress?($0)
            })
          written.add(report)
          return report
        } catch let interruption as ApplyInterruption {
          written.add(interruption.report)
          throw interruption
        }
      }
    }

    /// Applies what was held of earlier files until the app's own upgrade (`ApplyOptions.schema` with `hold`), as far
    /// as there is a place for it now.
    ///
    /// The next call that applies files does the same. Call this when a migrator has run:
    ///
    /// ```swift
    /// try migrator.migrate(queue)
    /// try queue.withBuckia { try $0.applyHeldChanges() }
    /// ```
    ///
    /// - Parameters:
    ///   - options: How to apply.
    ///   - resolver: Called for each conflict, before the policies.
    /// - Returns: What became of the files of which something was held and has a place now.
    /// - Throws: As `DatabaseManager.processInboundChanges`.
    @discardableResult
    public func applyHeldChanges(
      options: ApplyOptions = ApplyOptions(schema: .hold), resolver: ConflictResolver? = nil
    ) throws -> ApplyReport {
      try processInboundChanges([], options: options, resolver: resolver)
    }

    /// Merges into this database what another one has changed since both had the same rows.
    ///
    /// - Parameters:
    ///   - other: The database of the other side.
    ///   - base: The database that both began with; nil if there is none.
    ///   - options: How to merge.
    ///   - resolver: Called for each conflict of rows, before the policies.
    ///   - progress: Called with the progress of the work. May throw to stop it.
    /// - Returns: The result.
    /// - Throws: As `DatabaseManager.merge`.
    @discardableResult
    public func merge(
      _ other: String, since base: String?, options: MergeOptions = MergeOptions(),
      resolver: ConflictResolver? = nil, progress: @escaping (MergeProgress) throws -> Void = { _ in }
    ) throws -> MergeReport {
      try writing { database, written in
        let report = try database.merge(
          other, since: base, options: options, resolver: resolver,
          progress: { [cancellation] in
            try cancellation?.check()
            try progress($0)
          })
        guard !report.isDryRun else { return report }
        written.add(report.changedTables)
        if report.conflicts > 0 {
          written.addLedger()
          written.addConflicts()
        }
        return report
      }
    }

    /// Takes back what diffs did, also after their rows have been changed by others.
    ///
    /// - Parameters:
    ///   - subjects: What to take back.
    ///   - options: What to do about rows that have been changed since.
    /// - Returns: The result.
    /// - Throws: As `DatabaseManager.undo`.
    @discardableResult
    public func undo(_ subjects: [UndoSubject], options: UndoOptions = UndoOptions()) throws -> UndoReport {
      try writing { database, written in
        let report = try database.undo(subjects, options: options)
        written.add(report)
        return report
      }
    }

    /// Resolves recorded conflicts: brings each row into the version that somebody has decided for.
    ///
    /// - Parameters:
    ///   - conflicts: Their numbers: ``LoggedConflict/id``, or that of a `ConflictRecord`.
    ///   - answer: The answer to all of them.
    ///   - options: How.
    /// - Returns: The outcome of each.
    /// - Throws: As `DatabaseManager.resolve`.
    @discardableResult
    public func resolve(
      _ conflicts: [Int64], taking answer: ConflictAnswer, options: ResolveOptions = ResolveOptions()
    ) throws -> ResolveReport {
      try writing { database, written in
        let report = try database.resolve(conflicts, taking: answer, options: options)
        written.add(report)
        return report
      }
    }

    /// Resolves all recorded conflicts of some kind with one answer, oldest first.
    ///
    /// - Parameters:
    ///   - filter: Which of them.
    ///   - answer: The answer to all of them.
    ///   - options: How.
    /// - Returns: The outcome of each.
    /// - Throws: As `DatabaseManager.resolve`.
    @discardableResult
    public func resolve(
      matching filter: ConflictFilter, taking answer: ConflictAnswer, options: ResolveOptions = ResolveOptions()
    ) throws -> ResolveReport {
      try writing { database, written in
        let report = try database.resolve(matching: filter, taking: answer, options: options)
        written.add(report)
        return report
      }
    }
  }

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
