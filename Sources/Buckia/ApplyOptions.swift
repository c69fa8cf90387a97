import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas

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
  /// Whether the database's triggers fire. Full-text and R-tree indexes that they keep are kept in either case.
  public var triggers: Bool
  /// Who is trusted from now on; nil leaves it as the database says.
  public var trust: TrustMode?
  /// What opens encrypted files beside the person's own identity; nil for nothing else.
  public var decryption: FileDecryption?
  /// Whether applied files stay in their folders.
  public var keepsFiles: Bool
  /// Whether applied files that were named by themselves are removed too.
  public var removesNamedFiles: Bool
  /// Whether a database that belongs to no dataset takes the files of one, and belongs to that from then on.
  ///
  /// The first file decides, so this is for calls that somebody has made for these very files. An app that applies whatever has arrived
  /// by itself sets it to false: then such files are refused (`otherDataset`) until ``DatabaseManager/joinDataset(_:)`` was called.
  public var adoptsDataset = true
  /// What is done about the first diff of somebody whose database seems to be a copy of this one, or this one of theirs.
  public var copies = CopyPolicy.ask
  /// Whether only a report is wanted: everything is tried and taken back.
  public var isDryRun: Bool
  /// Where a copy of the database goes when all files are done, from which the next difference is made; nil for none.
  ///
  /// It is what the others know of this database: what came from them, and what was sent to them. What was changed here and not
  /// sent is not in it. Where there is no earlier snapshot, that cannot be told, and all counts as sent. See <doc:Sending>.
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
