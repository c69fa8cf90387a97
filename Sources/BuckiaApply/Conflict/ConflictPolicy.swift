import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteSchemas

/// What to do about conflicts.
public enum ConflictPolicy: String, Sendable, CaseIterable, Codable {
  /// The local values stay, the incoming ones go into the conflict record.
  case keepLocal = "keep-local"
  /// The incoming values are written, the local ones go into the conflict record.
  case takeIncoming = "take-incoming"
  /// The whole diff is refused.
  case abort
  /// Of two changes of a column the one of the later diff wins: the one with the greater id, in whatever order they
  /// arrive. A DELETE beats every UPDATE, and a row that was deleted comes back only by a later INSERT. A row gives way to
  /// a later one with the same UNIQUE value, and comes back when that is free.
  ///
  /// So all databases that have applied the same diffs have the same rows. The table gets a clock for that, which
  /// remembers what each diff has set.
  case latest
}

/// A policy for each table and column.
///
/// ```swift
/// var options = ApplyOptions()
/// options.conflicts = [
///   .table("notes"): .takeIncoming, .column("title", of: "notes"): .keepLocal, .otherwise: .keepLocal,
/// ]
/// ```
///
/// The policy of a column decides about values that both sides have changed; that of a table about whole rows: one that was
/// deleted on one side, or that breaks a constraint. Names match whatever their case, as in SQLite.
public struct ConflictPolicies: Sendable, Equatable, ExpressibleByDictionaryLiteral {
  /// What a policy is for.
  public struct Subject: Hashable, Sendable {
    fileprivate let table: TableName?
    fileprivate let column: String?

    /// A table, and those of its columns that have no policy of their own.
    public static func table(_ name: String) -> Subject { Subject(table: TableName(name), column: nil) }
    /// A column of a table.
    public static func column(_ name: String, of table: String) -> Subject {
      Subject(table: TableName(table), column: ASCIIName.folded(name))
    }
    /// Everything that has no policy of its own.
    public static let otherwise = Subject(table: nil, column: nil)
  }

  private var policies: [Subject: ConflictPolicy]

  /// Takes policies by what they are for. Without one for ``Subject/otherwise`` that is `keepLocal`.
  public init(dictionaryLiteral elements: (Subject, ConflictPolicy)...) {
    policies = Dictionary(elements) { _, last in last }
  }

  /// The same policy for everything.
  public init(_ policy: ConflictPolicy) { policies = [.otherwise: policy] }

  /// The policy of a subject itself; nil leaves it to that of its table, and in the end to `otherwise`.
  public subscript(_ subject: Subject) -> ConflictPolicy? {
    get { policies[subject] }
    set { policies[subject] = newValue }
  }

  /// The local values stay everywhere.
  public static let keepLocal = ConflictPolicies(.keepLocal)
  /// The incoming values are written everywhere.
  public static let takeIncoming = ConflictPolicies(.takeIncoming)
  /// Any conflict refuses the whole diff.
  public static let abort = ConflictPolicies(.abort)
  /// The later diff wins everywhere.
  public static let latest = ConflictPolicies(.latest)

  /// What holds where nothing else is said.
  var otherwise: ConflictPolicy { policies[.otherwise] ?? .keepLocal }

  /// Whether the later diff wins in any table.
  package var usesLatest: Bool { policies.values.contains(.latest) }

  /// True if what is incoming is taken somewhere.
  package var usesTakeIncoming: Bool { policies.values.contains(.takeIncoming) }

  /// Whether the later diff wins in a table, or in a column of it.
  func usesLatest(for table: TableName) -> Bool {
    policy(for: table) == .latest || policies.contains { $0.key.table == table && $0.value == .latest }
  }

  /// The policy for whole rows of a table.
  package func policy(for table: TableName) -> ConflictPolicy {
    policies[Subject(table: table, column: nil)] ?? otherwise
  }

  /// The policy for the values of a column.
  func policy(for column: String, of table: TableName) -> ConflictPolicy {
    policies[Subject(table: table, column: ASCIIName.folded(column))] ?? policy(for: table)
  }
}

/// A resolver's answer.
///
/// Not every answer makes a difference: only `data` and `conflict` know two versions to choose from. For a row that is
/// not there (`not-found`), or that a constraint refuses, ``keepLocal`` and ``takeIncoming`` mean the same: the change
/// is left out, and recorded. For the ``ConflictKind/foreignKey`` that is asked about once for a whole file both mean
/// that the violations stand, and are recorded.
public enum ConflictDecision: Sendable {
  /// What the policies of the options say. Columns that only one side has changed merge.
  case useDefault
  /// Keep the local row as it is.
  case keepLocal
  /// Write all that came in.
  case takeIncoming
  /// Write these values, by the names of the columns; columns that are not named keep the local value, or get the incoming
  /// one where there is no local row. Where there is a local row, its key stays.
  case write([String: ChangesetValue])
  /// Refuse the whole diff.
  case abort
}
