import SQLiteConnections

/// How much may come without a person who has looked at it, by files that were found in folders: others write to these.
///
/// A file may unpack to 64 MiB, or to 100 times its size where that is more. What is above a limit changes nothing, is `quarantined` with the code
/// ``BuckiaErrorCode/overLimit``, and stays in its folder until a person lets it through: files that are named by themselves have no limits.
public struct InboundLimits: Sendable, Equatable {
  /// How many bytes of changes one sender may bring in a day (UTC). Files without a signature have one sender together.
  public var senderBytes: Int64 = 1 << 30
  /// The ids of files that a person has let through.
  public var allowed: Set<KSUID> = []

  /// Makes limits with the defaults.
  public init() {}
}

/// How to apply what others sent.
public struct ApplyOptions: Sendable {
  /// What to do about conflicts, by table and column.
  public var conflicts: ConflictPolicies
  /// How far the schema may change.
  public var schema: SchemaMode
  /// True if the database's triggers fire. Full-text and R-tree indexes that they keep are kept in either case.
  public var triggers: Bool
  /// Who is trusted from now on; nil leaves it as the database says.
  public var trust: TrustMode?
  /// What opens encrypted files beside the person's own identity; nil for nothing else.
  public var decryption: FileDecryption?
  /// True if applied files stay in their folders.
  public var keepsFiles: Bool
  /// True if applied files that were named by themselves are removed too.
  public var removesNamedFiles: Bool
  /// True if a database that belongs to no dataset takes the files of one, and belongs to that from then on.
  ///
  /// The first file decides, so this is for calls that somebody has made for these very files. An app that applies whatever has arrived
  /// by itself sets it to false: then such files are refused (`otherDataset`) until ``DatabaseManager/joinDataset(_:)`` was called.
  public var adoptsDataset = true
  /// What is done about the first diff of somebody whose database seems to be a copy of this one, or this one of theirs.
  public var copies = CopyPolicy.ask
  /// Columns in which nothing is taken but with new rows, and nothing is a conflict.
  public var ignoredColumns: [TableName: [String]] = [:]
  /// By which columns rows of shares are the same that both sides have added under different numbers, besides those of the scopes that are shared
  /// with the sender. What else differs is a conflict of the one row.
  public var matches: [TableName: [String]] = [:]
  /// True if only a report is wanted: everything is tried and taken back.
  public var isDryRun: Bool
  /// Where a copy of the database goes when all files are done, from which the next difference is made; nil for none.
  ///
  /// It is what the others know of this database: what came from them, and what was sent to them. What was changed here and not
  /// sent is not in it. Without an earlier snapshot everything counts as sent. See <doc:Sending>.
  public var snapshot: String?
  /// How many bytes SQLite's page cache and the sorting of indexes may take up together; 256 MiB unless it is set.
  ///
  /// More is faster where many rows of a large table with indexes change. Most diffs need a fraction of it. The page cache of
  /// a connection that the app has open is never made smaller, and is as before afterwards.
  ///
  /// A change of more than half of it, in a file that was found in a folder, waits for a person: see ``InboundLimits``.
  public var memoryLimit = ApplySession.defaultMemoryLimit
  /// How much may come by files that were found in folders.
  public var limits = InboundLimits()
  /// How many keys of changed rows the report lists, for an app that shows them; 0 for none.
  public var changedRowLimit = 0

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

/// The tables and columns that options name.
struct OptionNames {
  private let columns: [[TableName: [String]]]
  private let matches: [TableName: [String]]

  init(_ ignored: [TableName: [String]], _ matches: [TableName: [String]], _ conflicts: ConflictPolicies) {
    columns = [ignored, matches, conflicts.columns]
    self.matches = matches
  }

  /// The tables that none of the schemas has.
  ///
  /// - Throws: `BuckiaError` with `columnsDiffer` for a column that its table lacks, or when rows of a table cannot be matched.
  func unknownTables(in schemas: [SchemaReader]) throws -> [TableName] {
    var unknown: Set<TableName> = []
    for (table, columns) in columns.joined() {
      let known = try schemas.compactMap { schema in
        try schema.entry(named: table).map { try schema.definition(of: $0) }
      }
      if known.isEmpty { unknown.insert(table) }
      for column in columns where !known.isEmpty && !known.contains(where: { $0.column(named: column) != nil }) {
        throw BuckiaError(.columnsDiffer, "there is no column \"\(table).\(column)\"; check its name")
      }
      if matches[table] != nil, known.contains(where: { !$0.givesOutKeys }) {
        throw BuckiaError(
          .columnsDiffer,
          "rows of table \"\(table)\" cannot be matched: they have no numbers that SQLite gives out, so each has the same key on both sides"
        )
      }
    }
    return unknown.sorted { $0.text < $1.text }
  }
}

/// How far applying has come.
public struct ApplyProgress: Sendable, Equatable {
  /// What is being done with a file.
  public enum Activity: String, Sendable, CaseIterable {
    /// It is read, unpacked and checked.
    case verifying
    /// Its changes are sorted and written.
    case applying
  }

  /// What is being done.
  public internal(set) var activity = Activity.verifying
  /// The file with which it is done.
  public internal(set) var path = ""
  /// How many files are done.
  public internal(set) var files = 0
  /// How many files there are.
  public internal(set) var fileCount = 0
  /// How many changes of the present file have been applied. Told every few thousand changes.
  public internal(set) var rows = 0
  /// How many bytes the files that are done have, and the present one as far as its changes have been applied.
  public internal(set) var bytes: Int64 = 0
  /// How many bytes all files have.
  public internal(set) var byteCount: Int64 = 0
}

/// Gets the progress of applying: before each file, every few thousand changes, and now and then, with nothing new, while
/// a large file is verified or its changes are sorted. May throw to stop; the files that are done stay applied.
public typealias ApplyProgressHandler = (ApplyProgress) throws -> Void
