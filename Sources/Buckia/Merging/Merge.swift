import SQLiteConnections

extension DatabaseManager {
  /// Merges the changes of another database, since both had the same rows, into this one: a three-way merge.
  ///
  /// Rows, tables, columns, indexes, triggers and views that only the other side has changed are taken from it. An
  /// object that both have changed is a conflict: the options decide it, and it is recorded in the result with all
  /// three versions of the row, where ``conflicts(matching:)`` finds it. A merge without conflicts leaves no other
  /// trace.
  ///
  /// ```swift
  /// let report = try DatabaseManager("mine.sqlite").merge("yours.sqlite", since: "base.sqlite", into: "merged.sqlite")
  /// if !report.isClean { print(report.conflicts, "conflicts") }
  /// ```
  ///
  /// The other databases may be in use and are not changed. Without an output, the merge is one transaction of this database. A borrowed
  /// database is merged into as part of the transaction that the app has open.
  ///
  /// - Parameters:
  ///   - other: The database of the other side.
  ///   - base: The database that both sides began with; nil, or an empty file, if they have none in common. Equal rows
  ///     are then one row, and others with the same key are conflicts.
  ///   - output: The file that gets the result, complete or not at all; nil, or this database's own path, to change this one.
  ///   - options: How to merge.
  ///   - resolver: Called for each conflict of rows, before the policies.
  ///   - progress: Called with the progress of the work. May throw to stop it.
  /// - Returns: The result.
  /// - Throws: `BuckiaError` when a database cannot be read or written, or this one is damaged; with code `alreadyExists` when there is another file at the
  ///   output, or `notReplaceable` when it is no database; with `nothingInCommon` when base and other share no table; with `untrusted` when this database trusts known
  ///   senders only, since database files have none; with `conflict` under the policy `abort`; whatever `resolver` and
  ///   `progress` throw. Nothing has been changed then.
  @discardableResult
  public func merge(
    _ other: String, since base: String?, into output: String? = nil, options: MergeOptions = MergeOptions(),
    resolver: ConflictResolver? = nil, progress: @escaping (MergeProgress) throws -> Void = { _ in }
  ) throws -> MergeReport {
    let traces = ReadTraces(besides: [other, base ?? "", isBorrowed ? "" : path].filter { !$0.isEmpty })
    defer { traces.remove() }
    var (report, seconds) = try WallClock.timing {
      try BuckiaError.wrapping {
        try requireFile()
        let incoming = try withReader { ours in
          try IncomingDatabase(
            other, since: base, busyTimeout: busyTimeout, options, into: ours, polling: poll,
            progress: { try progress(.comparing($0)) })
        }
        var settings = ApplySettings(
          policies: options.conflicts, resolver: resolver, memoryLimit: options.memoryLimit,
          time: WallClock.unixMilliseconds, progress: { try progress(.applying(rows: $0)) })
        if isBorrowed { settings.indexPolicy = .keep }
        return try merge(incoming, of: other, into: output, options, settings)
      }
    }
    report.seconds = seconds
    return report
  }

  private func merge(
    _ incoming: IncomingDatabase, of other: String, into output: String?, _ options: MergeOptions,
    _ settings: ApplySettings
  ) throws -> MergeReport {
    guard let output, !isFile(at: output) else {
      return try withWriter { connection in
        try DatabaseMerge(of: incoming, options, settings, on: connection).run()
      }
    }
    if FileSystem.exists(PosixFile.target(ofLink: output)), !options.replacesOutput {
      throw BuckiaError(.alreadyExists, "a file of that name is there already", path: output)
    }
    return try withReader { connection in
      let target = DatabaseFileTarget(output, for: "merge")
      _ = try target.requireReplaceable(by: connection.path)
      let temporary = try target.makeTemporaryFile(
        like: connection.path, incoming.source.connection.path,
        incoming.hasBase ? incoming.base.connection.path : connection.path)
      try connection.copyState(to: temporary.path, polling: poll)
      var report: MergeReport
      do {
        let copy = try SQLiteConnection(opening: temporary.path, as: .readWrite, with: connection.library)
        report = try DatabaseMerge(of: incoming, options, settings, on: copy).run()
      } catch let error as SQLiteError where error.path == temporary.path {
        throw error.naming(connection.path)
      }
      if !options.isDryRun { try target.publish(temporary) }
      report.path = output
      return report
    }
  }

  /// True if a path leads to this database's own file.
  private func isFile(at other: String) -> Bool {
    guard !path.isEmpty, let mine = FileSystem.resolved(path) else { return false }
    return FileSystem.resolved(other) == mine
  }
}

