import BuckiaApply
import BuckiaDiff
import BuckiaLedger
import BuckiaSchemaPlans
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
  public internal(set) var bytes = 0
  /// The method that was asked for; nil where Buckia chose.
  public internal(set) var method: DiffMethod?
  /// What changed.
  public internal(set) var tables: [Table]
  /// What does not travel.
  public internal(set) var skipped: [SkippedItem]
  /// Tables, changed or not, that had to be compared row by row, and why.
  public internal(set) var comparedByRows: [SkippedItem]
  /// What is worth knowing about it.
  public internal(set) var warnings: [Remark] = []
  /// How long it took, in seconds.
  public internal(set) var seconds = 0.0
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
  /// Whether the ledger tables had an earlier format and have been migrated.
  public let migratedLedger: Bool
  /// How long it took, in seconds.
  public internal(set) var seconds: Double
  /// Whether nothing was changed, because only a report was wanted.
  public let isDryRun: Bool
  /// The rows that were changed, by table, where the options ask for them; else empty.
  public let changedRows: [ChangedRows]
  /// The folders of which nothing was removed, because they hold files that were made from this very database.
  public internal(set) var outgoingFolders: [String] = []

  /// The tables that were changed.
  public var changedTables: Set<String> { Set(diffs.flatMap(\.changedTables)) }
  /// The files that were refused.
  public var rejected: [DiffOutcome] { diffs.filter { $0.state == .rejected } }
  /// The files that were applied now.
  public var applied: [DiffOutcome] { diffs.filter { $0.state == .applied } }
  /// The files that are gone from their folders, because all they hold is in the database.
  public var removed: [DiffOutcome] { diffs.filter(\.isRemoved) }
}

/// The work stopped before all files were looked at: the database was locked, its disk was full, or the app wanted to stop.
///
/// The files before that are done. Where none was, the cause is thrown by itself.
public struct ApplyInterruption: Error, CustomStringConvertible {
  /// What became of the files that are done.
  public let report: ApplyReport
  /// What stopped the work: a `BuckiaError`, what a closure of the app has thrown, or `CancellationError`.
  public let cause: any Error

  /// The cause, and how many files are done.
  public var description: String { "\(cause) (\(report.diffs.count) files were done before)" }
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
  public internal(set) var replicates: [Table] = []
  /// What does not, and why.
  public internal(set) var skipped: [SkippedItem] = []
  /// What does, but with something to know.
  public internal(set) var warnings: [Remark] = []
}

/// What a file holds and whether it is good.
public struct VerifyReport: Sendable {
  /// What is known of a signature.
  public enum Signature: String, Sendable {
    /// There is none.
    case none
    /// It is the sender's.
    case valid
    /// It is not the sender's over this file.
    case invalid
    /// The file could not be read that far.
    case unknown
  }

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
    /// What is known of its signature.
    public let signature: Signature
    /// Whether it is encrypted.
    public let isEncrypted: Bool
    /// What is wrong with it.
    public let reason: String?
  }

  /// The files, in the order given; folders by id.
  public let files: [File]
}
