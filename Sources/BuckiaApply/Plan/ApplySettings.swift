import BuckiaLedger
import SQLiteConnections
import SQLiteSchemas

/// How to apply.
package struct ApplySettings {
  /// A ``ConflictResolver`` that stays on its thread.
  package typealias Resolver = (borrowing Conflict) throws -> ConflictDecision

  /// The policies for conflicts.
  package var policies: ConflictPolicies
  /// The resolver, which decides before the policies.
  package var resolver: Resolver?
  /// How far the schema may change.
  package var schema: SchemaMode
  /// True if the local triggers fire. Off by default, because the changes already contain the effects of the author's
  /// triggers. Full-text and R-tree indexes that triggers maintain are kept up to date in either case.
  package var firesTriggers: Bool
  /// True if conflicts are recorded with both versions. If false, only their number is recorded, in the ledger: the
  /// version that loses is gone, and contested keys are not recorded.
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
  /// Called at intervals with the number of applied changes. May throw to stop; everything is then rolled back.
  package var progress: (Int) throws -> Void
  /// How long and how many effects of diffs are kept for undo; nil for none.
  package var retention: AppliedEffects.Retention?
  /// The unsent edits, which are later than all that arrives under the policy `latest`; nil if they are unknown.
  package var unsent: UnsentEdits?
  /// The id of the snapshot that is updated at the end. Until then, applied diffs are recorded under it; nil for none.
  package var snapshot: String?
  /// Tracks shared rows while diffs are applied; nil if nothing is shared.
  package var sharing: (any SharingParticipant)?
  /// True if a database that belongs to no dataset takes the diffs of one, and belongs to it then.
  package var adoptsDataset = false
  /// The most bytes of changes from one sender in a day, by files that are limited.
  package var senderBytes = Int64.max
  /// The known senders.
  package var senders = KnownSenders.empty
  /// Observes each written row; nil for none, which costs nothing.
  package var observer: (any RowEffectObserver)?

  /// Creates settings.
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

  /// Creates a session with these settings.
  package func session(on connection: borrowing SQLiteConnection) -> ApplySession {
    let session = ApplySession(
      on: connection, firesTriggers: firesTriggers, memoryLimit: memoryLimit, indexPolicy: indexPolicy)
    session.contentPolicy = contentPolicy
    session.ignoredColumns = ignoredColumns
    session.keepsLedger = keepsLedger
    return session
  }
}

/// What becomes of the indexes of a table while its rows are written.
package enum IndexPolicy: Sendable {
  /// All are kept up to date row by row.
  case keep
  /// Those that take less time to create again are dropped meanwhile.
  case rebuildWhereFaster
  /// All that can be are dropped meanwhile, whatever it takes: for tests, since nothing but the time may depend on it.
  case rebuild
}

/// How rows that only their content identifies are found.
package enum ContentPolicy: Sendable {
  /// The table is searched for each change.
  case search
  /// An index of the contents is made when the searches have taken longer than that.
  case indexWhereFaster
  /// An index of the contents is made for the first change: for tests, since nothing but the time may depend on it.
  case index
}