extension DatabaseManager {
  /// Merges the changes of another database into this one, on another thread.
  ///
  /// It does the same as the synchronous call of this name. A borrowed database belongs to its thread: use the
  /// synchronous call there.
  ///
  /// - Throws: As the synchronous call; `CancellationError` when the task is cancelled, and nothing has been changed.
  @discardableResult
  public func merge(
    _ other: String, since base: String?, into output: String? = nil, options: MergeOptions = MergeOptions(),
    resolver: ConflictResolver? = nil, progress: @escaping @Sendable (MergeProgress) throws -> Void = { _ in }
  ) async throws -> MergeReport {
    try await CancellationFlag.onThreadOfItsOwn { cancellation in
      try merge(
        other, since: base, into: output, options: options, resolver: resolver,
        progress: cancellation.checking(progress))
    }
  }
}

/// The progress of a merge.
public enum MergeProgress: Sendable {
  /// The other database is compared with the base.
  case comparing(DiffProgress)
  /// This many changes have been applied.
  case applying(rows: Int)
}

/// What merging two databases did: see <doc:Merging>.
public struct MergeReport: Hashable, Codable, Sendable {
  /// The merged database.
  public internal(set) var path: String
  /// True if there was a base. Without one, only rows that are equal on both sides are one row.
  public let hasBase: Bool
  /// True if nothing was changed, because only a report was wanted.
  public let isDryRun: Bool
  /// Rows inserted.
  public internal(set) var inserted = 0
  /// Rows updated.
  public internal(set) var updated = 0
  /// Rows deleted.
  public internal(set) var deleted = 0
  /// Changes that were not written.
  public internal(set) var omitted = 0
  /// The number of recorded conflicts, or in a dry run of those to record, by table, kind and outcome.
  public internal(set) var conflictCounts: [ConflictCount] = []
  /// The first 10,000 conflicts that a dry run would have recorded; otherwise empty, because
  /// ``DatabaseManager/conflicts(matching:)`` has them.
  public internal(set) var dryRunConflicts: [ConflictRecord] = []
  /// The objects of the schema that both sides have changed differently. The database keeps its own; only this report
  /// names them.
  public internal(set) var schemaConflicts: [SchemaConflict] = []
  /// True if all schema changes of the other side were merged, except conflicts. If false, a warning gives the reason,
  /// and the rest is among the skipped items.
  public internal(set) var isSchemaMerged = true
  /// The changes of the schema, made or planned, as sentences.
  public internal(set) var schemaChanges: [String] = []
  /// What of the other database could not be compared or taken, and why.
  public internal(set) var skipped: [SkippedItem] = []
  /// Warnings.
  public internal(set) var warnings: [Warning] = []
  /// The tables that changed.
  public internal(set) var changedTables: [String] = []
  /// How long it took, in seconds.
  public internal(set) var seconds = 0.0

  /// The number of recorded conflicts of rows, or in a dry run of those to record.
  public var conflicts: Int { conflictCounts.reduce(0) { $0 + $1.count } }
  /// True if nothing is left for a person to decide, and nothing that the other side has changed was left out.
  public var isClean: Bool {
    conflictCounts.isEmpty && schemaConflicts.isEmpty && isSchemaMerged && !skipped.contains(where: \.leavesRowsOut)
      && !warnings.contains { $0.code == .keyChanged }
  }
}

/// How to merge a database that has been changed apart.
public struct MergeOptions: Sendable {
  /// The policies for conflicts, by table and column.
  public var conflicts: ConflictPolicies
  /// True if a file at the output may be replaced that is neither of the two databases.
  public var replacesOutput: Bool
  /// True if only a report is wanted: everything is tried and taken back.
  public var isDryRun: Bool
  /// True if the other database may have no table in common with the base. Otherwise the paths are taken for mixed up.
  public var allowsUnrelated = false
  /// Columns that were renamed in one of the two databases since their base, besides those that the definitions show: a
  /// column at the same place and of the same type.
  public var renames: [ColumnRename] = []
  /// True if rows that both sides have added under one number are different rows, unless they are equal: the incoming ones get other numbers.
  /// Otherwise they are a conflict. Only for tables whose numbers SQLite gives out.
  public var remapsKeys = true
  /// By which columns rows are the same that both sides have added under different numbers. Rows that are equal but for their number, and have
  /// a UNIQUE value, are the same without being named here.
  public var matches: [TableName: [String]] = [:]
  /// Columns in which nothing is taken from the other side but with new rows, and nothing is a conflict.
  public var ignoredColumns: [TableName: [String]] = [:]
  /// The name of the other database in the records; nil for its file's name.
  public var incomingName: String?
  /// The most bytes for SQLite's page cache and the sorting of indexes together; 256 MiB by default.
  public var memoryLimit = ApplySession.defaultMemoryLimit

  /// Creates options; the defaults are those of the command line.
  public init(conflicts: ConflictPolicies = .keepLocal, replacesOutput: Bool = false, isDryRun: Bool = false) {
    self.conflicts = conflicts
    self.replacesOutput = replacesOutput
    self.isDryRun = isDryRun
  }
}
