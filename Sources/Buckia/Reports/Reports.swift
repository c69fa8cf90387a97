/// What `createDatabaseDiff` did.
public struct DiffReport: Hashable, Codable, Sendable {
  /// One table that changed.
  public struct Table: Hashable, Codable, Sendable {
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
    /// The reason not to use `pages`, if that was requested.
    public let methodReason: SkipReason?
    /// True if the table is missing in the older database.
    public let isNew: Bool
    /// Columns that are missing in the older database.
    public let newColumns: [String]
    /// Columns that have another name in the older database.
    public let renames: [ColumnRename]
  }

  /// The id of the diff file; nil if nothing changed.
  public internal(set) var id: KSUID?
  /// The file that was written; nil if nothing changed, and for a stream.
  public internal(set) var path: String?
  /// Its size in bytes.
  public internal(set) var bytes = 0
  /// The requested method; nil if Buckia chose.
  public internal(set) var method: DiffMethod?
  /// What changed.
  public internal(set) var tables: [Table]
  /// What does not travel.
  public internal(set) var skipped: [SkippedItem]
  /// Tables, changed or not, that had to be compared row by row, and why.
  public internal(set) var comparedByRows: [SkippedItem]
  /// True if no row that differs was left out.
  public var isComplete: Bool { !skipped.contains(where: \.leavesRowsOut) }
  /// True if the file has the newer database's whole schema as SQL, for adopting it.
  public internal(set) var includesSchema: Bool
  /// Warnings.
  public internal(set) var warnings: [Warning] = []
  /// How long it took, in seconds.
  public internal(set) var seconds = 0.0
}

/// What `processInboundChanges` did.
public struct ApplyReport: Hashable, Codable, Sendable {
  /// The trust mode that was in force.
  public let trust: TrustMode
  /// Each diff file, in the order of applying.
  public let diffs: [DiffOutcome]
  /// Each answer to an invitation. They are taken before the diff files.
  public internal(set) var answers: [InvitationAnswer] = []
  /// Other files in the folders, which were left alone.
  public let ignored: Int
  /// Diff files and changesets in the folders that are not named by their id, and were therefore left alone. They can
  /// be applied by their paths.
  public internal(set) var misnamed: [String] = []
  /// True if the ledger tables were made just now.
  public let createdLedger: Bool
  /// How long it took, in seconds.
  public internal(set) var seconds: Double
  /// True if nothing was changed, because only a report was wanted.
  public let isDryRun: Bool
  /// The first 10,000 conflicts that a dry run would have recorded; otherwise empty, because
  /// ``DatabaseManager/conflicts(matching:)`` has them.
  public internal(set) var dryRunConflicts: [ConflictRecord] = []
  /// The number of conflicts that a dry run would have recorded, by table, kind and outcome.
  public internal(set) var dryRunConflictCounts: [ConflictCount] = []
  /// The snapshot that was made when all files were done; nil if none was requested, and in a dry run.
  public internal(set) var snapshot: SnapshotReport?
  /// True if another program has written to the database between the first file and the snapshot. Its changes are in
  /// the snapshot, and not in the next difference.
  public internal(set) var wasWrittenMeanwhile = false
  /// The changed rows by table, if the options ask for them; otherwise empty.
  public let changedRows: [ChangedRows]
  /// The folders of which nothing was removed, because they hold files that were made from this very database.
  public internal(set) var outgoingFolders: [String] = []
  /// Warnings about the database and this device. Those about one file are with that file.
  public internal(set) var warnings: [Warning] = []

  /// The tables that were changed.
  public var changedTables: Set<String> { Set(diffs.flatMap(\.changedTables)) }
  /// The files that were refused.
  public var rejected: [DiffOutcome] { diffs.filter { $0.state == .rejected } }
  /// The files that were applied now.
  public var applied: [DiffOutcome] { diffs.filter { $0.state == .applied } }
  /// The files that were removed from their folders because all their contents are in the database.
  public var removed: [DiffOutcome] { diffs.filter(\.isRemoved) }
}

/// What ``DatabaseManager/snapshot(to:replacing:)`` made.
public struct SnapshotReport: Hashable, Codable, Sendable {
  /// The file.
  public let path: String
  /// Its size in bytes.
  public let bytes: Int64
  /// True if it replaced an earlier one.
  public let isReplacement: Bool
  /// The number of unsent changes, which are not in the snapshot: the next difference has them. Nil if that is unknown,
  /// because there was no earlier snapshot.
  public let unsentChanges: Int?
}

/// The work stopped before all files were looked at: the database was locked, its disk was full, or the app wanted to stop.
///
/// The earlier files are done. If there were none, the cause itself is thrown.
public struct ApplyInterruption: Error, CustomStringConvertible {
  /// The outcomes of the files that are done.
  public internal(set) var report: ApplyReport
  /// The cause: a `BuckiaError`, an error of a closure of the app, or `CancellationError`.
  public let cause: any Error

  /// The cause, and how many files are done.
  public var description: String { "\(cause) (\(report.diffs.count) files were done before)" }
}

/// What would replicate, what would not and why.
public struct DoctorReport: Hashable, Codable, Sendable {
  /// A table that replicates.
  public struct Table: Hashable, Codable, Sendable {
    /// The table's name.
    public let name: String
    /// The identity of the rows: the key's columns, or `rowid`.
    public let key: String
  }

  /// The tables that replicate.
  public internal(set) var replicates: [Table] = []
  /// What does not, and why.
  public internal(set) var skipped: [SkippedItem] = []
  /// Warnings about replicating parts.
  public internal(set) var warnings: [Warning] = []
}

/// What a file holds and whether it is good.
public struct VerifyReport: Hashable, Codable, Sendable {
  /// What is known of a signature.
  public enum Signature: String, Codable, Sendable {
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
  public struct File: Hashable, Codable, Sendable {
    /// The file.
    public let path: String
    /// Its id, if it has one.
    public let id: KSUID?
    /// True if everything about it is in order.
    public let isGood: Bool
    /// The sender, for people.
    public let sender: String
    /// The state of the signature.
    public let signature: Signature
    /// True if it is encrypted.
    public let isEncrypted: Bool
    /// The error in the file.
    public let reason: String?
    /// The code of the error behind the reason, such as `badTarHeader`; `noMatchingIdentity` or `notAddressed` for a file that is not for
    /// this person.
    public var code: BuckiaErrorCode?
  }

  /// The files, in the order given; folders by id.
  public let files: [File]
  /// Diff files and changesets in the folders that are not named by their id, and were therefore not checked.
  public internal(set) var misnamed: [String] = []
}
