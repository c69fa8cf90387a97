import BuckiaEngine
import BuckiaKSUID
import SQLiteSchemas

/// What `createDatabaseDiff` did.
public struct DiffReport: Sendable {
  /// One table that changed.
  public struct Table: Sendable {
    /// The table's name.
    public let name: String
    /// Rows in the newer database only.
    public let inserted: Int
    /// Rows with other values.
    public let updated: Int
    /// Rows in the older database only.
    public let deleted: Int
    /// How the difference was found.
    public let method: DiffMethod
    /// Why it was not `pages`, where that was wanted.
    public let methodReason: SkipReason?
    /// Whether the table is missing in the older database.
    public let isNew: Bool
    /// Columns that are missing in the older database.
    public let newColumns: [String]
    /// Columns that have another name in the older database.
    public let renames: [ColumnRename]
  }

  /// The id of the diff file; nil when nothing changed.
  public internal(set) var id: KSUID?
  /// The file that was written; nil when nothing changed.
  public internal(set) var path: String?
  /// Its size in bytes.
  public internal(set) var bytes: Int
  /// The method that was asked for, or `auto`.
  public internal(set) var method: String
  /// What changed.
  public internal(set) var tables: [Table]
  /// What does not travel.
  public internal(set) var skipped: [SkippedItem]
  /// Tables, changed or not, that had to be compared row by row, and why.
  public internal(set) var comparedByRows: [SkippedItem]
  /// Remarks for people.
  public internal(set) var warnings: [String]
  /// How long it took, in seconds.
  public internal(set) var seconds: Double
}

/// What became of one file.
public struct DiffOutcome: Sendable {
  /// The diff file's id; nil when it has none or could not be read.
  public var id: KSUID?
  /// The file.
  public var path: String
  /// The sender, for people: "unsigned", or "key …" with the verified key.
  public var sender: String
  /// What became of it.
  public var state: DiffState
  /// Rows inserted.
  public var inserted = 0
  /// Rows updated.
  public var updated = 0
  /// Rows deleted.
  public var deleted = 0
  /// Conflicts met.
  public var conflicts = 0
  /// Changes that were not written.
  public var omitted = 0
  /// What was, or would be, created and added, as sentences.
  public var schemaChanges: [String] = []
  /// What becomes of every table and column that is not the same in the diff and here, and why.
  public var plan: [SchemaNote] = []
  /// How many tables and columns are kept for an upgrade.
  public var heldParts = 0
  /// Why it was refused or waits.
  public var reason: String?
  /// The code of the error behind the reason, such as `badTarHeader`, `key-differs` or `conflict`.
  public var code: String?
  /// Remarks that are no refusal, such as an index that wants rebuilding.
  public var warnings: [String] = []
  /// The tables that changed.
  public var changedTables: [String] = []
}

extension DiffOutcome {
  /// What was kept of an earlier file and has been applied now.
  init(_ released: ReleasedDiff) {
    self.init(
      id: released.diff, path: released.file, sender: released.sender, state: released.held.isEmpty ? .applied : .held)
    inserted = released.counts.inserted
    updated = released.counts.updated
    deleted = released.counts.deleted
    conflicts = released.counts.conflicts
    omitted = released.counts.omitted
    heldParts = released.held.reduce(0) { $0 + $1.partCount }
    let isRest = !released.held.isEmpty
    reason =
      "what was kept of it has found its place" + (isRest ? "; \(HeldSummary.reason(released.held))" : "")
    warnings = released.warnings
    changedTables = released.changedTables
  }
}

/// What `processInboundChanges` did.
public struct ApplyReport: Sendable {
  /// The trust mode that was in force.
  public let trust: TrustMode
  /// Each diff file, in the order of applying.
  public let diffs: [DiffOutcome]
  /// Other files in the folders, which were left alone.
  public let ignored: Int
  /// Whether the ledger tables were made just now.
  public let createdLedger: Bool
  /// How long it took, in seconds.
  public let seconds: Double
  /// Whether nothing was changed, because only a report was wanted.
  public let isDryRun: Bool
  /// What stopped the work before all files were looked at: the database locked, its disk full, the application's wish.
  /// The files before it are done.
  public let failure: (any Error)?

  /// The files that were refused.
  public var rejected: [DiffOutcome] { diffs.filter { $0.state == .rejected } }
  /// The files that were applied now.
  public var applied: [DiffOutcome] { diffs.filter { $0.state == .applied } }
}

/// What would replicate, what would not and why.
public struct DoctorReport: Sendable {
  /// A table that replicates.
  public struct Table: Sendable {
    /// The table's name.
    public let name: String
    /// How its rows are told apart: the key's columns, or `rowid`.
    public let key: String
  }

  /// The tables that replicate.
  public let replicates: [Table]
  /// What does not, and why.
  public let skipped: [SkippedItem]
  /// What does, but with something to know.
  public let warnings: [String]
}

/// What a file holds and whether it is good.
public struct VerifyReport: Sendable {
  /// One file.
  public struct File: Sendable {
    /// The file.
    public let path: String
    /// Its id, if it has one.
    public let id: KSUID?
    /// Whether everything about it is in order.
    public let isGood: Bool
    /// The sender, for people.
    public let sender: String
    /// `none`, `valid`, `invalid`, or `unknown` when the file could not be read that far.
    public let signature: String
    /// Whether it is encrypted.
    public let isEncrypted: Bool
    /// What is wrong with it.
    public let reason: String?
  }

  /// The files, in the order given; folders by id.
  public let files: [File]
}
