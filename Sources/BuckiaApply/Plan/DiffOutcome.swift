import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteSchemas

/// What became of one file.
public struct DiffOutcome: Hashable, Codable, Sendable {
  /// The diff file's id; nil when it has none or could not be read.
  public var id: KSUID?
  /// The file.
  public var path: String
  /// The sender, for people: a trusted contact's name, "you", "unsigned", "unknown" for a file that could not be read that far, or "key …" with the verified key.
  public var sender: String
  /// The verified key of the sender in hex; nil where no signature says whose it is.
  public var senderKey: String?
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
  /// Those of them that a rule has decided, which is an answer that was kept.
  public var decidedByRule = 0
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
  public var code: BuckiaErrorCode?
  /// What is worth knowing although it is no refusal, such as an index that wants rebuilding.
  public var warnings: [Remark] = []
  /// True if the file has been removed, because all it holds is in the database.
  public var isRemoved = false
  /// The tables that changed.
  public var changedTables: [String] = []
}
