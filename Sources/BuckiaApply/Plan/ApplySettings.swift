import BuckiaLedger
import SQLiteConnections
import SQLiteSchemas

/// How to apply.
package struct ApplySettings {
  /// A ``ConflictResolver`` that stays on its thread.
  package typealias Resolver = (borrowing Conflict) throws -> ConflictDecision

  /// What to do about conflicts.
  package var policies: ConflictPolicies
  /// Is asked about each conflict, before the policies.
  package var resolver: Resolver?
  /// How far the schema may change.
  package var schema: SchemaMode
  /// True if the local triggers fire. Off, because the changes already hold what the author's triggers did; full-text and
  /// R-tree indexes that they keep are kept all the same.
  package var firesTriggers: Bool
  /// True if both versions of each conflict are written down. If not, only their number is, in the ledger: the resolver
  /// and the policies decide, and what they decide against is gone; nor are contested keys remembered then.
  package var recordsConflicts: Bool
  /// True if the database has a ledger, or gets one, and the changes an entry there. Without one, conflicts cannot be recorded, and
  /// nothing can be held.
  package var keepsLedger = true
  /// True if rows that have a UNIQUE value of an incoming one are deleted, instead of keeping it out.
  package var makesRoom = false
  /// Columns of rows that are here already in which nothing is taken, and nothing is a conflict.
  package var ignoredColumns: [TableName: [String]] = [:]
  /// How many bytes the page cache and the sorting of indexes may take up together.
  package var memoryLimit: Int
  /// What becomes of the indexes of a table while its rows are written.
  package var indexPolicy = IndexPolicy.rebuildWhereFaster
  /// How rows that only their content identifies are found.
  package var contentPolicy = ContentPolicy.indexWhereFaster
  /// The time for the ledger, in milliseconds since 1970.
  package var time: Int64
  /// Is told now and then how many changes have been applied. May throw to stop; everything is then rolled back.
  package var progress: (Int) throws -> Void
  /// How much is kept of what each diff does to the rows here, so that it can be taken back; nil for nothing.
  package var retention: AppliedEffects.Retention?
  /// What was changed here and not been sent, which counts as later than all that arrives where the later diff wins; nil where
  /// nobody knows.
  package var unsent: UnsentEdits?
  /// The id of the snapshot that is made again when all is applied: until then what was applied is noted under it; nil for none.
  package var snapshot: String?
  /// Takes part when the diffs of others are applied; nil for nobody.
  package var sharing: (any SharingParticipant)?
  /// True if a database that belongs to no dataset takes the diffs of one, and belongs to it then.
  package var adoptsDataset = false
  /// How many bytes of changes one sender may bring in a day by files that are limited.
  package var senderBytes = Int64.max
  /// What is known of the senders of diffs.
  package var senders = KnownSenders.nobody
  /// Is told of each row that is written; nil for none, which costs nothing.
  package var observer: (any RowEffectObserver)?

  /// Makes settings.
  package init(
    policies: ConflictPolicies = .keepLocal, resolver: Resolver? = nil, schema: SchemaMode = .additive,
    firesTriggers: Bool = false, recordsConflicts: Bool = true, memoryLimit: Int = ApplySession.defaultMemoryLimit,
    time: Int64,
    progress: @escaping (Int) throws -> Void = { _ in }
  ) {
    self.policies = policies
    self.resolver = resolver
    self.schema = schema
    self.firesTriggers = firesTriggers
    self.recordsConflicts = recordsConflicts
    self.memoryLimit = memoryLimit
    self.time = time
    self.progress = progress
  }

  /// Makes the session that applies changes so.
  package func session(on connection: borrowing SQLiteConnection) -> ApplySession {
    let session = ApplySession(
      on: connection, firesTriggers: firesTriggers, memoryLimit: memoryLimit, indexPolicy: indexPolicy)
    session.contentPolicy = contentPolicy
    session.ignoredColumns = ignoredColumns
    session.keepsLedger = keepsLedger
    return session
  }
}
