import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteSchemas

/// One conflict, as a resolver sees it: a view of three rows that reads values only when they are asked for.
///
/// It is lent to the resolver for the length of the call and cannot be kept; the values it gives are copies and can.
///
/// ```swift
/// let report = try database.processInboundChanges(["inbound"]) { conflict in
///   guard conflict.table == "notes" else { return .useDefault }
///   // The later edit wins.
///   let here = conflict.local.integer("edited") ?? 0
///   let there = conflict.incoming.integer("edited") ?? 0
///   return there > here ? .takeIncoming : .keepLocal
/// }
/// ```
public struct Conflict: ~Copyable {
  let layout: ConflictLayout
  /// Why the change does not fit.
  public let kind: ConflictKind
  /// What the change does. Nil for the ``ConflictKind/foreignKey`` that is asked about once for a whole file.
  public let operation: ChangeOperation?
  /// The row as its author saw it before the change, as far as the change tells: not there for an INSERT.
  public let base: ConflictRow
  /// The row as it is here, whole; not there when there is none.
  public let local: ConflictRow
  /// The row as its author wants it; columns that the change leaves alone hold no value. Not there for a DELETE.
  public let incoming: ConflictRow
  let details: Details

  /// What only some kinds know.
  enum Details {
    case none
    /// SQLite's words about a constraint, or the engine's.
    case message([UInt8])
    /// How many rows refer to others that are not there.
    case violations(Int)
  }

  /// The table; an empty name for the ``ConflictKind/foreignKey`` that is asked about once for a whole file.
  public var table: TableName { layout.name }

  /// The names of the columns of the three rows, in their order; the rowid first where the table is keyed by it.
  public var columns: [String] { layout.columns }

  /// What the row is known by: the columns of the primary key with their values.
  public var key: [ConflictRecord.Cell] {
    layout.key.map { place in
      (layout.columns[place], (operation == .insert ? incoming[place] : base[place]) ?? local[place])
    }
  }

  /// SQLite's words about the constraint that refuses the row; for a row that refers to one which was left out, which that is; nil
  /// where ``kind`` says all.
  public var reason: String? {
    guard case .message(let bytes) = details else { return nil }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// How many rows the file has left with references that lead nowhere, for the ``ConflictKind/foreignKey`` that is asked about
  /// once for a whole file. 0 for all others.
  public var violations: Int {
    if case .violations(let count) = details { count } else { 0 }
  }
}

/// Is asked about each conflict. It may be asked twice about the same one, when a file or a group of files is run again.
///
/// It runs inside the transaction and must not write to the database.
public typealias ConflictResolver = @Sendable (borrowing Conflict) throws -> ConflictDecision

/// One version of a row that a conflict is about: its values by column, read when asked for.
///
/// ```swift
/// conflict.local["title"] == .text("Ship's bell")
/// conflict.incoming.text("title")
/// ```
///
/// Names match whatever their case, as in SQLite.
public struct ConflictRow: ~Copyable {
  enum Content {
    case missing
    /// The old or the new values of a change.
    case change(DecodedChange, isNew: Bool, in: UnsafeRawBufferPointer)
    /// A local row, by column of the layout.
    case current(CurrentRow)
  }

  let layout: ConflictLayout
  let content: Content

  /// True if there is such a row.
  public var exists: Bool {
    if case .missing = content { false } else { true }
  }

  /// The value of a column; nil where there is no such column, no value, or no row. SQL's NULL is `.null`.
  public subscript(_ column: String) -> ChangesetValue? { layout.place(of: column).flatMap { self[$0] } }

  /// The value at a place in `Conflict.columns`; nil where there is none.
  public subscript(_ place: Int) -> ChangesetValue? {
    switch content {
    case .missing: return nil
    case .change(let change, let isNew, let bytes):
      guard let slice = layout.slice(at: place, of: change, isNew: isNew) else { return nil }
      // Sound: the view lives for one call of the resolver, and the changeset stays longer.
      return ChangesetValue(slice, in: bytes.bytes)
    case .current(let row): return layout.columns.indices.contains(place) ? row.value(at: place) : nil
    }
  }

  /// All values, in the order of `Conflict.columns`; nil where there is none. Empty when there is no row.
  public var values: [ChangesetValue?] { exists ? layout.columns.indices.map { self[$0] } : [] }

