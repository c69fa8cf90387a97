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
    /// If the options let triggers fire, the report's `changedRows` also name the tables that those have written to,
    /// and their observations are notified.
    ///
    /// - Parameters:
    ///   - paths: Files and folders.
    ///   - options: How to apply.
    ///   - resolver: Called for each conflict, before the policies.
    ///   - progress: Called with the progress of the work. May throw to stop it.
    /// - Returns: The result of each file.
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
              try database.poll()
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

    /// Applies the changes of earlier files that were held until the app's own upgrade (`ApplyOptions.schema` with
    /// `hold`), if the schema now has a place for them.
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
    /// - Returns: The results of the files whose held changes now have a place.
    /// - Throws: As `DatabaseManager.processInboundChanges`.
    @discardableResult
    public func applyHeldChanges(
      options: ApplyOptions = ApplyOptions(schema: .hold), resolver: ConflictResolver? = nil
    ) throws -> ApplyReport {
      try processInboundChanges([], options: options, resolver: resolver)
    }

    /// Merges into this database the changes of another one since both had the same rows.
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
          progress: {
            try database.poll()
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

    /// Undoes diffs, also after later changes of their rows.
    ///
    /// - Parameters:
    ///   - subjects: The diffs or rows to undo.
    ///   - options: The policy for rows with later changes.
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

    /// Records the changes that a closure makes, with undo and redo; see `ChangeRecorder`.
    ///
    /// ```swift
    /// try queue.write { db in
    ///   try db.buckia.record("Rename album") { db in try album.update(db) }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - note: What the change is, for people.
    ///   - body: Changes rows on this connection.
    /// - Returns: The value of the closure.
    /// - Throws: As `ChangeRecorder.record`.
    @discardableResult
    public func record<Value>(_ note: String? = nil, _ body: (Database) throws -> Value) throws -> Value {
      try writing { database, written in
        written.addLedger()
        return try database.recorder.record(note) { _ in try body(db) }.value
      }
    }

    /// Undoes the last recorded change that is not undone.
    ///
    /// - Returns: The result; nil if there is nothing to undo.
    /// - Throws: As `DatabaseManager.undo`.
    @discardableResult
    public func undoRecorded() throws -> UndoReport? {
      try writing { database, written in
        let report = try database.recorder.undo()
        if let report { written.add(report) }
        return report
      }
    }

    /// Redoes the change that was undone last, unless another one was recorded since.
    ///
    /// - Returns: The result; nil if there is nothing to redo.
    /// - Throws: As `DatabaseManager.undo`.
    @discardableResult
    public func redoRecorded() throws -> UndoReport? {
      try writing { database, written in
        let report = try database.recorder.redo()
        if let report { written.add(report) }
        return report
      }
    }

    /// Resolves recorded conflicts: sets each row to the chosen version.
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
    ///   - filter: The conflicts.
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

  /// Queries of the ledger. These calls also work in `read`, and in observations, which then notice changes.
  extension ReplicatedDatabase {
    /// Recorded conflicts, oldest first, with all versions of their rows.
    ///
    /// ``LoggedConflict`` has requests for lists of them.
    ///
    /// - Parameter filter: The wanted conflicts.
    /// - Throws: As `DatabaseManager.conflicts`.
    public func conflicts(matching filter: ConflictFilter = ConflictFilter()) throws -> [ConflictRecord] {
      try reading(.conflicts) { try $0.conflicts(matching: filter) }
    }

    /// The numbers of recorded conflicts by table, kind and outcome.
    ///
    /// - Parameter filter: The wanted conflicts.
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
    /// - Parameter count: The maximum number.
    /// - Throws: As `DatabaseManager.log`.
    public func log(newest count: Int) throws -> (entries: [LedgerEntry], total: Int) {
      try reading(.log) { try $0.log(newest: count) }
    }

    /// The parts of the database that would replicate, and those that would not, with the reasons.
    ///
    /// - Throws: As `DatabaseManager.examine`.
    public func examine() throws -> DoctorReport {
      try reading(.all) { try $0.examine() }
    }

    /// The state of the database: the arrived, waiting and open items, and its replica.
    ///
    /// - Parameter includesWords: True to read all rows that are shared, for their word fingerprint.
    /// - Throws: As `DatabaseManager.status`.
    public func status(includesWords: Bool = false) throws -> StatusReport {
      try reading(.all) { try $0.status(includesWords: includesWords) }
    }
  }
#endif
