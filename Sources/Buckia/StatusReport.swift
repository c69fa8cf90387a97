import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas

/// Where a database stands: what has arrived, what is open, and which replica it is.
public struct StatusReport: Sendable {
  /// Which replica the database is.
  public struct Replica: Sendable {
    /// What the ids are worth, from what home knows.
    public enum Standing: String, Sendable {
      /// The database is what it says.
      case present
      /// It is an earlier state of the database, as if a backup had been restored.
      case restored
      /// It is a copy of another database that is still there.
      case copied
      /// Nothing is known here of its replica.
      case unknown
    }

    /// The replica: 32 digits.
    public let id: String
    /// Its incarnation: 32 digits.
    public let incarnation: String
    /// What they are worth. Unless it is `present`, the next call that writes begins a new incarnation.
    public let standing: Standing
  }

  /// Rows of a table that a share leaves out until they are mended.
  public struct LeftOut: Equatable, Sendable {
    /// With whom it is shared, for people.
    public let people: String
    /// The table.
    public let table: String
    /// How many rows.
    public let rows: Int
  }

  /// Who is trusted; nil for a database without a ledger.
  public internal(set) var trust: TrustMode?
  /// Which replica it is; nil for one that is none yet.
  public internal(set) var replica: Replica?
  /// The shared database that it belongs to; nil for none.
  public internal(set) var dataset: Dataset?
  /// How many diff files have come to which state; nil without a ledger.
  public internal(set) var ledger: LedgerCounts?
  /// The greatest id that was applied; nil for none.
  public internal(set) var newest: KSUID?
  /// When the newest entry was written, in milliseconds since 1970; nil for none.
  public internal(set) var recordedAt: Int64?
  /// What is shared with whom, the first share first.
  public internal(set) var shares: [ShareState] = []
  /// What others share with this database: the streams from which something has come, the last one to bring something first.
  public internal(set) var streams: [StreamState] = []
  /// How many conflicts are recorded.
  public internal(set) var conflicts = 0
  /// How many of them nobody has decided about in particular.
  public internal(set) var openConflicts = 0
  /// Rows that the last share of each scope has left out, since they refer to rows that the receivers would not have.
  public internal(set) var leftOut: [LeftOut] = []
  /// The rows that are shared, as they are now, in words; empty unless that was asked for.
  public internal(set) var words: [ComparedWords] = []
  /// What is worth knowing.
  public internal(set) var warnings: [Remark] = []
}
