import SQLiteConnections

/// What holds in every history.
public enum Invariant: Sendable, Equatable, CustomStringConvertible {
  /// No call of the engine fails.
  case noFailure
  /// `PRAGMA integrity_check` finds nothing.
  case integrity
  /// A reference that leads nowhere is named by a conflict record.
  case foreignKeys
  /// No diff is applied or recorded twice.
  case appliedOnce
  /// The report and the ledger agree about each diff, and each conflict has its record.
  case counters
  /// A value of an edit is in a row of every replica, or in a conflict record, unless a later edit that knew it has
  /// overwritten it.
  case nothingLost
  /// Under the policy `keepLocal`, a value of an edit stays on its replica, unless a later edit that knew it has
  /// overwritten it.
  case localKept
  /// Edits of which each knew all before it meet no conflict, and are everywhere in the end.
  case sequentialEdits
  /// At the end no replica has changes left to send.
  case atRest
  /// In the end, each diff is recorded on every replica.
  case ledgersAgree
  /// In the end, the rows of a table that converges are the same everywhere.
  case convergence
  /// The same history does the same twice.
  case repeatable
  /// The grouping of files and the stops of applying make no difference.
  case groupingIsInvisible
  /// Nothing is taken from a replica that is not trusted, and everything from one that is.
  case trust
  /// In the end, when all have got the upgrade, nothing is held any more.
  case nothingHeld
  /// A check of the app's own.
  case check(String)

  /// The invariant, in plain words.
  public var description: String {
    switch self {
    case .noFailure: "No call fails"
    case .integrity: "SQLite finds each database intact"
    case .foreignKeys: "Each reference that leads nowhere is named by a conflict record"
    case .appliedOnce: "No diff is applied twice"
    case .counters: "The ledger counts what was done"
    case .nothingLost: "Nothing that was written is lost"
    case .localKept: "Under keep-local, what was written here stays here"
    case .sequentialEdits: "Edits that know each other meet no conflict, and are everywhere in the end"
    case .atRest: "In the end, no replica has changes left to send"
    case .ledgersAgree: "In the end, each diff is recorded everywhere"
    case .convergence: "In the end, tables that converge are the same everywhere"
    case .repeatable: "The same history does the same twice"
    case .groupingIsInvisible: "It makes no difference how files are grouped, and where applying is stopped"
    case .trust: "Diffs of trusted authors are accepted, and no others"
    case .nothingHeld: "In the end, when all have got the upgrade, nothing is held any more"
    case .check(let name): name
    }
  }
}

/// An invariant that does not hold.
struct Violation: Error {
  let invariant: Invariant
  /// The violation.
  let details: String

  init(_ invariant: Invariant, _ details: String) {
    self.invariant = invariant
    self.details = details
  }
}