  /// The value of a column as an integer; nil when it is anything else, or not there.
  public func integer(_ column: String) -> Int64? {
    if case .integer(let value)? = self[column] { value } else { nil }
  }

  /// The value of a column as a number, integer or real; nil when it is anything else, or not there.
  public func real(_ column: String) -> Double? {
    switch self[column] {
    case .integer(let value)?: Double(value)
    case .real(let value)?: value
    default: nil
    }
  }

  /// The value of a column as text; nil when it is anything else, or not there.
  public func text(_ column: String) -> String? {
    if case .text(let value)? = self[column] { value } else { nil }
  }

  /// The value of a column as a blob; nil when it is anything else, or not there.
  public func blob(_ column: String) -> [UInt8]? {
    if case .blob(let value)? = self[column] { value } else { nil }
  }
}

/// How the rows of one table stand in its conflicts: the names of their columns, and where a change has their values.
///
/// Made once for a table, when its first conflict is met.
final class ConflictLayout {
  /// The table, the names of the local row's columns, and the places of the key among them.
  let recorded: RecordedRowLayout
  /// For each column of the local row its column in the changeset; -1 for those that only exist here.
  private let sources: [Int]
  /// True if each column of the changeset belongs to the key.
  private let isKey: [Bool]

  init(name: TableName, columns: [String], key: [Int], sources: [Int], isKey: [Bool]) {
    recorded = RecordedRowLayout(table: name, columns: columns, key: key)
    self.sources = sources
    self.isKey = isKey
  }

  /// The layout of the table that these statements change, with the policies of the table and its columns.
  convenience init(_ statements: TableStatements, _ policies: ConflictPolicies) {
    let columns = statements.match.local.changesetColumns
    var sources = [Int](repeating: -1, count: columns.count)
    for (index, place) in statements.match.columns.enumerated() { sources[place] = index }
    let isKey = statements.isKey
    self.init(
      name: statements.name, columns: columns,
      key: isKey.indices.filter { isKey[$0] }.map { statements.match.columns[$0] }, sources: sources, isKey: isKey)
    affinities = statements.affinities
    rowPolicy = policies.policy(for: name)
    let each = columns.map { policies.policy(for: $0, of: name) }
    columnPolicies = each.allSatisfy { $0 == rowPolicy } ? nil : each
  }

  /// The layout of a table whose rows are only read.
  convenience init(_ table: TableDefinition) {
    self.init(
      name: TableName(table.name), columns: table.changesetColumns, key: table.keyIndexes, sources: [], isKey: [])
  }

  /// The affinity of each column of the local row; empty for a table whose rows are only read.
  private(set) var affinities: [Affinity] = []
  /// The policy for whole rows.
  private(set) var rowPolicy = ConflictPolicy.keepLocal
  /// The policy of each column of the local row, where they differ from each other; nil where all are as for whole rows.
  private(set) var columnPolicies: [ConflictPolicy]?

  /// The policy for the value at a place of the local row.
  func policy(at place: Int) -> ConflictPolicy { columnPolicies?[place] ?? rowPolicy }

  var name: TableName { recorded.table }
  var columns: [String] { recorded.columns }
  var key: [Int] { recorded.key }

  /// The place of a column, whatever the case of its name.
  func place(of column: String) -> Int? { columns.firstIndex { ASCIIName.matches($0, column) } }

  /// Where a change has the old or the new value at a place of the local row; nil when it has none. The key of a row is
  /// among its old values only, but for an INSERT.
  func slice(at place: Int, of change: DecodedChange, isNew: Bool) -> ValueSlice? {
    guard sources.indices.contains(place), sources[place] >= 0 else { return nil }
    let column = sources[place]
    let value = isNew ? change.new(column) : change.old(column)
    if value.isDefined { return value }
    return isNew && isKey[column] && change.old(column).isDefined ? change.old(column) : nil
  }
}

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

  /// True if the later diff wins in any table.
  package var usesLatest: Bool { policies.values.contains(.latest) }

  /// True if what is incoming is taken somewhere.
  package var usesTakeIncoming: Bool { policies.values.contains(.takeIncoming) }

  /// True if the later diff wins in a table, or in a column of it.
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
