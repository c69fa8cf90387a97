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
  /// The verified key of the sender in hexadecimal digits; nil for an unsigned file.
  public var senderKey: String?
  /// The state of the file.
  public var state: DiffState
  /// Rows inserted.
  public var inserted = 0
  /// Rows updated.
  public var updated = 0
  /// Rows deleted.
  public var deleted = 0
  /// Conflicts met.
  public var conflicts = 0
  /// The number of conflicts that a rule has decided.
  public var decidedByRule = 0
  /// Changes that were not written.
  public var omitted = 0
  /// The tables and columns that were, or would be, created, as sentences.
  public var schemaChanges: [String] = []
  /// What becomes of every table and column that is not the same in the diff and here, and why.
  public var plan: [SchemaNote] = []
  /// The number of tables and columns that are held for an upgrade.
  public var heldParts = 0
  /// Why it was refused or waits.
  public var reason: String?
  /// The code of the error behind the reason, such as `badTarHeader`, `key-differs` or `conflict`.
  public var code: BuckiaErrorCode?
  /// Warnings, such as about an index that needs to be rebuilt.
  public var warnings: [Warning] = []
  /// True if the file has been removed, because all it holds is in the database.
  public var isRemoved = false
  /// The tables that changed.
  public var changedTables: [String] = []
}
