import BuckiaDiffFiles
import BuckiaApply
import BuckiaLedger
import BuckiaSchemaPlans
import BuckiaKSUID
import SQLiteConnections

/// How to apply what others sent.
public struct ApplyOptions: Sendable {
  /// What to do about conflicts.
  public var conflicts: ConflictPolicies
  /// How far the schema may change.
  public var schema: SchemaMode
  /// Whether the database's triggers fire. Full-text and R-tree indexes that they keep are kept in either case.
  public var triggers: Bool
  /// Who is believed from now on; nil leaves it as the database says.
  public var trust: TrustMode?
  /// Whether applied files stay in their folders.
  public var keepsFiles: Bool
  /// Whether applied files that were named by themselves are removed too.
  public var removesNamedFiles: Bool
  /// Whether only a report is wanted: everything is tried and taken back.
  public var isDryRun: Bool

  /// Makes options; the defaults are those of the command line.
  public init(
    conflicts: ConflictPolicies = .keepLocal, schema: SchemaMode = .additive, triggers: Bool = false,
    trust: TrustMode? = nil, keepsFiles: Bool = false, removesNamedFiles: Bool = false, isDryRun: Bool = false
  ) {
    self.conflicts = conflicts
    self.schema = schema
    self.triggers = triggers
    self.trust = trust
    self.keepsFiles = keepsFiles
    self.removesNamedFiles = removesNamedFiles
    self.isDryRun = isDryRun
  }
}

extension DatabaseManager {
  /// Applies diff files, raw changesets and whole inbound folders, each file exactly once.
  ///
  /// Files are taken in the order of their ids. Each is verified wholly before anything of it is used, then planned and
  /// applied in one transaction with its ledger row, which it may share with its neighbours. A file that is damaged or refused changes nothing, is recorded with
  /// the reason and does not stop the others. Applied files are removed from folders, unless the options keep them.
  ///
  /// - Parameters:
  ///   - paths: Files and folders.
  ///   - options: How to apply.
  ///   - resolver: Is asked about each conflict, before the policy; again about the same one where a group of files is
  ///     taken again because one of them failed.
  ///   - progress: Is told about each file before it is applied: its path, its number from 1, and how many there are.
  /// - Returns: What became of each file. When the database is locked, full or damaged midway, or `progress` throws,
  ///   `failure` says so, and the files before that are done.
  /// - Throws: `BuckiaError` for a path that does not exist; `SQLiteError` when the database cannot be opened or written
  ///   at all; `EngineError` for a newer ledger; what stopped the work at the first file. Nothing has been changed then,
  ///   but that the ledger tables may have been made.
  public func processInboundChanges(
    _ paths: [String], options: ApplyOptions = ApplyOptions(), resolver: ConflictResolver? = nil,
    progress: (String, Int, Int) throws -> Void = { _, _, _ in }
  ) throws -> ApplyReport {
    try requireDatabase()
    let listing = try InboundListing(paths)
    return try withoutActuallyEscaping(progress) { progress in
      var (report, seconds) = try WallClock.timing {
        let connection = try SQLiteConnection(opening: path, as: .readWrite, busyTimeout: busyTimeout)
        // The changes already hold what the author's foreign-key actions did; what breaks is looked up and reported.
        try connection.execute("PRAGMA foreign_keys = OFF")
        let rehearsal = options.isDryRun ? try SQLiteTransaction(on: connection) : nil
        let report = try receive(listing, options, resolver, on: connection, progress: progress)
        rehearsal?.rollback()
        return report
      }
      report.seconds = seconds
      return report
    }
  }

  private func receive(
    _ listing: InboundListing, _ options: ApplyOptions, _ resolver: ConflictResolver?,
    on connection: borrowing SQLiteConnection, progress: @escaping (String, Int, Int) throws -> Void
  ) throws -> ApplyReport {
    var settings = ApplySettings(
      policies: options.conflicts, resolver: resolver, schema: options.schema, firesTriggers: options.triggers,
      time: WallClock.unixMilliseconds)
    settings.escaping = EscapedText.line
    var receiver = try Receiver(
      on: connection, trust: options.trust, settings: settings, clock: { WallClock.unixMilliseconds })
    let ledger = receiver.ledger
    var failure: (any Error)?
    var outcomes: [DiffOutcome] = []
    do {
      outcomes = try receiver.releaseHeld(on: connection)
      let files = InboundFiles(listing.items, after: outcomes, options: options, progress: progress)
      defer {
        files.finishRemoving()
        outcomes = files.outcomes
      }
      try receiver.receive(files, on: connection)
    } catch {
      failure = error
    }
    try receiver.end(on: connection)
    if let failure, outcomes.isEmpty { throw failure }
    return ApplyReport(
      trust: receiver.trust, diffs: outcomes, ignored: listing.ignored, createdLedger: ledger == .created, seconds: 0,
      isDryRun: options.isDryRun, failure: failure)
  }
}
